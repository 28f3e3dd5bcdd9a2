"""What the operator is told: readings as old and as noisy as the run says, and the facility's where it asks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.lab.kernels.tick import measure, read_meters
from joulie.lab.kernels.trend import Trends
from joulie.lab.kernels.world import WATT, World
from joulie.lab.model.setup import TelemetrySetup
from joulie.lab.simulation.cluster import LabCluster
from joulie.sources.facility import MAX_PUE, power_usage_effectiveness
from joulie.sources.trend import Window

if TYPE_CHECKING:
    from joulie.lab.simulation.steering import LabSettings

Numbers = NDArray[np.float64]


class _Reading(NamedTuple):
    at_s: float
    power_w: Numbers


class Sensors:
    """One reading a tick and node, taken `lag_s` before it arrives."""

    def __init__(self, setup: TelemetrySetup, settings: LabSettings, cluster: LabCluster, seed: int) -> None:
        decision, interval_s = settings.operator.decision, settings.interval_s
        self.error_pct: list[float] = []
        self.is_static: NDArray[np.bool_] = np.ones(len(cluster), np.bool_)
        self._setup = setup
        self._cluster = cluster
        self._chance = np.random.default_rng([seed, 3])
        self._on_its_way: deque[_Reading] = deque()
        self._last: _Reading | None = None
        self._max_age_s = decision.twin.power_max_age_s
        window = Window.of(max(self._max_age_s, 2 * interval_s), interval_s=interval_s)
        self._trends = Trends(len(cluster), window)
        self.has_facility = settings.operator.enable_facility_metrics
        self._ambient_c = decision.twin.ambient_c

    def take(self, world: World, now_s: float) -> None:
        """A reading of what the packages and boards draw now, which caps act on."""
        if self._setup.source == "static":
            return
        power_w = np.empty(len(world.nodes))
        read_meters(world, power_w)
        if self._setup.noise_pct > 0:
            spread = self._chance.normal(1.0, self._setup.noise_pct / 100.0, len(power_w))
            power_w = np.maximum(power_w * spread, 0.0)
        self._on_its_way.append(_Reading(now_s, power_w))

    def measure(self, world: World, now_s: float, limits: tuple[Numbers, ...], measured_w: Numbers) -> None:
        """The best tier that speaks for each node; `limits` are what caps allow, idle power and maximum."""
        while self._on_its_way and self._on_its_way[0].at_s + self._setup.lag_s <= now_s + 1e-9:
            self._last = self._on_its_way.popleft()
        reading_w = np.empty(0)
        if self._last is not None and self._last.at_s >= now_s - self._max_age_s:
            reading_w = self._last.power_w
        error = np.empty(len(measured_w))
        measure(world, reading_w, limits, measured_w, self.is_static, error)
        self.error_pct.append(float(np.mean(error) * 100.0))

    def trend(self, now_s: float) -> Numbers:
        return self._trends.slopes_w_per_min(now_s)

    def record(self, measured_w: Numbers, now_s: float) -> None:
        """For the trend: when the value was measured, an estimate now."""
        measured_at_s = self._last.at_s if self._last is not None else now_s
        at_s = np.where(self.is_static, now_s, measured_at_s)
        self._trends.record(self.is_static, at_s, measured_w)

    def facility(self, world: World) -> tuple[Numbers, float | None]:
        """The air at each node and the PUE, as a poller would have them; what is set where there is none."""
        zones = world.zones
        if not self.has_facility:
            return np.full(len(self._cluster), self._ambient_c), None
        it_w = float(zones["wall"].sum()) / WATT
        pue = power_usage_effectiveness(it_w, float(zones["cooling_w"].sum()))
        return zones["inlet_c"][world.nodes["zone"]], round(pue, 2) if pue is not None and pue <= MAX_PUE else None
