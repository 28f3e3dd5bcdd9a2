"""`joulie twin`: what each node's digital twin predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import ambient_option, prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  kubectl get nodes,pods -A -o json | joulie twin -f - --selector ''
  joulie twin -f cluster.yaml --ambient 35
  joulie twin -f cluster.yaml -o json

\b
How to read it:
  headroom  room for more work: how far the caps are open × how much cooling is left; 100 is all
  cooling   share of the cooling capacity that the node would use at its caps
  supply    share of the rack's power capacity in use
  draws     power now; from files always estimated from caps and requests (source: static)
  budget    what the caps allow, of what the hardware can draw
"""


@click.command(epilog=_EPILOG)
@reads_objects
@ambient_option
@prints_result
def command(source: Source, out: Output) -> None:
    """What each node's digital twin predicts.

    Decides like `joulie plan` and shows, for every node in scope, the status that the operator would write to its
    NodeTwin: power headroom, cooling and supply stress, power drawn and allowed.
    """
    from joulie.cli.context import read_cluster

    cluster = read_cluster(source)
    twins = cluster.plan.twins
    if not len(twins):
        from joulie.cli.scope import say_that_no_node_is_in_scope

        say_that_no_node_is_in_scope(cluster)
    if not out.for_people:
        out.document([{"node": node, "status": twins.status(row)} for row, node in enumerate(twins.nodes)])
        return
    from joulie.cli.twin_table import print_twins

    print_twins(out.console(), twins)
