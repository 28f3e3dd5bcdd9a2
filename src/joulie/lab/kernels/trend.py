"""`sources.trend` compiled: the same sums in the same order, for nodes that never come or go.

`tests/lab/kernels/test_trend.py` holds both together, bit by bit.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import entry
from joulie.lab.kernels.world import Flags, Integers, Numbers
from joulie.sources.trend import Window


class Trends:
    """The last minutes of every node."""

    def __init__(self, nodes: int, window: Window) -> None:
        self._window = window
        self._times_s = np.full((nodes, window.slots), np.nan)
        self._power_w = np.full((nodes, window.slots), np.nan)
        self._next_slot = np.zeros(nodes, np.int64)
        self._last_s = np.full(nodes, -np.inf)
        self._code = np.full(nodes, -1, np.int64)

    def slopes_w_per_min(self, now_s: float) -> Numbers:
        slopes = np.empty(len(self._last_s))
        find_slopes(self._times_s, self._power_w, now_s - self._window.span_s, slopes)
        return slopes

    def record(self, is_static: Flags, at_s: Numbers, watts: Numbers) -> None:
        """One sample a node, measured or estimated."""
        window = self._window
        windows = (self._times_s, self._power_w, self._next_slot, self._last_s, self._code)
        take_samples(windows, is_static, at_s, watts, window.spacing_s, window.max_gap_s)


@entry
def find_slopes(times_s: Numbers, power_w: Numbers, oldest_s: float, slopes: Numbers) -> None:
    slots = times_s.shape[1]
    for node in range(len(slopes)):
        count, offset_s, watts = 0, 0.0, 0.0
        for slot in range(slots):
            if times_s[node, slot] >= oldest_s:
                count += 1
                offset_s += times_s[node, slot] - oldest_s
                watts += power_w[node, slot]
        offset_s, watts, spread, together = offset_s / max(count, 1), watts / max(count, 1), 0.0, 0.0
        for slot in range(slots):
            if times_s[node, slot] >= oldest_s:
                beside_s = times_s[node, slot] - oldest_s - offset_s
                spread += beside_s * beside_s
                together += beside_s * (power_w[node, slot] - watts)
        slopes[node] = together / (spread if spread > 0 else 1.0) * 60.0


@entry
def take_samples(
    windows: tuple[Numbers, Numbers, Integers, Numbers, Integers],
    codes: Flags,
    at_s: Numbers,
    watts: Numbers,
    spacing_s: float,
    max_gap_s: float,
) -> None:
    times_s, power_w, next_slot, last_s, code = windows
    slots = times_s.shape[1]
    for node in range(len(last_s)):
        since_last_s = at_s[node] - last_s[node]
        is_anew = codes[node] != code[node] or abs(since_last_s) > max_gap_s
        code[node] = codes[node]
        if is_anew:
            next_slot[node] = 0
            for slot in range(slots):
                times_s[node, slot] = np.nan
        if (is_anew or since_last_s >= spacing_s) and np.isfinite(watts[node]):
            slot = next_slot[node]
            times_s[node, slot], power_w[node, slot] = at_s[node], watts[node]
            next_slot[node] = (slot + 1) % slots
            last_s[node] = at_s[node]
