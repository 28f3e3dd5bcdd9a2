"""`joulie pause`: nothing is raised under a power budget until `joulie resume`; cuts go on."""

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
  joulie pause feed-a
  joulie pause --all
  joulie resume --all

\b
A pause is the annotation joulie.io/paused=true on the PowerBudget; joulie budget and doctor show it.
Limits still hold: whatever has to be cut is cut. To lift a limit, change or delete the PowerBudget.

\b
Exit code 1 means that it is stored but that no operator leads, so nothing notices it yet.
"""


@click.command(epilog=_EPILOG)
@click.argument("budget", metavar="[BUDGET]", required=False, shell_complete=complete_budget)
@click.option("--all", "every", is_flag=True, help="Pause every budget.")
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, budget: str | None, every: bool) -> None:
    """The brake: raise nothing under a power budget, until `joulie resume`.

    For the minutes in which something looks wrong and the cause is unknown. Nodes keep the watts that they have; a
    limit that falls, a node that restarts or a meter that shows too much is still answered with cuts. Without BUDGET it
    is the only one.
    """
    from joulie.cli.act.budget_annotations import set_paused

    document = set_paused(source, budget, every, True, out.tell)
    if not out.for_people:
        out.document(document)
    if not document["takesEffect"]:
        raise click.exceptions.Exit(1)
