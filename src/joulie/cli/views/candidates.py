"""A pod and its score on every node, for `score`, `explain pod` and `tour`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
from msgspec.structs import replace

from joulie.cli.context import STANDARD_INPUT, LoadedCluster, find_pod, read_cluster, read_pod
from joulie.cli.options import ObjectSource
from joulie.control.placement.score_table import NodeScore, ScoreTable, score_pod, score_table, shortage
from joulie.model.api import NodeTwin, NodeTwinSpec
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Pod, Snapshot
from joulie.overview.fit import misfits


@dataclass(frozen=True, slots=True)
class NodeCandidate:
    """One node as a candidate for the pod."""

    score: NodeScore
    state: str
    headroom_before: float  # percent of the power budget that is free without the pod
    misfit: str  # why kube-scheduler would not bind the pod here; empty if it would
    shortage: str = ""  # which group of budgets has too little room for the pod

    @property
    def node(self) -> str:
        return self.score.node

    @property
    def open(self) -> bool:
        return self.score.feasible and not self.misfit


@dataclass(frozen=True)
class PodCandidates:
    """Every node of a cluster as a candidate for one pod."""

    cluster: LoadedCluster
    snapshot: Snapshot  # with the twins that are scored: the stored ones, or those of --what-if
    pod: Pod
    table: ScoreTable
    scores: list[NodeScore]  # sorted by node
    what_if: bool

    @property
    def pod_name(self) -> str:
        return f"{self.pod.namespace}/{self.pod.name}"

    def best_first(self) -> list[NodeCandidate]:
        """Nodes that would take the pod, then those that Joulie rejects, then those without room; each by score."""
        misfit_of = misfits(self.snapshot, self.pod)
        row_of = {node: row for row, node in enumerate(self.table.rows)}
        found = [
            NodeCandidate(
                score,
                self.table.classes[row_of[score.node]],
                float(self.table.prepared.headroom[row_of[score.node]]),
                misfit_of.get(score.node, ""),
                shortage(self.table, row_of[score.node], score.breakdown),
            )
            for score in self.scores
        ]
        return sorted(found, key=lambda c: (bool(c.misfit), not c.score.feasible, -c.score.score, c.node))

    def hint(self) -> str:
        """What to do if all scores are neutral; otherwise empty."""
        if not self.scores or any(score.breakdown is not None for score in self.scores):
            return ""
        if self.what_if:
            selector = self.cluster.settings.plan.node_selector.text
            return f"no node is in scope ({selector}), so all scores are neutral; to select all nodes: --selector ''"
        return "no node has a fresh twin, so all scores are neutral; for real numbers: --what-if"

    def document(self) -> dict[str, Any]:
        """The JSON output of `score`, a stable format."""
        return {"pod": self.pod_name, "workloadClass": self.pod.workload_class, "nodes": self.scores}


def candidates(source: ObjectSource, pod_name: str | None, pod_file: str | None, *, what_if: bool) -> PodCandidates:
    """Reads the cluster and the pod, and scores every node."""
    if (pod_name is None) == (pod_file is None):
        raise _usage("pass either --pod NAMESPACE/NAME or --pod-file FILE")
    if pod_file == STANDARD_INPUT and STANDARD_INPUT in source.filenames:
        raise _usage("standard input cannot hold both the cluster (-f -) and the pod (--pod-file -)")
    cluster = read_cluster(source)
    place = cluster.place if cluster.live is None else f"{cluster.place}, or has finished"
    pod = find_pod(cluster.snapshot, pod_name, place) if pod_name is not None else read_pod(pod_file or "")
    snapshot = what_if_snapshot(cluster, pod) if what_if else cluster.snapshot
    table = score_table(
        snapshot,
        cluster.score_settings,
        cluster.settings.marginal,
        cluster.settings.hardware,
        cluster.catalogue,
        cluster.now_s,
        cluster.budgets,
    )
    return PodCandidates(cluster, snapshot, pod, table, score_pod(table, pod), what_if)


def what_if_snapshot(cluster: LoadedCluster, pod: Pod) -> Snapshot:
    """The cluster with the twins that `decide` would write now, after taking the pod itself off its node."""
    elsewhere = [other for other in cluster.snapshot.pods if (other.namespace, other.name) != (pod.namespace, pod.name)]
    before = replace(cluster.snapshot, pods=(*elsewhere, replace(pod, node="")))
    twins = cluster.decide(before).twins
    written = {
        node: NodeTwin(ObjectMeta(node), NodeTwinSpec(node_name=node), twins.status(row))
        for row, node in enumerate(twins.nodes)
    }
    return replace(before, twins=written)


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
