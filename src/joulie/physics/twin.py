"""The digital twin's scores, O(1) for each node. Single numbers and arrays alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

DENSEST_CORES = 192.0
DENSEST_GPUS = 8.0


def clamp_score(value: Numbers | float) -> Numbers:
    """Scores stay within 0 and 100; NaN counts as the worst stress, 100."""
    return np.clip(np.nan_to_num(value, nan=100.0, posinf=100.0, neginf=0.0), 0.0, 100.0)


def headroom_score(cpu_cap_pct: Numbers | float, gpu_cap_pct: Numbers | float, cooling_stress: Numbers) -> Numbers:
    """Room for more work: how far the caps are open times how much cooling is left."""
    cap_factor = (cpu_cap_pct + gpu_cap_pct) / 200.0
    cooling_factor = 1.0 - cooling_stress / 100.0
    return clamp_score(cap_factor * cooling_factor * 100.0)


def psu_stress_score(total_power_w: Numbers | float, rack_capacity_w: float) -> Numbers:
    """Share of a rack's supply in use."""
    return clamp_score(np.asarray(total_power_w) / rack_capacity_w * 100.0)


def hardware_density_score(cores: Numbers, gpus: Numbers) -> Numbers:
    """How much compute a node packs: cores against 192, GPUs against 8, averaged where there is a GPU."""
    cpu_part = np.minimum(100.0, cores / DENSEST_CORES * 100.0)
    gpu_part = np.minimum(100.0, gpus / DENSEST_GPUS * 100.0)
    return np.where(gpus > 0, (cpu_part + gpu_part) / 2.0, cpu_part)
