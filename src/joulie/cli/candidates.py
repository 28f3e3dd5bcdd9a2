"""A pod and what every node scores for it: what `score` and `explain pod` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
from msgspec.structs import replace

from joulie.cli.context import STANDARD_INPUT, Cluster, find_pod, read_cluster, read_pod
from joulie.cli.options import Source
from joulie.control.placement import NodeScore, ScoreTable, score_pod, score_table
from joulie.model.api import NodeTwin, NodeTwinSpec
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Pod, Snapshot
from joulie.overview.fit import misfits


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node as a place for the pod."""

    score: NodeScore
    state: str
    headroom_before: float  # percent of the power budget that is free without the pod
    misfit: str  # why kube-scheduler would not bind the pod here; empty where it would

    @property
    def node(self) -> str:
        return self.score.node

    @property
    def open(self) -> bool:
        return self.score.feasible and not self.misfit


@dataclass(frozen=True)
class Candidates:
    """Every node of a cluster as a place for one pod."""

    cluster: Cluster
    snapshot: Snapshot  # whose twins were asked: those of the files, or with --what-if those that would be written
    pod: Pod
    table: ScoreTable
    scores: list[NodeScore]  # sorted by node
    what_if: bool

    @property
    def pod_name(self) -> str:
        return f"{self.pod.namespace}/{self.pod.name}"

    def best_first(self) -> list[Candidate]:
        """Places that the pod could get first, then those that Joulie rejects, then those without room; by score."""
        misfit_of = misfits(self.snapshot, self.pod)
        row_of = {node: row for row, node in enumerate(self.table.rows)}
        found = [
            Candidate(
                score,
                self.table.classes[row_of[score.node]],
                float(self.table.prepared.headroom[row_of[score.node]]),
                misfit_of.get(score.node, ""),
            )
            for score in self.scores
        ]
        return sorted(found, key=lambda c: (bool(c.misfit), not c.score.feasible, -c.score.score, c.node))

    def hint(self) -> str:
        """What to do about scores that are all neutral; empty where they are not."""
        if not self.scores or any(score.breakdown is not None for score in self.scores):
            return ""
        if self.what_if:
            selector = self.cluster.settings.plan.node_selector.text
            return f"no node is in scope ({selector}), so all scores are neutral; to take all nodes: --selector ''"
        return "no node has a fresh twin, so all scores are neutral; for real numbers: --what-if"

    def document(self) -> dict[str, Any]:
        """The stable JSON of SPEC section 11."""
        return {"pod": self.pod_name, "workloadClass": self.pod.workload_class, "nodes": self.scores}


def candidates(source: Source, pod_name: str | None, pod_file: str | None, *, what_if: bool) -> Candidates:
    """Reads cluster and pod and scores every node."""
    if (pod_name is None) == (pod_file is None):
        raise _usage("give either --pod NAMESPACE/NAME or --pod-file FILE")
    if pod_file == STANDARD_INPUT and STANDARD_INPUT in source.filenames:
        raise _usage("standard input cannot hold both the cluster (-f -) and the pod (--pod-file -)")
    cluster = read_cluster(source)
    place = cluster.place if cluster.live is None else f"{cluster.place}, or has finished"
    pod = find_pod(cluster.snapshot, pod_name, place) if pod_name is not None else read_pod(pod_file or "")
    snapshot = foreseen(cluster, pod) if what_if else cluster.snapshot
    table = score_table(
        snapshot,
        cluster.score_settings,
        cluster.settings.marginal,
        cluster.settings.hardware,
        cluster.catalogue,
        cluster.now_s,
    )
    return Candidates(cluster, snapshot, pod, table, score_pod(table, pod), what_if)


def foreseen(cluster: Cluster, pod: Pod) -> Snapshot:
    """The cluster with the twins that `decide` would write now; the pod itself is taken off its node before."""
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
