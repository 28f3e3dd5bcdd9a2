"""The last hour in memory: rings of small numbers, for the cluster and for each node; gone when the process ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulie.overview.nodes import NodeOverview
from joulie.overview.summary import ClusterView

SAMPLE_S = 15.0
SAMPLES = 240  # an hour
SERIES = ("powerW", "cappedW", "headroom")
GROUP_SERIES = ("measuredW", "allocatedW", "limitW")

Floats = NDArray[np.float32]


class History:
    """One sample every SAMPLE_S of the clock; 5,000 nodes take 15 MB, whatever happens."""

    def __init__(self) -> None:
        self._times = np.zeros(SAMPLES)
        self._cluster = np.full((SAMPLES, 2), np.nan)
        self._nodes, self._groups = Rings(SERIES), Rings(GROUP_SERIES)
        self._taken = 0

    def is_due(self, now_s: float) -> bool:
        """Also when the clock was set back: then what comes is kept, and what was is dropped."""
        return self._taken == 0 or not 0 <= now_s - self._last_s < SAMPLE_S

    def take(self, cluster: ClusterView, views: Mapping[str, NodeOverview], names: Sequence[str]) -> None:
        """A sample of the managed nodes, by row."""
        if self._taken and cluster.now_s < self._last_s:
            self._taken = 0
        slot = self._taken % SAMPLES
        self._times[slot] = cluster.now_s
        seen = [views[name] for name in names]
        told = any(view.power_w is not None for view in seen)  # before the first decision nothing is known, not 0 W
        self._cluster[slot] = (cluster.power_w, cluster.capped_w) if told else math.nan
        self._nodes.take(slot, {view.name: (view.power_w, view.capped_w, view.headroom) for view in seen})
        groups = [group for budget in cluster.budgets for group in budget.groups]
        self._groups.take(slot, {one.name: (one.measured_w, one.allocated_w, one.limit_w) for one in groups})
        self._taken += 1

    def of_cluster(self) -> dict[str, Any]:
        order = self._order()
        power_w, capped_w = self._cluster[order].T
        return {"timesS": self._times[order].tolist(), "powerW": _plain(power_w), "cappedW": _plain(capped_w)}

    def of_node(self, name: str) -> dict[str, Any]:
        """What is known of a node; nothing before it was seen."""
        order = self._order()
        times = self._times[order].tolist() if name in self._nodes else []
        return {"timesS": times, **self._nodes.of(name, order)}

    def of_groups(self) -> dict[str, Any]:
        """Every group of a budget that there is now, by its name."""
        order = self._order()
        groups = {name: self._groups.of(name, order) for name in self._groups.names}
        return {"timesS": self._times[order].tolist(), "groups": groups}

    @property
    def _last_s(self) -> float:
        return float(self._times[(self._taken - 1) % SAMPLES])

    def _order(self) -> NDArray[np.intp]:
        """The slots from oldest to newest."""
        first = max(0, self._taken - SAMPLES)
        return np.arange(first, self._taken, dtype=np.intp) % SAMPLES


class Rings:
    """Some series of each of many things, by name."""

    def __init__(self, series: Sequence[str]) -> None:
        self.names: list[str] = []
        self._row_of: dict[str, int] = {}
        self._values: dict[str, Floats] = {name: _nothing(0) for name in series}

    def __contains__(self, name: str) -> bool:
        return name in self._row_of

    def take(self, slot: int, values: Mapping[str, Sequence[float | None]]) -> None:
        """What is known of each now, in the order of the series."""
        if list(values) != self.names:
            self._move_rows(list(values))
        for number, ring in enumerate(self._values.values()):
            ring[slot] = [_number(each[number]) for each in values.values()]

    def of(self, name: str, order: NDArray[np.intp]) -> dict[str, list[float | None]]:
        row = self._row_of.get(name)
        if row is None:
            return {series: [] for series in self._values}
        return {series: _plain(ring[order, row]) for series, ring in self._values.items()}

    def _move_rows(self, names: list[str]) -> None:
        """Some came or went: those that stayed keep their past."""
        stayed = [(row, self._row_of[name]) for row, name in enumerate(names) if name in self._row_of]
        for series, old in self._values.items():
            fresh = _nothing(len(names))
            if stayed:
                to, source = (list(side) for side in zip(*stayed, strict=True))
                fresh[:, to] = old[:, source]
            self._values[series] = fresh
        self.names, self._row_of = names, {name: row for row, name in enumerate(names)}


def _nothing(rows: int) -> Floats:
    return np.full((SAMPLES, rows), np.nan, dtype=np.float32)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _plain(values: NDArray[Any]) -> list[float | None]:
    return [None if math.isnan(value) else round(value, 1) for value in values.tolist()]
