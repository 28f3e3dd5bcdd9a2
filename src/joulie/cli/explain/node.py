"""`joulie explain node`: hardware, rank, pin, guard, caps and twin of one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.name_completion import complete_node
from joulie.cli.options import ambient_option, prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie explain node gpu-b2
  joulie explain node gpu-b2 -f cluster.yaml
  joulie explain node gpu-b2 -f cluster.yaml --policy queue_aware_v1
  kubectl get nodes,pods -A -o json | joulie explain node gpu-b2 -f - --selector ''
"""


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@reads_objects
@ambient_option
@prints_result
def command(source: ObjectSource, out: Output, node: str) -> None:
    """Hardware, rank, pin, guard, caps and twin of one node.

    Shows the node's current state, where each fact about its hardware comes from, what the policy decided, which pods
    hold up a drain, and how the twin's numbers are calculated, with the formulas filled in.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.explain.node_story import node_document, print_node, story_of

    story = story_of(read_cluster(source), node)
    if out.for_people:
        print_node(out.console(), story)
    else:
        out.document(node_document(story))
