"""When work comes: a day curve with episodes of bursts, a wave or a constant, and a Poisson process that follows it."""

from __future__ import annotations

import numpy as np

from joulie.lab.model.jobs import Numbers
from joulie.lab.model.setup import TraceSetup

DAY_S = 86_400.0
BUSIEST_HOUR = 14.0
SWING = 0.6  # the busiest hour is (1 + 0.6) / (1 − 0.6) = 4 times as busy as the quietest
STEP_S = 60.0
BURSTS_A_DAY = 8.0  # at burstiness 1
BURST_MEAN_S = 1200.0
BURST_MEAN_HEIGHT = 2.0  # over the day curve


def arrivals(rng: np.random.Generator, count: int, trace: TraceSetup) -> Numbers:
    """So many times in order: of an inhomogeneous Poisson process, given that the first comes at once and the last at
    the end. So the span of the arrivals, which load is counted over, is the one that was asked for.
    """
    span_s = trace.drawn_hours * 3600.0
    edges_s = np.append(np.arange(0.0, span_s, STEP_S), span_s)
    intensity = intensities(rng, edges_s, trace)
    expected = np.concatenate([[0.0], np.cumsum(intensity * np.diff(edges_s))])
    # Exponential gaps over their sum are uniform numbers in order; this spares the sorting.
    marks = np.concatenate([[0.0], np.cumsum(rng.standard_exponential(count - 1))])
    return to_milliseconds(np.interp(marks * (expected[-1] / (marks[-1] or 1.0)), expected, edges_s))


def to_milliseconds(times_s: Numbers) -> Numbers:
    """Without the last digits, in which exponentials and cosines of different processors may differ."""
    rounded: Numbers = np.round(times_s, 3)
    return rounded


def intensities(rng: np.random.Generator, edges_s: Numbers, trace: TraceSetup) -> Numbers:
    """How busy each interval is: always alike, a wave, or a day with bursts. Over whole periods, without bursts, 1."""
    middle_s = (edges_s[:-1] + edges_s[1:]) / 2
    if trace.arrivals == "constant":
        return np.ones(len(middle_s))
    if trace.arrivals == "periodic":  # begins where it is quietest
        return 1 - SWING * np.cos(2 * np.pi * middle_s / (trace.wave_hours * 3600.0))
    return rates(rng, edges_s, trace.burstiness, trace.start_hour)


def rates(rng: np.random.Generator, edges_s: Numbers, burstiness: float, start_hour: float) -> Numbers:
    """How busy each interval of a day is, and of the bursts in it."""
    middle_s, span_s = (edges_s[:-1] + edges_s[1:]) / 2, float(edges_s[-1])
    angle = 2 * np.pi * (middle_s / DAY_S + (start_hour - BUSIEST_HOUR) / 24)
    day = 1 + SWING * np.cos(angle)
    height = np.zeros(len(middle_s))
    bursts = rng.poisson(BURSTS_A_DAY * burstiness * span_s / DAY_S)
    begin_s = rng.uniform(0.0, span_s, bursts)
    end_s = begin_s + rng.exponential(BURST_MEAN_S, bursts)
    first, last = np.searchsorted(middle_s, begin_s), np.searchsorted(middle_s, end_s)
    for begin, end, high in zip(first, last, rng.exponential(BURST_MEAN_HEIGHT, bursts), strict=True):
        height[begin:end] += high
    return day * (1 + height)
