"""Cooling stress: how much of the cooling capacity a node would use, 0 to 100.

A cooling model is an object with a name and one method, `stress(node_power_w, ambient_c)`, that takes single numbers
and arrays alike. Models are found through the entry-point group `joulie.cooling`; an entry is called with the twin's
settings and returns the model.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulie.settings import TwinSettings

Numbers = NDArray[np.float64]

STRESS_AT_REFERENCE = 80.0
MIN_REFERENCE_W, OVER_MAXIMUM = 4000.0, 1.25  # where the reference follows the node
COMFORTABLE_C = 20.0
STRESS_PER_DEGREE = 0.5


class CoolingModel(Protocol):
    """What the twin asks of a cooling model; results outside 0 to 100 are clamped by the twin."""

    name: str

    def stress(self, node_power_w: Numbers, ambient_c: Numbers) -> Numbers:
        """Percent of the cooling capacity in use when a node draws this power in air of this temperature."""
        ...


class LinearCoolingModel:
    """The default: proportional to power, plus half a point for each degree above 20 °C.

    Its reference is one for all nodes, or follows each node's maximum: else a node of 8 boards is at 100 uncapped.
    """

    name = "linear"

    def __init__(self, settings: TwinSettings) -> None:
        self._reference_node_power_w = settings.reference_node_power_w

    def reference_w(self, node_max_w: Numbers | float) -> Numbers | float:
        """Power of such a node that makes a stress of 80 at 20 °C."""
        if self._reference_node_power_w is not None:
            return self._reference_node_power_w
        return np.maximum(MIN_REFERENCE_W, OVER_MAXIMUM * node_max_w)

    def stress(self, node_power_w: Numbers, ambient_c: Numbers, node_max_w: Numbers | float = 0.0) -> Numbers:
        from_power = node_power_w / self.reference_w(node_max_w) * STRESS_AT_REFERENCE
        from_heat = np.maximum(0.0, ambient_c - COMFORTABLE_C) * STRESS_PER_DEGREE
        return np.asarray(from_power + from_heat)
