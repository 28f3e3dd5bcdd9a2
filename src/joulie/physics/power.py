"""Node power: what caps allow, what utilisation implies, what can be assumed without telemetry.

The rules: docs/reference/behaviour.md, 'Node power'.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.entries import CURVE_SOCKETS
from joulie.physics.hardware import IDLE_SHARE, Machine

Numbers = NDArray[np.float64]

BELIEVABLE_TIMES_MAX = 1.5
UTILISATION_EXPONENT = 1.15
FREQUENCY_EXPONENT = 1.35
_CURVE_LOADS = np.linspace(0.0, 1.0, 11)


def capped_power_w(max_w: Numbers | float, cap_pct: Numbers | float) -> Numbers:
    """The power that a cap in percent of the maximum allows."""
    return np.asarray(max_w * cap_pct / 100.0)


@overload
def is_believable(power_w: float, node_max_w: float) -> bool: ...
@overload
def is_believable(power_w: Numbers, node_max_w: Numbers) -> NDArray[np.bool_]: ...
def is_believable(power_w: Any, node_max_w: Any) -> Any:
    """A sensor that reads negative, NaN or far more than the hardware can draw is not believed."""
    return (power_w >= 0) & (power_w <= BELIEVABLE_TIMES_MAX * node_max_w)  # false for NaN


def static_power_w(capped_w: Numbers | float, idle_w: Numbers | float, pods_w: Numbers | float) -> Numbers:
    """The estimate without any telemetry: idle power and what the pods add, at most what the caps allow."""
    return np.minimum(capped_w, idle_w + pods_w)


def curve_power_w(curve_w: tuple[float, ...], load: float) -> float:
    """A point of a published curve; linear between its points, so it rises wherever they do."""
    return float(np.interp(load, _CURVE_LOADS, np.asarray(curve_w)))


def modelled_power_w(idle_w: float, max_w: float, load: float, frequency: float = 1.0) -> float:
    """The generic curve for hardware without a published one."""
    return idle_w + (max_w - idle_w) * float(load**UTILISATION_EXPONENT * frequency**FREQUENCY_EXPONENT)


def utilisation_power_w(machine: Machine, cpu_load: float | None, gpu_load: float | None) -> float | None:
    """Node power that these loads (0 to 1) imply; None when a load that is needed is not known or no load."""
    needed = (cpu_load,) if not machine.gpu_count else (cpu_load, gpu_load)
    loads = [load for load in needed if load is not None and math.isfinite(load) and 0 <= load <= 1]
    if len(loads) != len(needed):
        return None
    if machine.cpu_curve_w is not None:
        power_w = curve_power_w(machine.cpu_curve_w, loads[0]) * machine.sockets / CURVE_SOCKETS
    else:
        power_w = modelled_power_w(IDLE_SHARE * machine.cpu_max_w, machine.cpu_max_w, loads[0])
    if machine.gpu_count:
        power_w += modelled_power_w(IDLE_SHARE * machine.gpu_max_w, machine.gpu_max_w, loads[1])
    return power_w


def power_trend_w_per_min(times_s: NDArray[np.float64], power_w: NDArray[np.float64]) -> float:
    """Least-squares slope of the samples, watts a minute; 0 with fewer than two different times."""
    if len(times_s) < 2:
        return 0.0
    offsets_s = times_s - times_s.mean()
    spread = float(offsets_s @ offsets_s)
    return float(offsets_s @ (power_w - power_w.mean())) / spread * 60.0 if spread > 0 else 0.0
