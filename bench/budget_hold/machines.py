"""The machines: a simulator in a thread of its own, whose power is compared with the limits every 100 ms."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, trusting
from joulie.control.budget.envelopes import GPU_OVERSHOOT, GPU_REST_PER_W, GPU_REST_SHARE, OTHER_REST_SHARE
from joulie.settings import SimulatorSettings, load
from joulie.simulator.faults import Fault
from joulie.simulator.process import serving
from joulie.simulator.simulation import Simulation
from testbed.control_plane import ControlPlane
from tests.support.static_token import StaticToken

SAMPLE_S = 0.1
Numbers = NDArray[np.float64]


@dataclass
class Excess:
    """How far above its limit a group was, and for how long in all."""

    watts: float = 0.0
    seconds: float = 0.0
    group: str = ""


@dataclass
class Meter:
    """What was seen since it was last read. Margins are shares of a limit; negative: above it."""

    samples: int = 0
    worst: tuple[float, str] = (1.0, "")
    excess: Excess = field(default_factory=Excess)


class Machines:
    """All simulated nodes; `groups` are the names of the nodes of each group, `limits` the watts that they may draw."""

    def __init__(self, plane: ControlPlane, groups: Mapping[str, list[str]]) -> None:
        settings = load(SimulatorSettings, {"SIM_STEP": f"{SAMPLE_S}s", "MAX_CONNECTIONS": "1024"})
        self.simulation = Simulation(settings)
        self.groups = groups
        self.limits: dict[str, float] = {}
        self.url = ""
        self._plane = plane
        self._meter = Meter()
        self._lock = threading.Lock()
        self._rows: tuple[int, dict[str, NDArray[np.intp]]] = (-1, {})

    @contextmanager
    def running(self) -> Iterator[None]:
        ready, stop = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._run(ready, stop)), daemon=True)
        thread.start()
        if not ready.wait(30):
            raise TimeoutError("the simulator did not start")
        try:
            yield
        finally:
            stop.set()
            thread.join(20)

    def read(self) -> Meter:
        """What was seen since the last reading."""
        with self._lock:
            seen, self._meter = self._meter, Meter()
            return seen

    def drawn_w(self) -> dict[str, float]:
        """By group, as the budget counts it: devices as they draw, and the rest by its rule."""
        return self._by_group(self._node_w())

    def allowed_w(self) -> dict[str, float]:
        """By group: what its nodes may draw under the caps that devices hold."""
        return self._by_group(self.allowed_by_node_w())

    def top_w(self) -> dict[str, float]:
        """By group: what its nodes may draw without any cap."""
        fleet = self.simulation.fleet
        return self._by_group(self._most_w(fleet.cpus.cap_max_w, fleet.gpus.max_w))

    def fit(self, limits: Mapping[str, float]) -> bool:
        """Whether both caps and power are within the limits: devices take a moment to settle to a new cap."""
        allowed_w, drawn_w = self.allowed_w(), self.drawn_w()
        return all(allowed_w[name] <= watts * 1.0001 and drawn_w[name] <= watts for name, watts in limits.items())

    def allowed_by_node_w(self) -> Numbers:
        fleet = self.simulation.fleet
        return self._most_w(fleet.cpus.cap_target_w, fleet.gpus.cap_target_w)

    def reboot(self, node: str) -> None:
        """Its caps are gone at once."""
        self.simulation.put_fault(node, Fault("reboot"))

    def lie(self, node: str, how: str) -> None:
        self.simulation.put_fault(node, Fault("lying", how))

    def disconnect(self, node: str) -> None:
        """Neither telemetry nor control answers; the devices go on."""
        self.simulation.put_fault(node, Fault("gone", "closed"))

    def mend(self, node: str) -> None:
        self.simulation.put_fault(node, Fault("none"))

    def _node_w(self) -> Numbers:
        fleet = self.simulation.fleet
        gpu_w = fleet.gpu_w
        watts: Numbers = fleet.cpus.power_w + gpu_w * (1 + GPU_REST_PER_W) + self._fixed_rest_w()
        return watts

    def _most_w(self, cpu_cap_w: Numbers, board_cap_w: Numbers) -> Numbers:
        """Of each node under these caps; the rest of a node draws in proportion to what its boards are limited to."""
        boards_w = self.simulation.fleet.by_node(board_cap_w)
        watts: Numbers = cpu_cap_w + boards_w * (GPU_OVERSHOOT + GPU_REST_PER_W) + self._fixed_rest_w()
        return watts

    def _by_group(self, watts: Numbers) -> dict[str, float]:
        return {group: float(watts[rows].sum()) for group, rows in self._of_groups().items()}

    def _fixed_rest_w(self) -> Numbers:
        fleet = self.simulation.fleet
        boards_w = fleet.by_node(fleet.gpus.max_w)
        rest: Numbers = np.where(boards_w > 0, GPU_REST_SHARE * boards_w, OTHER_REST_SHARE * fleet.cpus.max_w)
        return rest

    def _of_groups(self) -> dict[str, NDArray[np.intp]]:
        index = self.simulation.index
        if self._rows[0] != len(index):
            rows = {
                group: np.array([index[name] for name in names if name in index], dtype=np.intp)
                for group, names in self.groups.items()
            }
            self._rows = (len(index), rows)
        return self._rows[1]

    def _sample(self) -> None:
        limits = dict(self.limits)
        drawn = self.drawn_w() if limits and self.simulation.index else {}
        with self._lock:
            meter = self._meter
            meter.samples += bool(drawn)
            above = False
            for group, watts in drawn.items():
                if group not in limits:
                    continue
                meter.worst = min(meter.worst, (1.0 - watts / limits[group], group))
                if watts > limits[group]:
                    above = True
                    if watts - limits[group] > meter.excess.watts:
                        meter.excess.watts, meter.excess.group = watts - limits[group], group
            meter.excess.seconds += SAMPLE_S if above else 0.0

    async def _run(self, ready: threading.Event, stop: threading.Event) -> None:
        plane = self._plane
        credentials = Credentials(plane.url, StaticToken(plane.admin_token), ssl_context=trusting(plane.ca_file))
        cluster = KubernetesCluster(credentials)
        async with serving(self.simulation, cluster=cluster) as running:
            self.url = running.url
            ready.set()
            due_s = time.monotonic()
            while not stop.is_set():
                self._sample()
                due_s = max(due_s + SAMPLE_S, time.monotonic())
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        await cluster.close()
