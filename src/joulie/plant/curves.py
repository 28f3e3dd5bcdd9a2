"""Power by load: published curves of servers, brought to the CPU packages, and the generic curve without one.

SPECpower is measured at the wall while caps act on packages, so a package draws its TDP times curve(u) / curve(100 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

UTILISATION_EXPONENT = 1.15
FREQUENCY_EXPONENT = 1.35
_STEPS = 100  # a table of percents; published points lie on it, the generic curve is off by less than 0.05 %
_LOADS = np.linspace(0.0, 1.0, _STEPS + 1)


def curve_shape(curve_w: Sequence[float]) -> tuple[float, ...]:
    """A published curve over its full load, linear between its points, so it rises wherever they do."""
    points = np.asarray(curve_w) / curve_w[-1]
    return tuple(np.interp(_LOADS, np.linspace(0.0, 1.0, len(curve_w)), points).tolist())


@lru_cache(maxsize=64)
def generic_shape(idle_share: float) -> tuple[float, ...]:
    """idle + (max − idle) · load^1.15, over max."""
    return tuple((idle_share + (1.0 - idle_share) * _LOADS**UTILISATION_EXPONENT).tolist())


class ShapeTable:
    """Shapes of many elements, evaluated at once: each distinct shape is kept once."""

    def __init__(self, shapes: Sequence[tuple[float, ...]]) -> None:
        distinct = list(dict.fromkeys(shapes)) or [generic_shape(0.0)]
        place = {shape: index for index, shape in enumerate(distinct)}
        table = np.asarray(distinct)
        # A step of nothing after full load, so that 100 % needs no case of its own.
        self.starts = table.ravel()
        self.rises = np.diff(table, append=table[:, -1:]).ravel()
        self._first = np.asarray([place[shape] * (_STEPS + 1) for shape in shapes], dtype=np.intp)

    def at(self, load: Numbers) -> Numbers:
        """Power over maximum at loads from 0 to 1."""
        percent = load * _STEPS
        whole = percent.astype(np.intp)
        index = self._first + whole
        value: Numbers = self.starts[index] + (percent - whole) * self.rises[index]
        return value


def frequency_for(power_w: Numbers, idle_w: Numbers, demand_w: Numbers, floor: Numbers) -> Numbers:
    """The frequency, over maximum, that holds power: inverse of idle + (demand − idle) · f^1.35."""
    dynamic_w = np.maximum(demand_w - idle_w, 1e-9)
    share = np.minimum(np.maximum((power_w - idle_w) / dynamic_w, 0.0), 1.0)
    return np.maximum(share ** (1.0 / FREQUENCY_EXPONENT), floor)


def power_at(frequency: Numbers, idle_w: Numbers, demand_w: Numbers) -> Numbers:
    """What a load that demands `demand_w` at full frequency draws at this one; idle power is never lowered."""
    return idle_w + (demand_w - idle_w) * frequency**FREQUENCY_EXPONENT
