"""`joulie budget forget`: free the watts of a node that is gone, before its time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie budget forget node-17 --yes

\b
It is the annotation joulie.io/forget on every PowerBudget. A node of that name that joins again counts as any other.
"""


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE")
@click.option("--yes", is_flag=True, help="The node is switched off or unplugged: give its watts to others.")
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, node: str, yes: bool) -> None:
    """Free the watts of a node that was deleted from the cluster.

    A machine does not stop drawing power because its Node was deleted. So it counts in its groups for another 10
    minutes. Use this when you know that it is switched off.
    """
    from joulie.cli.act.budget_annotations import forget

    document = forget(source, node, yes, out.tell)
    if not out.for_people:
        out.document(document)
    if not document["takesEffect"]:
        raise click.exceptions.Exit(1)
