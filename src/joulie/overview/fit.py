"""What kube-scheduler would say of a node, as far as taints, labels, cores and GPUs tell: a hint, not a decision.

Joulie's filter and score say nothing about these, because kube-scheduler has looked at them before it asks. People who
read scores without a scheduler have to know. Memory, ports, volumes, spreading and the like are not looked at.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from joulie.model.names import UNCAPPED_TAINT
from joulie.model.snapshot import Node, Pod, Snapshot, Taint


def misfits(snapshot: Snapshot, pod: Pod) -> Mapping[str, str]:
    """Why the pod would not get onto a node, by node; nodes that would take it are not here."""
    taken = _taken(other for other in snapshot.pods if (other.namespace, other.name) != (pod.namespace, pod.name))
    found = {name: _misfit(node, pod, *taken[name]) for name, node in snapshot.nodes.items()}
    return {name: reason for name, reason in found.items() if reason}


def _taken(pods: Iterable[Pod]) -> defaultdict[str, tuple[float, float]]:
    """Cores and GPUs that are reserved on each node."""
    cores: defaultdict[str, list[float]] = defaultdict(list)
    gpus: defaultdict[str, list[float]] = defaultdict(list)
    for pod in pods:
        if pod.node and not pod.finished:
            cores[pod.node].append(pod.cpu_cores)
            gpus[pod.node].append(pod.gpus)
    sums = {node: (math.fsum(cores[node]), math.fsum(gpus[node])) for node in cores}
    return defaultdict(lambda: (0.0, 0.0), sums)


_KEEPING_OFF = ("NoSchedule", "NoExecute")
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def _wanted(node: Node, pod: Pod) -> bool:
    """Node selector and required affinity; preferences only order nodes."""
    if any(node.labels.get(key) != value for key, value in (pod.node_selector or {}).items()):
        return False
    terms = pod.required_terms
    return terms is None or any(all(one.matches(node.labels) for one in term) for term in terms)


def _misfit(node: Node, pod: Pod, cores_taken: float, gpus_taken: float) -> str:
    if node.unschedulable and not any(one.covers(_CORDON) for one in pod.tolerations):
        return "cordoned"
    for taint in node.taints:
        if taint.effect in _KEEPING_OFF and taint != _CORDON and not any(one.covers(taint) for one in pod.tolerations):
            if taint.key == UNCAPPED_TAINT:
                return f"no power cap of it is confirmed yet (taint {taint})"
            return f"taint {taint} not tolerated"
    if not _wanted(node, pod):
        return "its labels do not match the pod's node selector or affinity"
    if pod.gpus > 0 and not node.capacity_gpus:
        return "no GPU"
    if pod.gpus > node.capacity_gpus - gpus_taken:
        return _short(node.capacity_gpus - gpus_taken, node.capacity_gpus, "GPUs")
    if node.capacity_cores and pod.cpu_cores > node.capacity_cores - cores_taken:
        return _short(node.capacity_cores - cores_taken, node.capacity_cores, "cores")
    return ""


def _short(free: float, there: float, what: str) -> str:
    return f"{max(0.0, round(free, 1)):g} of {round(there, 1):g} {what} free"
