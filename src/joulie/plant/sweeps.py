"""How GPU work slows under a power cap: medians of measured sweeps.

Source: power traces of Zeus (You, Chung, Chowdhury: "Zeus: Understanding and Optimizing GPU Energy Consumption of DNN
Training", NSDI '23), github.com/ml-energy/zeus, Apache-2.0. Taken are the training runs that saturate their board: at
the top limit they draw at least 85 % of it. `tests/plant/test_sweeps.py` derives the numbers from the traces. The
P100 has no such run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.entries import words
from joulie.plant.curves import Numbers

SATURATED_DRAW = 0.9  # of the limit: medians 0.899 (V100), 0.891 (A40), 0.900 (Quadro RTX 6000)
PROXY = "V100"  # for every board without a sweep


class Sweep(NamedTuple):
    """Limits over the top limit, rising, and what they do to saturated work, each over the top limit's."""

    shares: tuple[float, ...]
    slowdown: tuple[float, ...]
    energy: tuple[float, ...]  # for the same work

    @property
    def power(self) -> tuple[float, ...]:
        return tuple(energy / slow for energy, slow in zip(self.energy, self.slowdown, strict=True))


SWEEPS = {
    "V100": Sweep(  # limits 100 … 250 W, 19 runs
        (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        (1.8844, 1.4383, 1.1876, 1.1078, 1.0620, 1.0225, 1.0),
        (0.8413, 0.7880, 0.7796, 0.8278, 0.8841, 0.9499, 1.0),
    ),
    "A40": Sweep(  # limits 100 … 300 W, 8 to 11 runs
        (100 / 300, 125 / 300, 150 / 300, 175 / 300, 200 / 300, 225 / 300, 250 / 300, 275 / 300, 1.0),
        (4.0671, 2.6154, 1.7389, 1.3015, 1.1122, 1.0565, 1.0256, 1.0050, 1.0),
        (1.6139, 1.2027, 0.9463, 0.8121, 0.7910, 0.8348, 0.8885, 0.9471, 1.0),
    ),
    "Quadro RTX 6000": Sweep(  # limits 100 … 260 W, 19 runs
        (100 / 260, 125 / 260, 150 / 260, 175 / 260, 200 / 260, 225 / 260, 250 / 260, 1.0),
        (2.3715, 1.4493, 1.2134, 1.1270, 1.0704, 1.0333, 1.0095, 1.0),
        (0.9715, 0.7471, 0.7446, 0.7881, 0.8491, 0.9111, 0.9765, 1.0),
    ),
}


def sweep_of(name: str | None) -> str:
    """The sweep that was measured on this model, or the proxy's."""
    there = set(words(name or ""))
    return next((known for known in SWEEPS if there.issuperset(words(known))), PROXY)


class SweepTable:
    """Sweeps of many boards, evaluated at once."""

    def __init__(self, names: list[str]) -> None:
        self._members = [
            (SWEEPS[known], np.asarray([name == known for name in names], dtype=bool))
            for known in SWEEPS
            if known in names
        ]

    def under(self, share: Numbers, boards: NDArray[np.intp]) -> tuple[Numbers, Numbers]:
        """Slowdown and power, both over uncapped, of the boards with these indices at these limits."""
        slowdown, power = np.ones_like(share), np.ones_like(share)
        for sweep, is_member in self._members:
            here = is_member[boards]
            slowdown[here] = np.interp(share[here], sweep.shares, sweep.slowdown)
            power[here] = np.interp(share[here], sweep.shares, sweep.power)
        return slowdown, power
