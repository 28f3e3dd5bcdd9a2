"""Many nodes, stepped together: CPUs, GPUs and the rest of each node, with energy counters and work done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.plant.cpus import Cpus
from joulie.plant.curves import Numbers
from joulie.plant.gpus import Gpus
from joulie.plant.machines import PlantMachine
from joulie.plant.sleep import Sleep
from joulie.plant.thermals import DESIGN_INLET_C
from joulie.plant.work import feeding

# What memory, fans, network and power supplies draw for each watt that the load asks of packages and boards, capped or
# not. CPU: wall over TDP of a two-socket EPYC 9654 (817 / 720 W). GPU: brings a node of 8 × H100 SXM to 8.4 kW, as
# measured.
REST_PER_CPU_W = 0.135
REST_PER_GPU_W = 0.5


def wall_max_w(machine: PlantMachine) -> float:
    """What a node draws at the wall with packages and boards at their limits."""
    cpu_w = machine.cpu.max_w
    return cpu_w * (1 + REST_PER_CPU_W) + (machine.max_w - cpu_w) * (1 + REST_PER_GPU_W)


@dataclass(slots=True)
class FleetLoad:
    """What the nodes work on, all from 0 to 1; one element a node, `gpu` one a board."""

    cpu: Numbers
    memory_intensity: Numbers
    io_intensity: Numbers
    gpu: Numbers
    feed_intensity: Numbers  # how much GPU work needs the node's CPU


class Fleet:
    """The truth about many nodes."""

    def __init__(
        self, machines: Sequence[PlantMachine], *, each_board: bool = True, sleep: Sleep | None = None
    ) -> None:
        """With `each_board` one GPU element a board, else one for all boards of a node."""
        self.machines = tuple(machines)
        self.cpus = Cpus([machine.cpu for machine in machines])
        kinds, boards, nodes = [], [], []
        for node, machine in enumerate(machines):
            if machine.gpu is None:
                continue
            elements = machine.gpus if each_board else min(1, machine.gpus)
            kinds += [machine.gpu] * elements
            boards += [machine.gpus // elements] * elements if elements else []
            nodes += [node] * elements
        self.gpus = Gpus(kinds, boards)
        self.node_of_gpu: NDArray[np.intp] = np.asarray(nodes, dtype=np.intp)
        # Boards of node n are elements gpu_start[n] to gpu_start[n + 1].
        self.gpu_start: NDArray[np.intp] = np.searchsorted(self.node_of_gpu, np.arange(len(machines) + 1))
        self.sleep = sleep
        count = len(machines)
        self.rest_w, self.rest_energy_j = np.zeros(count), np.zeros(count)
        self.node_w = np.zeros(count)  # wall power, mean of the last step
        self.elapsed_s = 0.0

    def __len__(self) -> int:
        return len(self.machines)

    def idle_load(self) -> FleetLoad:
        nodes, gpus = len(self.machines), len(self.node_of_gpu)
        return FleetLoad(np.zeros(nodes), np.zeros(nodes), np.zeros(nodes), np.zeros(gpus), np.zeros(nodes))

    def boards_of(self, node: int) -> slice:
        return slice(int(self.gpu_start[node]), int(self.gpu_start[node + 1]))

    def step(self, dt_s: float, load: FleetLoad, inlet_c: Numbers | float = DESIGN_INLET_C) -> None:
        """Let `dt_s` pass; InputError for an invalid step or load."""
        if not 0 <= dt_s < np.inf:
            raise InputError(f"dt_s={dt_s!r}: a step takes 0 seconds or more")
        _check(load)
        powered, extra_w = (None, 0.0) if self.sleep is None else self.sleep.step(dt_s)
        inlets_c = np.broadcast_to(np.asarray(inlet_c, dtype=np.float64), (len(self),))
        self.cpus.step(dt_s, load.cpu, load.memory_intensity, load.io_intensity, inlets_c, powered)
        here = self.node_of_gpu
        if here.size:
            fed = feeding(self.cpus.frequency, load.feed_intensity)
            self.gpus.step(dt_s, load.gpu, fed[here], inlets_c[here], None if powered is None else powered[here])
        self.rest_w = REST_PER_CPU_W * self.cpus.demand_w + REST_PER_GPU_W * self.by_node(self.gpus.demand_w)
        if powered is not None:
            self.rest_w *= powered
        self.rest_w += extra_w
        self.node_w = self.cpus.power_w + self.gpu_w + self.rest_w
        self.rest_energy_j += self.rest_w * dt_s
        self.elapsed_s += dt_s

    def by_node(self, of_gpus: Numbers) -> Numbers:
        """A quantity of boards, added up for each node."""
        weights = of_gpus * self.gpus.boards
        return np.bincount(self.node_of_gpu, weights=weights, minlength=len(self)).astype(np.float64, copy=False)

    @property
    def gpu_w(self) -> Numbers:
        return self.by_node(self.gpus.power_w)

    @property
    def node_energy_j(self) -> Numbers:
        """What a meter at the wall of each node has counted."""
        total: Numbers = self.cpus.energy_j + self.by_node(self.gpus.energy_j) + self.rest_energy_j
        return total

    def take_over(self, before: Fleet, pairs: Sequence[tuple[int, int]]) -> None:
        """Go on from the state of another fleet, for (node here, node there) of the same hardware."""
        if not pairs:
            return
        here, there = (np.asarray(side, dtype=np.intp) for side in zip(*pairs, strict=True))
        self.rest_energy_j[here] = before.rest_energy_j[there]
        self.rest_w[here], self.node_w[here] = before.rest_w[there], before.node_w[there]
        for name in Cpus.STATE:
            getattr(self.cpus, name)[here] = getattr(before.cpus, name)[there]
        boards_here = [board for node, _ in pairs for board in range(*self.gpu_start[node : node + 2])]
        boards_there = [board for _, node in pairs for board in range(*before.gpu_start[node : node + 2])]
        for name in Gpus.STATE:
            getattr(self.gpus, name)[boards_here] = getattr(before.gpus, name)[boards_there]
        self.elapsed_s = before.elapsed_s


def _check(load: FleetLoad) -> None:
    """One NaN would spread into every counter and never leave."""
    for name in ("cpu", "memory_intensity", "io_intensity", "gpu", "feed_intensity"):
        values = getattr(load, name)
        if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):  # false for NaN
            raise InputError(f"load.{name}: holds a value outside 0 … 1")
