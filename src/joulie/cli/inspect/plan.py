"""`joulie plan`: which nodes to cap, by how much, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie plan                     what the next decision would change in this cluster
  joulie plan --all               every node, changed or not
  joulie plan --selector ''       all nodes, before any is labelled joulie.io/managed=true
  kubectl get nodes,pods -A -o json | joulie plan -f -
  kubectl get nodes,pods -A -o json | joulie plan -f - --selector ''
  joulie plan -f cluster.yaml --policy queue_aware_v1
  STATIC_HP_FRAC=0.25 CPU_ECO_CAP_PCT_OF_MAX=50 joulie plan -f cluster.yaml -o json

\b
What the states mean:
  performance  full power
  eco          capped; performance-only pods stay away
  draining     will become eco; full power until its last performance-only pod has left
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--diff/--all",
    "diff",
    default=None,
    help="Show only nodes that would change, or every node.  [default: --diff on a live cluster, --all for files]",
)
@reads_objects
@prints_result
def command(source: ObjectSource, out: Output, diff: bool | None) -> None:
    """Which nodes to cap, by how much, and why.

    Reads Nodes and Pods (and Joulie's own objects, if there are any) and shows what the operator would do with them,
    densest node first. Nothing is changed. On a live cluster with an operator, that operator's settings apply,
    unless the local environment overrides them. JSON and YAML always contain the whole plan.

    Only nodes that the selector matches are planned: by default those labelled joulie.io/managed=true. Reserved and
    cordoned nodes are left alone.
    """
    from joulie.cli.context import read_cluster, warn_of_empty_scope
    from joulie.cli.views.plan_json import plan_document

    cluster = read_cluster(source)
    plan = cluster.plan
    if not plan.assignments:
        warn_of_empty_scope(cluster)
    if not out.for_people:
        out.document(plan_document(plan))
        return
    if cluster.live is not None if diff is None else diff:
        from joulie.cli.inspect.plan_diff import print_diff

        print_diff(out.console(), cluster)
        return
    from joulie.cli.views.plan_table import print_plan

    print_plan(out.console(), cluster)
