"""An electric chiller by the EnergyPlus curves: what it can take at a temperature, and what that costs.

Both functions are plain arithmetic: the lab compiles them for single numbers and gets the same bits as these arrays.

The rules: docs/reference/behaviour.md, 'Cooling plant'.
"""

from __future__ import annotations

import numpy as np

from joulie.plant.curves import Numbers

RATED_COP = 3.0
RATED_CONDENSER_C = 35.0
RATED_EVAPORATOR_C = 6.67
COLDEST_C, HOTTEST_C = 10.0, 45.0  # of the condenser's air; the curves are not used outside


def capacity_factor(outside_c: Numbers | float, evaporator_c: float = RATED_EVAPORATOR_C) -> Numbers:
    """Heat that can be taken, over the rated heat."""
    condenser_c = np.minimum(np.maximum(outside_c, COLDEST_C), HOTTEST_C)
    away = (condenser_c - RATED_CONDENSER_C) / 2.778 - (evaporator_c - RATED_EVAPORATOR_C)
    factor: Numbers = 0.9448 - 0.0570 * away + 0.001855 * (away * away)
    return factor


def compressor_w(heat_w: Numbers, rated_w: Numbers, outside_c: Numbers | float) -> Numbers:
    """Electricity for taking this heat, at most the capacity; a chiller with nothing to do is switched off."""
    capacity = capacity_factor(outside_c)
    full_load = 2.333 - 1.975 * capacity + 0.6121 * (capacity * capacity)
    part = np.minimum(np.maximum(heat_w / (capacity * rated_w), 0.0), 1.0)
    part_load = 0.0330 + 0.6852 * part + 0.2818 * (part * part)
    running_w = rated_w / RATED_COP * capacity * full_load * part_load
    return running_w * (heat_w > 0.0)
