"""`joulie resume`: let a power budget raise caps again after `joulie pause`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.name_completion import complete_budget
from joulie.cli.options import prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie resume feed-a
  joulie resume --all

\b
Exit code 1 means that it is stored but that no operator leads, so nothing notices it yet.
"""


@click.command(epilog=_EPILOG)
@click.argument("budget", metavar="[BUDGET]", required=False, shell_complete=complete_budget)
@click.option("--all", "every", is_flag=True, help="Resume every budget.")
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, budget: str | None, every: bool) -> None:
    """End a pause: watts that are free are shared out again.

    A budget that is not paused is not an error. Without BUDGET it is the only one.
    """
    from joulie.cli.act.budget_annotations import set_paused

    document = set_paused(source, budget, every, False, out.tell)
    if not out.for_people:
        out.document(document)
    if not document["takesEffect"]:
        raise click.exceptions.Exit(1)
