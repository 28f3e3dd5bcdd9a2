"""The overview of a cluster, shared by `status`, `top`, `doctor` and `explain`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from joulie.cli.context import LoadedCluster
from joulie.overview.budgets import budget_views
from joulie.overview.findings import FindingThresholds
from joulie.overview.nodes import NodeOverview, node_views, pod_counts
from joulie.overview.summary import ClusterView, Facts, cluster_view
from joulie.settings import OperatorSettings, load


class Overview(NamedTuple):
    """Every node, and the whole cluster."""

    nodes: Mapping[str, NodeOverview]
    cluster: ClusterView


def overview_of(cluster: LoadedCluster) -> Overview:
    written = cluster.live.written if cluster.live else None
    nodes = node_views(cluster.snapshot, cluster.settings.plan, cluster.now_s, written)
    pods = pod_counts(cluster.snapshot, cluster.settings.plan).demand
    managed = [name for name, node in nodes.items() if node.managed]
    budgets = budget_views(cluster.budgets, cluster.snapshot.nodes, managed)
    return Overview(nodes, cluster_view(nodes.values(), facts(cluster), cluster.now_s, limits(cluster), pods, budgets))


def limits(cluster: LoadedCluster) -> FindingThresholds:
    """Twins count as stale when the extender treats them as stale."""
    return FindingThresholds(twin_stale_s=cluster.score_settings.twin_staleness_s)


def facts(cluster: LoadedCluster) -> Facts:
    """Facts that the objects themselves do not contain."""
    live = cluster.live
    env = {**(live.operator_settings if live else {}), **os.environ}
    return Facts(
        cluster=live.origin.rpartition("context ")[2] if live else "files",
        leader=live.leader(cluster.now_s) if live else "",
        policy=cluster.settings.plan.policy_type,
        selector=cluster.settings.plan.node_selector.text,
        budget_w=load(OperatorSettings, env).power_budget_w,
        rack_capacity_w=cluster.settings.twin.rack_capacity_w,
    )
