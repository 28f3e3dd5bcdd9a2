"""The trend of each node's power: rolling windows of many nodes in one pair of arrays.

`power_trend_w_per_min` of `joulie.physics.power` defines the slope; here it is computed for all nodes at once, and a
test ensures that both agree. A window holds samples of one tier only: the step from a measured value to an estimate
is not a trend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

WINDOW_S = 300.0
MIN_SLOTS, MAX_SLOTS = 8, 60


class Window(NamedTuple):
    """The size of one node's window."""

    slots: int
    spacing_s: float  # samples that come sooner are dropped
    max_gap_s: float  # a longer gap restarts the window
    span_s: float

    @staticmethod
    def of(max_gap_s: float, window_s: float = WINDOW_S, interval_s: float = 0.0) -> Window:
        """`interval_s` is the usual time between samples.

        Samples that come more than twice as often are thinned out, so that the slots always span the window.
        """
        slots = MAX_SLOTS
        if interval_s > 0:
            slots = min(MAX_SLOTS, max(MIN_SLOTS, math.ceil(2 * window_s / interval_s)))
        return Window(slots, window_s / slots, min(max_gap_s, window_s), window_s)


class TrendWindows:
    """The last minutes of every node; empty at start."""

    def __init__(self, max_gap_s: float, window_s: float = WINDOW_S, interval_s: float = 0.0) -> None:
        self._window = Window.of(max_gap_s, window_s, interval_s)
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []
        self._nodes: list[str] = []  # of the last record, in its order
        self._rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._source_code: dict[str, int] = {}
        # By slot and node: sums over slots are then taken in the same order everywhere, with the same bits.
        self._times_s: Numbers = np.full((self._window.slots, 0), np.nan)
        self._power_w: Numbers = np.full((self._window.slots, 0), np.nan)
        self._next_slot: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._last_s: Numbers = np.full(0, -np.inf)
        self._code: NDArray[np.intp] = np.full(0, -1, dtype=np.intp)

    def __len__(self) -> int:
        return len(self._row_of)

    def record(
        self, nodes: Sequence[str], sources: Sequence[str], times_s: Sequence[float], power_w: Sequence[float]
    ) -> None:
        """One sample a node. Nodes that are not named are dropped; a gap or another source restarts a window."""
        code_of = self._source_code
        codes = np.array([code_of.setdefault(source, len(code_of)) for source in sources], dtype=np.intp)
        at_s, watts = np.asarray(times_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
        self.record_arrays(nodes, codes, at_s, watts)

    def record_arrays(self, nodes: Sequence[str], codes: NDArray[np.intp], at_s: Numbers, watts: Numbers) -> None:
        """The same with sources as numbers."""
        rows = self._rows_of(nodes)
        since_last_s = at_s - self._last_s[rows]
        is_anew = (codes != self._code[rows]) | (np.abs(since_last_s) > self._window.max_gap_s)
        anew = rows[is_anew]
        self._times_s[:, anew] = np.nan
        self._next_slot[anew] = 0
        self._code[rows] = codes
        is_taken = (is_anew | (since_last_s >= self._window.spacing_s)) & np.isfinite(watts)
        taken = rows[is_taken]
        slots = self._next_slot[taken]
        self._times_s[slots, taken] = at_s[is_taken]
        self._power_w[slots, taken] = watts[is_taken]
        self._next_slot[taken] = (slots + 1) % self._window.slots
        self._last_s[taken] = at_s[is_taken]

    def slopes_w_per_min(self, now_s: float) -> dict[str, float]:
        """The trend of every node's samples of the last minutes; nodes without one are omitted."""
        slopes = self.slopes(now_s).tolist()
        return {node: slope for node, slope in zip(self._nodes, slopes, strict=True) if slope}

    def slopes(self, now_s: float) -> Numbers:
        """The same as an array, in the order of the nodes last recorded; 0 without a trend."""
        used = max(2, int(self._rows.max(initial=-1)) + 1)  # numpy sums a single column in another order
        oldest_s = now_s - self._window.span_s
        return _slopes_w_per_min(self._times_s[:, :used], self._power_w[:, :used], oldest_s)[self._rows]

    def _rows_of(self, nodes: Sequence[str]) -> NDArray[np.intp]:
        names = list(nodes)
        if names != self._nodes:
            staying = set(names)
            for gone in [node for node in self._row_of if node not in staying]:
                self._free.append(self._row_of.pop(gone))
            for node in names:
                if node not in self._row_of:
                    self._row_of[node] = self._empty_row()
            self._nodes = names
            self._rows = np.array([self._row_of[node] for node in names], dtype=np.intp)
        return self._rows

    def _empty_row(self) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        self._times_s[:, row] = np.nan
        self._last_s[row] = -np.inf
        self._code[row] = -1
        return row

    def _grow(self) -> None:
        slots, old = self._times_s.shape
        more = max(64, old)
        self._times_s = np.concatenate([self._times_s, np.full((slots, more), np.nan)], axis=1)
        self._power_w = np.concatenate([self._power_w, np.full((slots, more), np.nan)], axis=1)
        self._next_slot = np.concatenate([self._next_slot, np.zeros(more, dtype=np.intp)])
        self._last_s = np.concatenate([self._last_s, np.full(more, -np.inf)])
        self._code = np.concatenate([self._code, np.full(more, -1, dtype=np.intp)])
        self._free.extend(range(old + more - 1, old - 1, -1))


def _slopes_w_per_min(times_s: Numbers, power_w: Numbers, oldest_s: float) -> Numbers:
    """Least squares in each column over the samples that are there and not older than `oldest_s`; 0 without two."""
    is_used = times_s >= oldest_s
    count = np.maximum(np.count_nonzero(is_used, axis=0), 1)
    offsets_s = np.where(is_used, times_s - oldest_s, 0.0)
    watts = np.where(is_used, power_w, 0.0)
    offsets_s = np.where(is_used, offsets_s - offsets_s.sum(axis=0) / count, 0.0)
    watts = np.where(is_used, watts - watts.sum(axis=0) / count, 0.0)
    spread = (offsets_s * offsets_s).sum(axis=0)
    together = (offsets_s * watts).sum(axis=0)
    return np.asarray(together / np.where(spread > 0, spread, 1.0) * 60.0)
