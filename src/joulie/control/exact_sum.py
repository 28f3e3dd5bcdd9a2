"""The sum of many numbers, correct to the last digit in any order, at the speed of arrays.

`math.fsum` does the same one number at a time. Here each pass takes the leading bits of all numbers on a grid so coarse
that adding them up rounds nothing, and leaves the rest to the next; two or three passes take everything there is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_MAX_SUMMAND = 2.0**900  # beyond, the grid itself would overflow
_KEPT_BITS = 52  # of a double, after its first


def exact_sum(values: NDArray[np.float64]) -> float:
    """Exactly what `math.fsum` gives."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < _MAX_SUMMAND:  # nor where it is no number
        return math.fsum(values.tolist())
    sums: list[float] = []
    rest, room = values, math.ceil(math.log2(len(values) + 2))
    exponent = math.frexp(largest)[1] + room
    while len(sums) < 2 or rest.any():  # one pass is hardly ever enough
        grid = math.ldexp(1.0, exponent)
        leading = rest + grid
        leading -= grid
        sums.append(float(np.add.reduce(leading)))
        rest = rest - leading
        exponent += room - _KEPT_BITS  # what is left is smaller by so much
    return math.fsum(sums)
