"""The CPU packages of many nodes, one element a node: power under caps and throttling, heat, speed, energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulie.plant.curves import Numbers, ShapeTable, frequency_for, power_at
from joulie.plant.machines import CpuKind
from joulie.plant.settling import CPU_CAP_TAU_S, CPU_TELEMETRY_TAU_S, settle, share_gone
from joulie.plant.thermals import CPU_THERMALS, DESIGN_INLET_C, heat, throttled_frequency
from joulie.plant.work import cpu_speed

Which = int | slice | NDArray[np.intp] | NDArray[np.bool_]


class Cpus:
    """Watts are of all packages of a node together."""

    # What one step hands to the next; everything else follows from it.
    STATE = (
        *("cap_is_set", "cap_target_w", "cap_w", "throttle_target_pct", "throttle_pct"),
        *("temperature_c", "average_w", "power_w", "energy_j", "work_s"),
    )

    def __init__(self, kinds: Sequence[CpuKind]) -> None:
        self.max_w = np.asarray([kind.max_w for kind in kinds], dtype=np.float64)
        self.cap_max_w = np.asarray([kind.cap_max_w for kind in kinds], dtype=np.float64)
        self.min_w = np.asarray([kind.min_w for kind in kinds], dtype=np.float64)
        self.idle_w = np.asarray([kind.idle_w for kind in kinds], dtype=np.float64)
        self.cores = np.asarray([kind.cores for kind in kinds], dtype=np.float64)
        self.floor = np.asarray([kind.frequency_floor for kind in kinds], dtype=np.float64)
        self._shapes = ShapeTable([kind.shape for kind in kinds])
        count = len(kinds)
        self.cap_is_set = np.zeros(count, dtype=bool)  # a cap at the maximum is one, too
        self.cap_target_w, self.cap_w = self.cap_max_w.copy(), self.cap_max_w.copy()
        self.throttle_target_pct, self.throttle_pct = np.zeros(count), np.zeros(count)
        self.temperature_c = DESIGN_INLET_C + CPU_THERMALS.resistance_c_per_w(self.max_w) * self.idle_w
        self.energy_j, self.work_s = np.zeros(count), np.zeros(count)  # work: core-seconds at uncapped speed
        self.power_w, self.average_w = self.idle_w.copy(), self.idle_w.copy()  # power: mean of the last step
        self.demand_w = self.idle_w.copy()  # what the load would draw uncapped
        self.frequency, self.speed = np.ones(count), np.ones(count)  # over uncapped
        self.thermal_throttle = np.zeros(count)

    def set_cap_w(self, which: Which, watts: Numbers | float | None) -> None:
        """A power cap, moved into the hardware's range; None puts back the uncapped state."""
        self.cap_is_set[which] = watts is not None
        low_w, high_w = self.min_w[which], self.cap_max_w[which]
        self.cap_target_w[which] = high_w if watts is None else np.clip(watts, low_w, high_w)

    def set_throttle_pct(self, which: Which, pct: Numbers | float) -> None:
        """0: full frequency, 100: the frequency floor."""
        self.throttle_target_pct[which] = np.clip(pct, 0.0, 100.0)

    def step(
        self,
        dt_s: float,
        load: Numbers,
        memory_intensity: Numbers,
        io_intensity: Numbers,
        inlet_c: Numbers | float,
        powered: Numbers | None = None,
    ) -> None:
        """Let `dt_s` pass at a load from 0 to 1; `powered` is the share of the time that a node is switched on."""
        cap_w = settle(self.cap_w, self.cap_target_w, dt_s, CPU_CAP_TAU_S)
        throttle_pct = settle(self.throttle_pct, self.throttle_target_pct, dt_s, CPU_CAP_TAU_S)
        demand_w = self.max_w * self._shapes.at(load)
        frequency = 1.0 - throttle_pct / 100.0 * (1.0 - self.floor)
        capped = np.flatnonzero(cap_w < demand_w)
        if capped.size:
            held = frequency_for(cap_w[capped], self.idle_w[capped], demand_w[capped], self.floor[capped])
            frequency[capped] = np.minimum(frequency[capped], held)
        power_w = demand_w.copy()
        slowed = np.flatnonzero(frequency < 1.0)
        if slowed.size:
            power_w[slowed] = power_at(frequency[slowed], self.idle_w[slowed], demand_w[slowed])

        def hot_power_w(throttle: Numbers, hot: NDArray[np.intp]) -> Numbers:
            lowered = np.minimum(frequency[hot], throttled_frequency(throttle, self.floor[hot]))
            hot_w = power_at(lowered, self.idle_w[hot], demand_w[hot])
            return hot_w if powered is None else hot_w * powered[hot]

        if powered is not None:
            power_w *= powered
        heating = heat(CPU_THERMALS, self.temperature_c, inlet_c, self.max_w, power_w, hot_power_w, dt_s)
        self.thermal_throttle = heating.throttle
        self.frequency = np.minimum(frequency, throttled_frequency(heating.throttle, self.floor))
        self.temperature_c = heating.temperature_c
        self.power_w, self.demand_w = heating.power_w, demand_w
        self.average_w += (self.power_w - self.average_w) * share_gone(dt_s, CPU_TELEMETRY_TAU_S)
        self.energy_j += self.power_w * dt_s
        self.speed = cpu_speed(self.frequency, memory_intensity, io_intensity)
        working = self.speed if powered is None else self.speed * powered
        self.work_s += load * self.cores * working * dt_s
