"""`joulie unpin`: let the policy decide about a node again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.name_completion import complete_node
from joulie.cli.options import prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie unpin gpu-b2
  joulie unpin gpu-b2 --all
"""


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.option("--all", "every", is_flag=True, help="Remove every pin of the node, not just the one in force.")
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, node: str, every: bool) -> None:
    """Remove a node's pin, so that the policy decides about it again.

    Of several pins the oldest is in force; that one is removed, and the one that then takes effect is named. A node
    that is not pinned is not an error.
    """
    from joulie.cli.act.pinning import unpin_node

    document = unpin_node(source, node, every, out.tell)
    if not out.for_people:
        out.document(document)
