"""`joulie unpin`: the policy decides about the node again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.complete import complete_node
from joulie.cli.options import prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie unpin gpu-b2
  joulie unpin gpu-b2 --all
"""


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.option("--all", "every", is_flag=True, help="Every pin that names the node, not just the one in force.")
@reads_cluster
@prints_result
def command(source: Source, out: Output, node: str, every: bool) -> None:
    """Remove a node's pin, so that the policy decides about it again.

    Of several pins the oldest is in force; that one is removed, and it is said which one counts then. A node that is
    not pinned is no fault.
    """
    from joulie.cli.pinning import unpin_node

    document = unpin_node(source, node, every, out.tell)
    if not out.for_people:
        out.document(document)
