"""The limit in force: the smallest of what the spec, windows and a signal say, and until when.

Windows and forecasts lower a limit a minute early and raise it a minute late, so that neither a clock that is a little
wrong nor the time that cuts take lets it be exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

import numpy as np

from joulie.model.api.budget import BudgetSignal, BudgetWindow, PowerBudgetSpec

EARLY_S = 60.0
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_LOOKS_AHEAD = 8  # days: every window begins at least once a week


class LimitSpan(NamedTuple):
    """A time in which something lowers the limit, margins included."""

    from_s: float
    to_s: float
    watts: float
    why: str


class Limit(NamedTuple):
    """A limit, what sets it, and when it next changes (None: not as far as is known)."""

    watts: float
    why: str
    until_s: float | None


class ForecastValue(NamedTuple):
    """A value of a signal to come."""

    from_s: float
    to_s: float
    value: float


class SignalReading(NamedTuple):
    """What is known of a signal; nothing of it: it is lost."""

    now: float | None = None
    forecast: Sequence[ForecastValue] = ()


def limit_in_force(
    spec: PowerBudgetSpec,
    own_w: float,
    now_s: float,
    zones: Mapping[str, tzinfo],
    signal: SignalReading | None = None,
) -> Limit:
    """The smallest of all that apply to a group; `own_w` is its own limit of the spec.

    A window in a time zone that is not among `zones` counts at all times: a limit is not lifted by a misspelt name.
    """
    spans = [span for window in spec.windows or () for span in window_spans(window, now_s, zones)]
    if spec.signal is not None:
        spans += signal_spans(spec.signal, signal or SignalReading(), now_s)
    watts, why = own_w, "its spec"
    for span in spans:
        if span.from_s <= now_s < span.to_s and span.watts < watts:
            watts, why = span.watts, span.why
    changes = [at_s for span in spans for at_s in (span.from_s, span.to_s) if now_s < at_s < np.inf]
    return Limit(watts, why, min(changes, default=None))


def lowest_limit_w(spec: PowerBudgetSpec, own_w: float) -> float:
    """The smallest that any window or value of the signal can make of it."""
    windows = [window.watts for window in spec.windows or ()]
    return min((own_w, *windows, *(point.watts for point in (spec.signal.at if spec.signal else ()))))


def window_spans(window: BudgetWindow, now_s: float, zones: Mapping[str, tzinfo]) -> list[LimitSpan]:
    """When the window holds, from yesterday on."""
    why = f"its window from {window.from_} to {window.to}"
    zone = UTC if window.time_zone is None else zones.get(window.time_zone)
    if zone is None:
        return [
            LimitSpan(-np.inf, np.inf, window.watts, f"{why}, in a time zone that is not known: {window.time_zone}")
        ]
    begins, ends = time.fromisoformat(window.from_), time.fromisoformat(window.to)
    today = datetime.fromtimestamp(now_s, zone).date()
    spans = []
    for offset in range(-2, _LOOKS_AHEAD):
        day = today + timedelta(days=offset)
        if window.days is not None and DAYS[day.weekday()] not in window.days:
            continue
        last = day if begins < ends else day + timedelta(days=1)
        spans.append(
            LimitSpan(_at_s(day, begins, zone) - EARLY_S, _at_s(last, ends, zone) + EARLY_S, window.watts, why)
        )
    return spans


def signal_spans(signal: BudgetSignal, reading: SignalReading, now_s: float) -> list[LimitSpan]:
    """What the signal makes of the limit now and later; lost, it counts as its worst."""
    worst_w = min(point.watts for point in signal.at)
    if (signal.query is None) == (signal.forecast is None):
        return [LimitSpan(-np.inf, np.inf, worst_w, "its signal, of which it is not clear where it comes from")]
    if signal.query is not None:
        if reading.now is None or not np.isfinite(reading.now):
            return [LimitSpan(-np.inf, np.inf, worst_w, "its signal, which is lost")]
        return [LimitSpan(-np.inf, np.inf, signal_limit_w(signal, reading.now), f"its signal of {reading.now:g}")]
    spans = [
        LimitSpan(value.from_s - EARLY_S, value.to_s + EARLY_S, signal_limit_w(signal, value.value), "its forecast")
        for value in reading.forecast
        if np.isfinite(value.value)
    ]
    if not (_is_foreseen(reading, now_s) and _is_foreseen(reading, now_s + EARLY_S)):  # a gap lowers early, too
        spans.append(LimitSpan(-np.inf, np.inf, worst_w, "its forecast, which says nothing of this moment"))
    return spans


def _is_foreseen(reading: SignalReading, at_s: float) -> bool:
    return any(value.from_s <= at_s < value.to_s and np.isfinite(value.value) for value in reading.forecast)


def signal_limit_w(signal: BudgetSignal, value: float) -> float:
    """Straight lines between the points, level beyond them; of two points at one value the lower counts."""
    points: dict[float, float] = {}
    for point in signal.at:
        points[point.value] = min(point.watts, points.get(point.value, np.inf))
    values = sorted(points)
    return float(np.interp(value, values, [points[each] for each in values]))


def _at_s(day: date, clock: time, zone: tzinfo) -> float:
    return datetime.combine(day, clock, zone).timestamp()
