"""GPU boards, one element a board (or a group of boards that do the same): power and speed under a cap as measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulie.plant.cpus import Which
from joulie.plant.curves import Numbers, ShapeTable, generic_shape, power_at
from joulie.plant.machines import GPU_FREQUENCY_FLOOR, GPU_IDLE_SHARE, GpuKind
from joulie.plant.settling import GPU_CAP_TAU_S, GPU_TELEMETRY_TAU_S, settle, share_gone
from joulie.plant.sweeps import SATURATED_DRAW, SweepTable
from joulie.plant.thermals import DESIGN_INLET_C, GPU_THERMALS, heat, throttled_frequency

BOARD_SHAPE = generic_shape(GPU_IDLE_SHARE / SATURATED_DRAW)


def board_demand_w(max_w: Numbers, shape: Numbers) -> Numbers:
    """What a load draws uncapped: a saturated board draws less than its limit allows, as in the sweeps."""
    return SATURATED_DRAW * max_w * shape


def limit_share(cap_w: Numbers, demand_w: Numbers) -> Numbers:
    """The limit over the top limit, as it would be for saturated work; 1 and above: it does not bind."""
    return cap_w * SATURATED_DRAW / demand_w


def held_w(demand_w: Numbers, power_share: Numbers, cap_w: Numbers, idle_w: Numbers) -> Numbers:
    """Power under a limit that binds, from the sweep's share of uncapped power; never below idle."""
    return np.maximum(np.minimum(demand_w * power_share, cap_w), idle_w)


class Gpus:
    """Watts are of one board; `boards` says for how many an element stands."""

    STATE = ("cap_is_set", "cap_target_w", "cap_w", "temperature_c", "average_w", "power_w", "energy_j", "work_s")

    def __init__(self, kinds: Sequence[GpuKind], boards: Sequence[int] | None = None) -> None:
        count = len(kinds)
        self.boards = np.ones(count) if boards is None else np.asarray(boards, dtype=np.float64)
        self.max_w = np.asarray([kind.max_w for kind in kinds], dtype=np.float64)
        self.cap_max_w = self.max_w
        self.min_w = np.asarray([kind.min_w for kind in kinds], dtype=np.float64)
        self.idle_w = np.asarray([kind.idle_w for kind in kinds], dtype=np.float64)
        self._shapes = ShapeTable([BOARD_SHAPE] * count)
        self._sweeps = SweepTable([kind.sweep for kind in kinds])
        self.cap_is_set = np.zeros(count, dtype=bool)  # a cap at the maximum is one, too
        self.cap_target_w, self.cap_w = self.max_w.copy(), self.max_w.copy()
        self.temperature_c = DESIGN_INLET_C + GPU_THERMALS.resistance_c_per_w(self.max_w) * self.idle_w
        self.energy_j, self.work_s = np.zeros(count), np.zeros(count)  # work: board-seconds at uncapped speed
        self.power_w, self.average_w = self.idle_w.copy(), self.idle_w.copy()
        self.demand_w = self.idle_w.copy()
        self.speed = np.ones(count)
        self.thermal_throttle = np.zeros(count)

    def set_cap_w(self, which: Which, watts: Numbers | float | None) -> None:
        """A limit for each board, moved into its range; None puts back the default."""
        self.cap_is_set[which] = watts is not None
        low_w, high_w = self.min_w[which], self.max_w[which]
        self.cap_target_w[which] = high_w if watts is None else np.clip(watts, low_w, high_w)

    def step(
        self,
        dt_s: float,
        load: Numbers,
        fed: Numbers,
        inlet_c: Numbers | float,
        powered: Numbers | None = None,
    ) -> None:
        """Let `dt_s` pass at a load from 0 to 1; a board that is fed too slowly waits and draws less."""
        cap_w = settle(self.cap_w, self.cap_target_w, dt_s, GPU_CAP_TAU_S)
        # A saturated board draws less than its limit allows, as in the sweeps; 1 in the shape is that draw.
        demand_w = board_demand_w(self.max_w, self._shapes.at(load * fed))
        power_w, speed = demand_w.copy(), np.ones_like(demand_w)
        share = limit_share(cap_w, demand_w)
        capped = np.flatnonzero(share < 1.0)
        if capped.size:
            slowdown, power = self._sweeps.under(share[capped], capped)
            power_w[capped] = held_w(demand_w[capped], power, cap_w[capped], self.idle_w[capped])
            speed[capped] = 1.0 / slowdown
        if powered is not None:
            power_w *= powered
        cool_w = power_w

        def hot_power_w(throttle: Numbers, hot: NDArray[np.intp]) -> Numbers:
            idle_w = self.idle_w[hot] if powered is None else self.idle_w[hot] * powered[hot]
            return power_at(throttled_frequency(throttle, GPU_FREQUENCY_FLOOR), idle_w, cool_w[hot])

        heating = heat(GPU_THERMALS, self.temperature_c, inlet_c, self.max_w, power_w, hot_power_w, dt_s)
        self.thermal_throttle = heating.throttle
        self.temperature_c = heating.temperature_c
        self.power_w, self.demand_w = heating.power_w, demand_w
        self.average_w += (self.power_w - self.average_w) * share_gone(dt_s, GPU_TELEMETRY_TAU_S)
        self.energy_j += self.power_w * dt_s
        self.speed = fed * speed * throttled_frequency(heating.throttle, GPU_FREQUENCY_FLOOR)
        self.work_s += load * (self.speed if powered is None else self.speed * powered) * dt_s
