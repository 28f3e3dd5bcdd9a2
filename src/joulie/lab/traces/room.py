"""What a cluster has room for: how many pods of a shape fit when it is empty, and how much work it can do uncapped."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from joulie.catalogue.entries import GpuModel
from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.setup import ClusterSetup, NodeGroup
from joulie.lab.model.shapes import MILLI, mcores_of
from joulie.plant.reference import cpu_core_speed, gpu_speed

CPUS, GPUS = "CPUs", "GPUs"
MAX_SLOTS = 1_000_000  # of one node, for a pod that asks for hardly anything


class Nodes(NamedTuple):
    """Nodes that are alike, with what one of them has."""

    machines: int
    cores: float
    gpus: int
    gpu: GpuModel | None
    core_speed: float
    gpu_speed: float

    @property
    def mcores(self) -> int:
        return round(self.cores * MILLI)

    def holds(self, cores: float, gpus: int, gpu_name: str = "") -> int:
        """So many pods of this shape fit on one of them, in thousandths of a core as a run counts them."""
        if gpus and not (self.gpu and gpu_name in ("", self.gpu.name)):
            return 0
        mcores = int(mcores_of(np.asarray(cores)))
        return min(self.mcores // mcores if mcores else MAX_SLOTS, self.gpus // gpus if gpus else MAX_SLOTS)


class Room:
    """A cluster, empty and uncapped."""

    def __init__(self, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue or Catalogue()
        self.nodes = [
            _nodes(group, f"cluster.nodes[{place}]", self._catalogue) for place, group in enumerate(cluster.nodes)
        ]
        self._cpu_work_anywhere = cluster.cpu_work_on_gpu_nodes

    def takes(self, nodes: Nodes, gpus: int) -> bool:
        """Whether pods with so many GPUs may go there; without any, GPU nodes are kept free of them."""
        return bool(gpus) or not nodes.gpus or self._cpu_work_anywhere

    def slots(self, cores: float, gpus: int, gpu_name: str = "") -> int:
        """So many pods of this shape fit into the empty cluster; the model is any that has no name."""
        each = self.on_each(cores, gpus, gpu_name)
        return sum(n.machines * fit for n, fit in zip(self.nodes, each, strict=True))

    def on_each(self, cores: float, gpus: int, gpu_name: str = "") -> list[int]:
        """So many pods of this shape fit on one empty node of each kind."""
        known = self._catalogue.gpu(gpu_name)
        name = known.name if known else gpu_name
        return [n.holds(cores, gpus, name) if self.takes(n, gpus) else 0 for n in self.nodes]

    @property
    def most_gpus(self) -> int:
        return max((n.gpus for n in self.nodes), default=0)

    @property
    def cores_for_cpu_work(self) -> float:
        """Of the largest node that takes it; 0: there is none."""
        return max((n.cores for n in self.nodes if self.takes(n, 0)), default=0.0)

    @property
    def capacity(self) -> dict[str, float]:
        """Units of work a second: cores that take CPU work, and boards, by their speeds."""
        return {
            CPUS: sum(n.machines * n.cores * n.core_speed for n in self.nodes if self.takes(n, 0)),
            GPUS: sum(n.machines * n.gpus * n.gpu_speed for n in self.nodes),
        }


def arrival_span_s(jobs: JobTable, hours: float = 0.0) -> float:
    """From the first to the last; where they were drawn for so many hours, no less than these."""
    between_s = float(jobs.submit_s[-1] - jobs.submit_s[0]) if len(jobs) else 0.0
    return max(between_s, hours * 3600.0) if between_s > 0 else 0.0


def offered_load(
    jobs: JobTable, cluster: ClusterSetup, catalogue: Catalogue | None = None, hours: float = 0.0
) -> dict[str, float]:
    """Work over what the cluster could do, uncapped, while jobs arrive; above 1 a queue only grows."""
    span_s = arrival_span_s(jobs, hours)
    room = Room(cluster, catalogue)
    for_cpus = (jobs.gpus == 0) | cluster.cpu_work_on_gpu_nodes  # pods with boards do their CPU work beside them
    asked = {CPUS: float(jobs.cpu_units[for_cpus].sum()), GPUS: float(jobs.gpu_units.sum())}
    offered = {}
    for resource, capacity in room.capacity.items():
        able = capacity * span_s
        offered[resource] = asked[resource] / able if able > 0 else (math.inf if asked[resource] else 0.0)
    return offered


def _nodes(group: NodeGroup, place: str, catalogue: Catalogue) -> Nodes:
    cpu = catalogue.cpu(group.cpu)
    if cpu is None:
        raise InputError(f"{place}.cpu: {group.cpu!r} is not in the catalogue")
    gpu = catalogue.gpu(group.gpu) if group.gpus else None
    if group.gpus and gpu is None:
        raise InputError(f"{place}.gpu: {group.gpu!r} is not in the catalogue")
    speed = gpu_speed(gpu) if gpu else 0.0
    return Nodes(group.count, cpu.cores * group.sockets, group.gpus, gpu, cpu_core_speed(cpu), speed)
