"""How many watts a pod adds to a node: its share of the devices at full power."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MIN_TOTAL = 1e-12  # far below the smallest quantity of Kubernetes; less cannot be divided by


def share(asked: Numbers | float, inverse_total: Numbers) -> Numbers:
    """The part of a node that a pod asks for, at most all of it; nothing where the node has nothing to share.

    The total comes as its inverse (0 where the node has none): one multiplication instead of a guarded division.
    """
    return np.minimum(1.0, asked * inverse_total)


def inverse(total: Numbers) -> Numbers:
    """1/total, and 0 where there is nothing to divide."""
    return np.divide(1.0, total, out=np.zeros_like(total), where=total >= MIN_TOTAL)


def marginal_power_w(
    cpu_share: Numbers, gpu_share: Numbers | None, cpu_full_w: Numbers, gpu_full_w: Numbers
) -> Numbers:
    """Watts for these shares of a node (None: asks for no GPU); `*_full_w` is coefficient times maximum power."""
    cpu_w = cpu_share * cpu_full_w
    return cpu_w if gpu_share is None else cpu_w + gpu_share * gpu_full_w
