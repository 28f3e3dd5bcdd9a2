"""The shared overview of a cluster that was read: what `status`, `top`, `doctor` and `explain` show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from joulie.cli.context import Cluster
from joulie.overview.findings import Limits
from joulie.overview.nodes import NodeView, node_views
from joulie.overview.summary import ClusterView, Facts, cluster_view
from joulie.settings import OperatorSettings, load


class Seen(NamedTuple):
    """Every node, and all together."""

    nodes: Mapping[str, NodeView]
    cluster: ClusterView


def seen(cluster: Cluster) -> Seen:
    nodes = node_views(cluster.snapshot, cluster.settings.plan, cluster.now_s)
    return Seen(nodes, cluster_view(nodes.values(), facts(cluster), cluster.now_s, limits(cluster)))


def limits(cluster: Cluster) -> Limits:
    """A twin is stale when the extender calls it so."""
    return Limits(twin_stale_s=cluster.score_settings.twin_staleness_s)


def facts(cluster: Cluster) -> Facts:
    """What the objects themselves do not say."""
    live = cluster.live
    env = {**(live.operator_settings if live else {}), **os.environ}
    return Facts(
        cluster=live.origin.rpartition("context ")[2] if live else "files",
        leader=live.leader(cluster.now_s) if live else "",
        policy=cluster.settings.plan.policy_type,
        budget_w=load(OperatorSettings, env).power_budget_w,
        rack_capacity_w=cluster.settings.twin.rack_capacity_w,
    )
