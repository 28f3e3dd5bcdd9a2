"""Axes: from values to places between 0 and 1, with ticks at round numbers and a title that names the unit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
DURATIONS = (  # ticks of a logarithmic axis of time
    (1.0, "1 s"),
    (10.0, "10 s"),
    (MINUTE_S, "1 min"),
    (10 * MINUTE_S, "10 min"),
    (HOUR_S, "1 h"),
    (6 * HOUR_S, "6 h"),
    (DAY_S, "1 d"),
    (7 * DAY_S, "7 d"),
    (30 * DAY_S, "30 d"),
    (365 * DAY_S, "1 y"),
)
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
ROOM = 0.05  # beyond the outermost values, as a share of their range
HOUR_STEPS = (0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 168.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a plot."""

    title: str  # with its unit in brackets
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, values: Numbers | float) -> Numbers:
        """0 at the low end, 1 at the high one; what lies beyond an end is put there."""
        kept = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.log:
            placed: Numbers = np.log(kept / self.low) / math.log(self.high / self.low)
        else:
            placed = (kept - self.low) / (self.high - self.low)
        return placed


def linear_axis(
    title: str, unit: str, values: Iterable[float], *, zero: bool = False, about: int = 7, signed: bool = False
) -> Axis:
    """Covers all values with a little room, from zero on where that is what a length means."""
    low, high = _ends([*values, 0.0] if zero else values)
    if high - low < 1e-9 * max(1.0, abs(high)):  # all alike: a range around it
        around = 0.05 * abs(high) if abs(high) > 1e-6 else 0.5
        low, high = (0.0 if zero and low == 0 else low - around), high + around
    room = ROOM * (high - low)
    low = 0.0 if zero and low == 0 else low - room
    high = 0.0 if zero and high == 0 else high + room
    step = _round_step((high - low) / about)
    digits = next(digits for digits in range(15) if abs(step - round(step, digits)) < 1e-6 * step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple((place * step, _written(place * step, digits, signed)) for place in range(first, last + 1))
    return Axis(f"{title} ({unit})", low, high, ticks)


def hours_axis(span_h: float) -> Axis:
    """Simulated time from the beginning of the run."""
    step = next((one for one in HOUR_STEPS if span_h / one <= 9), _round_step(span_h / 8))
    ticks = tuple((place * step, f"{place * step:g}") for place in range(math.floor(span_h / step + 1e-9) + 1))
    return Axis("Time since the run began (h)", 0.0, max(span_h, step), ticks)


def duration_axis(title: str, longest_s: float) -> Axis:
    """Logarithmic from one second on; shorter ones stand at its low end."""
    high = next((mark for mark, _ in DURATIONS if mark >= longest_s and mark > 1), longest_s)
    ticks = [(mark, "≤ 1 s" if mark == 1 else text) for mark, text in DURATIONS if mark <= high]
    return Axis(f"{title} (seconds to days, log scale)", 1.0, high, tuple(ticks), log=True)


def log_axis(title: str, unit: str, low: float, high: float, low_text: str = "") -> Axis:
    """Logarithmic between two values, with ticks at 1, 2, 5 of each decade (1 alone where there are many)."""
    high = max(high, 2 * low)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    firsts = (1,) if len(decades) > 3 else (1, 2, 5)
    marks = [first * 10.0**decade for decade in decades for first in firsts]
    inside = [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
    ticks = [(mark, low_text if low_text and mark <= low * (1 + 1e-9) else f"{mark:,.10g}") for mark in inside]
    return Axis(f"{title} ({unit}, log scale)", low, high, tuple(ticks), log=True)


def _ends(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


def _round_step(rough: float) -> float:
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(step for step in ROUND_STEPS if step * scale >= rough * (1 - 1e-9)) * scale


def _written(value: float, digits: int, signed: bool) -> str:
    value = value if abs(value) > 1e-12 else 0.0
    text = f"{value:+,.{digits}f}" if signed and value else f"{value:,.{digits}f}"
    return text.replace("-", "−")
