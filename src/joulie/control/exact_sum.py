"""The sum of many numbers, correct to the last digit in any order, at the speed of arrays.

`math.fsum` does the same one number at a time. Here each pass takes the leading bits of all numbers on a grid so coarse
that adding them up rounds nothing, and leaves the rest to the next; two or three passes take everything there is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2.0**900  # beyond, the grid itself would overflow


def exact_sum(values: NDArray[np.float64]) -> float:
    """Exactly what `math.fsum` gives."""
    sums: list[float] = []
    rest, largest = values, _largest(values)
    room = math.ceil(math.log2(len(values) + 2))
    while largest:
        if not largest < _LARGEST:  # nor where it is no number
            return math.fsum(values.tolist())
        grid = math.ldexp(1.0, math.frexp(largest)[1] + room)
        leading = (rest + grid) - grid
        sums.append(float(leading.sum()))
        rest = rest - leading
        largest = _largest(rest)
    return math.fsum(sums)


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max(initial=0.0))
