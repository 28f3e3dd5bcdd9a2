"""What `prepare` gives, kept for a board: where few rows have changed, only these and what all share are done again.

The numbers are those of `prepare` to the last digit. Hundreds of twins change a second and each question waits for
this, so it must not cost a look at every node.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from joulie.control.exact_sum import exact_parts
from joulie.control.scoring import (
    Prepared,
    ScoreColumns,
    congestion,
    headroom,
    mean_congestion,
    prepare_under,
    rest_of_standard,
    trend_scale,
    trends,
)
from joulie.settings import MarginalSettings

Numbers = NDArray[np.float64]
Rows = NDArray[np.intp]

MOST_PARTS = 100  # of a sum, before it pays to add up everything anew
_BY_ROW = (
    *("headroom", "points_per_w", "cooling_term", "trend_bonus", "profile_bonus", "rest_performance"),
    *("cpu_full_w", "gpu_full_standard_w", "gpu_full_performance_w"),
)


class RunningSum:
    """Exactly the sum of numbers some of which change: a few parts, and what came and went since."""

    def __init__(self, values: Numbers) -> None:
        self._values = values.copy()
        self._parts = exact_parts(values)

    def change(self, rows: Rows, values: Numbers) -> None:
        self._parts += values.tolist()
        self._parts += np.negative(self._values[rows]).tolist()
        self._values[rows] = values
        if len(self._parts) > MOST_PARTS:
            self._parts = exact_parts(self._values)

    def total(self) -> float:
        return math.fsum(self._parts)


class Preparation:
    """Belongs to one set of columns; `rows` are those whose elements have changed since the last time."""

    def __init__(self, columns: ScoreColumns, settings: MarginalSettings) -> None:
        self._columns, self._settings = columns, settings
        self._congestion, self._trend = RunningSum(congestion(columns)), RunningSum(trends(columns))
        self.prepared = prepare_under(columns, settings, *self._shared())

    def change(self, rows: Rows) -> Prepared:
        """Everything of these rows may be another."""
        at_rows = _at(self._columns, rows)
        self._congestion.change(rows, congestion(at_rows))
        self._trend.change(rows, trends(at_rows))
        before, (pressure, trend) = self.prepared, self._shared()
        if trend_scale(trend) != trend_scale(before.cluster_trend_w_per_min):
            self.prepared = prepare_under(self._columns, self._settings, pressure, trend)
            return self.prepared
        news = prepare_under(at_rows, self._settings, pressure, trend)
        for name in _BY_ROW:
            getattr(before, name)[rows] = getattr(news, name)
        pressure_relief, rest_standard = rest_of_standard(self._columns, before, pressure)
        self.prepared = replace(
            before,
            pressure_relief=pressure_relief,
            rest_standard=rest_standard,
            performance_pressure=pressure,
            cluster_trend_w_per_min=trend,
        )
        return self.prepared

    def load(self, rows: Rows) -> Prepared:
        """Only what pods draw is another there. A new object also then: who holds the last one can tell."""
        self.prepared.headroom[rows] = headroom(_at(self._columns, rows))
        self.prepared = replace(self.prepared)
        return self.prepared

    def _shared(self) -> tuple[float, float]:
        """Pressure and trend of the whole cluster."""
        return mean_congestion(self._columns, self._congestion.total()), self._trend.total()


def _at(columns: ScoreColumns, rows: Rows) -> ScoreColumns:
    return ScoreColumns(**{name: column[rows] for name, column in asdict(columns).items()})
