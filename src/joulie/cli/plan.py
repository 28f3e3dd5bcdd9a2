"""`joulie plan`: which nodes to cap, by how much, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  kubectl get nodes,pods -A -o json | joulie plan -f -
  kubectl get nodes,pods -A -o json | joulie plan -f - --selector ''
  joulie plan -f cluster.yaml --policy queue_aware_v1
  STATIC_HP_FRAC=0.25 CPU_ECO_CAP_PCT_OF_MAX=50 joulie plan -f cluster.yaml -o json

\b
What the states mean:
  performance  full power
  eco          capped; performance-only pods stay away
  draining     to become eco; full power until its last performance-only pod has left
"""


@click.command(epilog=_EPILOG)
@reads_objects
@prints_result
def command(source: Source, out: Output) -> None:
    """Which nodes to cap, by how much, and why.

    Reads Nodes and Pods (and Joulie's own objects, if there are any) and shows what the operator would do with them,
    densest node first. Nothing is changed.

    Only nodes that the selector takes are planned: by default those labelled joulie.io/managed=true. Reserved and
    cordoned nodes are left alone.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.plan_json import plan_document

    cluster = read_cluster(source)
    plan = cluster.plan
    if not plan.assignments:
        from joulie.cli.scope import say_that_no_node_is_in_scope

        say_that_no_node_is_in_scope(cluster)
    if not out.for_people:
        out.document(plan_document(plan))
        return
    from joulie.cli.plan_table import print_plan

    print_plan(out.console(), cluster)
