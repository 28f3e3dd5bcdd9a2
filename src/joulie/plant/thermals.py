"""Temperature follows power with a lag; a device that gets too hot throttles towards its frequency floor.

The rules: docs/reference/behaviour.md, 'Plant'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.plant.curves import Numbers
from joulie.plant.settling import share_gone

DESIGN_INLET_C = 25.0
_HALVINGS = 30  # throttle to nine digits


class Thermals(NamedTuple):
    """Of one sort of device."""

    at_max_c: float  # at maximum power and the design inlet
    tau_s: float
    throttle_from_c: float
    throttle_to_c: float  # at the frequency floor from here on

    def resistance_c_per_w(self, max_w: Numbers) -> Numbers:
        return (self.at_max_c - DESIGN_INLET_C) / max_w

    def throttle(self, temperature_c: Numbers) -> Numbers:
        """0: not at all, 1: to the frequency floor."""
        return throttle_at(temperature_c, self.throttle_from_c, self.throttle_to_c)


def throttle_at(temperature_c: Numbers, from_c: float, to_c: float) -> Numbers:
    """Linear between the two temperatures. One number a device, or one number: the lab compiles it."""
    return np.minimum(np.maximum((temperature_c - from_c) / (to_c - from_c), 0.0), 1.0)


def throttled_frequency(throttle: Numbers, floor: Numbers | float) -> Numbers:
    """Over maximum: 1 at no throttle, the floor at 1."""
    return 1.0 - throttle * (1.0 - floor)


CPU_THERMALS = Thermals(75.0, 60.0, 85.0, 97.0)
GPU_THERMALS = Thermals(70.0, 30.0, 82.0, 92.0)

# Power at a throttle from 0 to 1, of the devices with these indices.
PowerAt = Callable[[Numbers, NDArray[np.intp]], Numbers]


class Heating(NamedTuple):
    """What a step brings: power and throttle over it, temperature at its end."""

    power_w: Numbers
    throttle: Numbers
    temperature_c: Numbers


def heat(
    thermals: Thermals,
    temperature_c: Numbers,
    inlet_c: Numbers | float,
    max_w: Numbers,
    unthrottled_w: Numbers,
    power_at: PowerAt,
    dt_s: float,
) -> Heating:
    """One step in which power and throttle agree with the temperature at its end.

    Solved implicitly, so that a step much longer than the time constant finds the equilibrium instead of swinging
    around it. Less power means less heat means less throttle, so there is exactly one solution.
    """
    resistance = thermals.resistance_c_per_w(max_w)
    gone = share_gone(dt_s, thermals.tau_s)
    ambient_c = np.broadcast_to(np.asarray(inlet_c, dtype=np.float64), temperature_c.shape)
    after_c = temperature_c + (ambient_c + resistance * unthrottled_w - temperature_c) * gone
    throttle = np.zeros_like(temperature_c)
    hot = np.flatnonzero(after_c > thermals.throttle_from_c)
    if not hot.size:
        return Heating(unthrottled_w, throttle, after_c)
    low, high = np.zeros(hot.size), np.ones(hot.size)
    before_c, around_c, rise = temperature_c[hot], ambient_c[hot], resistance[hot]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        end_c = before_c + (around_c + rise * power_at(middle, hot) - before_c) * gone
        too_little = thermals.throttle(end_c) > middle
        low, high = np.where(too_little, middle, low), np.where(too_little, high, middle)
    power_w = unthrottled_w.copy()
    throttle[hot] = high
    power_w[hot] = power_at(high, hot)
    after_c[hot] = before_c + (around_c + rise * power_w[hot] - before_c) * gone
    return Heating(power_w, throttle, after_c)
