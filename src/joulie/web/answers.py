"""The documents of the API, made from what was seen: the cluster, one node, pods, one pod's scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from joulie.control.classify import is_performance_only
from joulie.control.placement.score_table import NodeScore, ScoreTable, score_pod
from joulie.control.scoring import ALL_TERMS, TERMS
from joulie.model.snapshot import Pod
from joulie.overview.findings import Finding
from joulie.overview.summary import ClusterView

SHOWN_FINDINGS = 60
SHOWN_OF_A_KIND = 6


def cluster_document(cluster: ClusterView) -> dict[str, Any]:
    """The overview without racks; of what needs attention, the first of each kind and how many there are."""
    counts: dict[str, int] = {}
    shown: list[Finding] = []
    for one in cluster.attention:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        if counts[one.kind] <= SHOWN_OF_A_KIND and len(shown) < SHOWN_FINDINGS:
            shown.append(one)
    document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(cluster, racks=(), attention=tuple(shown)))
    del document["racks"]
    document["attentionCounts"] = counts
    return document


def rack_lines(cluster: ClusterView) -> list[dict[str, Any]]:
    """Each rack's sums; which nodes it has, the nodes tell."""
    return [
        {
            "name": rack.name,
            "nodes": len(rack.nodes),
            "powerW": rack.power_w,
            "capacityW": rack.capacity_w,
            "states": rack.states,
        }
        for rack in cluster.racks
    ]


def pod_line(pod: Pod, profile_label: str) -> dict[str, Any]:
    """What a list shows of a pod. Its containers, arguments and environment are never read."""
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": pod.node,
        "workloadClass": pod.workload_class,
        "performanceOnly": is_performance_only(pod, profile_label),
        "cpuCores": pod.cpu_cores,
        "gpus": pod.gpus,
        "terminating": pod.terminating,
    }


def find_pods(
    pods: Iterable[Pod], profile_label: str, *, node: str, text: str, offset: int, limit: int
) -> dict[str, Any]:
    """Pods that have not finished, by namespace and name; those that wait for a node first."""
    wanted = text.casefold()
    found = [
        pod
        for pod in pods
        if not pod.finished
        and (not node or pod.node == node)
        and (not wanted or wanted in f"{pod.namespace}/{pod.name}".casefold())
    ]
    found.sort(key=lambda pod: (bool(pod.node), pod.namespace, pod.name))
    lines = [pod_line(pod, profile_label) for pod in found[offset : offset + limit]]
    return {"total": len(found), "offset": offset, "pods": lines}


def pod_document(table: ScoreTable, pod: Pod, misfits: Mapping[str, str], offset: int, limit: int) -> dict[str, Any]:
    """The pod's score on every node, best first: open ones, then refused ones, then those without room."""
    row_of = {name: row for row, name in enumerate(table.rows)}
    scores = score_pod(table, pod)
    terms = TERMS if table.prepared.rooms is None else ALL_TERMS  # what breakdowns have
    shut = {name for name in misfits if name != pod.node}
    scores.sort(key=lambda one: (one.node in shut, not one.feasible, -one.score, one.node))
    return {
        "workloadClass": pod.workload_class,
        "terms": [{"name": term.name, "key": term.key} for term in terms],
        "nodes": [
            _score_line(one, table, row_of[one.node], misfits.get(one.node, ""), place)
            for place, one in enumerate(scores[offset : offset + limit], start=offset + 1)
        ],
        "total": len(scores),
        "open": sum(one.feasible and one.node not in shut for one in scores),
        "offset": offset,
    }


def _score_line(scored: NodeScore, table: ScoreTable, row: int, misfit: str, place: int) -> dict[str, Any]:
    line: dict[str, Any] = msgspec.to_builtins(scored)
    before = None if scored.breakdown is None else float(table.prepared.headroom[row])
    return {**line, "place": place, "state": table.classes[row], "misfit": misfit, "headroomBefore": before}
