"""Where a pod fits and which node kube-scheduler would take: shared by the live demo and the replays. Pure.

Of kube-scheduler's own plug-ins it has the two that matter here: what fits (resources, GPU model, taint) and
LeastAllocated. An extender's score counts ten times as much, as with kube-scheduler's weight 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from joulie.demo.scenario.jobs import DemoJob
from joulie.demo.scenario.machines import NodePlace

EXTENDER_WEIGHT = 10


class FreeRoom:
    """What is free on each node."""

    def __init__(self, places: Iterable[NodePlace]) -> None:
        self.places = {place.name: place for place in places}
        self._free_cores = {name: place.cores for name, place in self.places.items()}
        self._free_gpus = {name: place.gpus for name, place in self.places.items()}

    def fitting(self, job: DemoJob) -> list[str]:
        """The nodes that the job may run on and that have room for it, by name."""
        return [
            name
            for name, place in self.places.items()
            if place.gpu_model == job.gpu_model
            and self._free_cores[name] >= job.cores
            and self._free_gpus[name] >= job.gpus
        ]

    def take(self, node: str, job: DemoJob) -> None:
        self._free_cores[node] -= job.cores
        self._free_gpus[node] -= job.gpus

    def give_back(self, node: str, job: DemoJob) -> None:
        self._free_cores[node] += job.cores
        self._free_gpus[node] += job.gpus

    def least_allocated(self, node: str, job: DemoJob) -> int:
        """LeastAllocated: the share that stays free with the job there, 0 to 100, mean of CPU and GPU."""
        place = self.places[node]
        free = [(self._free_cores[node] - job.cores) / place.cores]
        if job.gpus:
            free.append((self._free_gpus[node] - job.gpus) / place.gpus)
        return int(100.0 * sum(free) / len(free))

    def best(self, job: DemoJob, nodes: Sequence[str], extender_scores: Mapping[str, int] | None = None) -> str | None:
        """The node with the highest sum of scores, of equals the first by name."""
        if not nodes:
            return None
        extra = extender_scores or {}
        return min(
            nodes,
            key=lambda name: (-(EXTENDER_WEIGHT * extra.get(name, 0) + self.least_allocated(name, job)), name),
        )
