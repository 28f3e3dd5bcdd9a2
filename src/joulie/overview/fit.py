"""What kube-scheduler would say of a node, as far as cores and GPUs tell: a hint, not a decision of Joulie's.

Joulie's filter and score say nothing about free cores and GPUs, because kube-scheduler has looked at them before it
asks. Somebody who reads scores without a scheduler has to know.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from joulie.model.snapshot import Node, Pod, Snapshot


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


def _misfit(node: Node, pod: Pod, cores_taken: float, gpus_taken: float) -> str:
    if node.unschedulable:
        return "cordoned"
    if pod.gpus > 0 and not node.capacity_gpus:
        return "no GPU"
    if pod.gpus > node.capacity_gpus - gpus_taken:
        return _short(node.capacity_gpus - gpus_taken, node.capacity_gpus, "GPUs")
    if node.capacity_cores and pod.cpu_cores > node.capacity_cores - cores_taken:
        return _short(node.capacity_cores - cores_taken, node.capacity_cores, "cores")
    return ""


def _short(free: float, there: float, what: str) -> str:
    return f"{max(0.0, round(free, 1)):g} of {round(there, 1):g} {what} free"
