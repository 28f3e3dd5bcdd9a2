"""The score of a node for a pod (seed: scheduler extender; SPEC 6, 13), over all nodes at once.

What does not depend on the pod is computed once (`prepare`); a pod then costs a handful of array operations. The
formula stands here alone: extender, command line and lab call it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.exact_sum import exact_sum
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.model.snapshot import WorkloadClass
from joulie.physics.marginal import marginal_power_w, share
from joulie.settings import MarginalSettings

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEUTRAL_SCORE = 50.0
HEADROOM_WEIGHT = 0.7
COOLING_WEIGHT = 0.15
TREND_LIMIT = 25.0
STEADY_TREND_SCALE, BURST_TREND_SCALE = 6.0, 2.0
BURST_W_PER_MIN = 500.0
ECO_BONUS = 10.0
PRESSURE_WEIGHT = 0.3

# How a node's class stands in an array.
CLASS_CODES = {UNKNOWN: 0, PERFORMANCE: 1, ECO: 2, DRAINING: 3}
PERFORMANCE_CODE, ECO_CODE = CLASS_CODES[PERFORMANCE], CLASS_CODES[ECO]


class ScoreColumns(Struct):
    """What is known of each node, one element a node. The extender changes elements in place as objects change."""

    fresh: Flags  # has a twin that is not stale
    class_code: NDArray[np.int8]
    has_power: Flags  # measured and capped power are known
    capped_w: Numbers
    measured_w: Numbers
    recent_w: Numbers  # pods bound since the twin was written
    expected_w: Numbers  # pods that will most likely be bound in a moment; 0 outside a live extender
    predicted_headroom: Numbers  # stands in where power is not known
    cooling_stress: Numbers
    trend_w_per_min: Numbers
    pue: Numbers
    cpu_max_w: Numbers
    gpu_max_w: Numbers
    inverse_cores: Numbers
    inverse_gpus: Numbers


class Prepared(Struct, frozen=True):
    """Everything about the nodes that is the same for all pods; where nothing is known the numbers make 50."""

    headroom: Numbers  # percent of the budget that is free before the pod
    points_per_w: Numbers  # percent of the budget that one watt takes
    cooling_term: Numbers
    trend_bonus: Numbers
    profile_bonus: Numbers  # for standard pods
    pressure_relief: Numbers  # for standard pods
    rest_standard: Numbers  # all terms but headroom
    rest_performance: Numbers
    cpu_full_w: Numbers  # what a pod that takes the whole node adds, cooling included
    gpu_full_standard_w: Numbers
    gpu_full_performance_w: Numbers
    inverse_cores: Numbers
    inverse_gpus: Numbers
    performance_pressure: float
    cluster_trend_w_per_min: float


class Scores(Struct, frozen=True):
    """A pod's result on every node."""

    score: Numbers  # clamped to 0..100, neutral where nothing is known
    headroom: Numbers  # raw: negative where the pod would exceed the budget
    marginal_w: Numbers  # what the pod adds, cooling included


class Terms(NamedTuple):
    """What is added to headroom."""

    cooling: Numbers
    trend_bonus: Numbers
    profile_bonus: Numbers  # for standard pods
    pressure_relief: Numbers  # for standard pods
    standard: Numbers  # all that apply to a standard pod
    performance: Numbers


def prepare(columns: ScoreColumns, settings: MarginalSettings) -> Prepared:
    """The terms that no pod changes, and the two that look at the whole cluster: pressure and trend."""
    return prepare_under(columns, settings, performance_pressure(columns), cluster_trend(columns))


def prepare_under(columns: ScoreColumns, settings: MarginalSettings, pressure: float, trend: float) -> Prepared:
    """The same for some rows of a cluster, of which these two are known."""
    fresh = columns.fresh
    terms = other_terms(
        columns.cooling_stress, columns.trend_w_per_min, trend_scale(trend), columns.class_code, pressure
    )
    return Prepared(
        headroom=headroom(columns),
        points_per_w=points_per_w(columns),
        cooling_term=terms.cooling,
        trend_bonus=terms.trend_bonus,
        profile_bonus=terms.profile_bonus,
        pressure_relief=terms.pressure_relief,
        rest_standard=_where(fresh, terms.standard, NEUTRAL_SCORE),
        rest_performance=_where(fresh, terms.performance, NEUTRAL_SCORE),
        **full_power_w(columns, settings),
        inverse_cores=columns.inverse_cores,
        inverse_gpus=columns.inverse_gpus,
        performance_pressure=pressure,
        cluster_trend_w_per_min=trend,
    )


def other_terms(
    cooling_stress: Numbers, trend_w_per_min: Numbers, scale: float, class_code: NDArray[np.int8], pressure: float
) -> Terms:
    """All terms but headroom. One number a node, or one number: the lab compiles it."""
    cooling = (100.0 - cooling_stress) * COOLING_WEIGHT
    trend_bonus = -np.minimum(np.maximum(trend_w_per_min / scale, -TREND_LIMIT), TREND_LIMIT)
    profile_bonus = (class_code == ECO_CODE) * ECO_BONUS
    relief = pressure_relief(class_code, pressure)
    rest = cooling + trend_bonus
    return Terms(cooling, trend_bonus, profile_bonus, relief, rest + profile_bonus + relief, rest)


def pressure_relief(class_code: NDArray[np.int8], pressure: float) -> Numbers:
    """What keeps standard pods off performance nodes."""
    relief: Numbers = 0.0 - (class_code == PERFORMANCE_CODE) * (pressure * PRESSURE_WEIGHT)
    return relief


def rest_of_standard(columns: ScoreColumns, prepared: Prepared, pressure: float) -> tuple[Numbers, Numbers]:
    """The relief and all terms but headroom, where only the pressure is another."""
    relief = pressure_relief(columns.class_code, pressure)
    rest = prepared.rest_performance + prepared.profile_bonus + relief
    return relief, _where(columns.fresh, rest, NEUTRAL_SCORE)


def points_per_w(columns: ScoreColumns) -> Numbers:
    """Percent of the budget that one watt takes."""
    return _where(columns.fresh & columns.has_power, 100.0 / budget_w(columns), 0.0)


def full_power_w(columns: ScoreColumns, settings: MarginalSettings) -> dict[str, Numbers]:
    """What a pod that takes the whole node adds, cooling included; by the names that `Prepared` has for it."""
    pue = np.maximum(1.0, columns.pue)
    return {
        "cpu_full_w": settings.cpu_coeff * columns.cpu_max_w * pue,
        "gpu_full_standard_w": settings.gpu_coeff_standard * columns.gpu_max_w * pue,
        "gpu_full_performance_w": settings.gpu_coeff_performance * columns.gpu_max_w * pue,
    }


def cluster_trend(columns: ScoreColumns) -> float:
    return exact_sum(trends(columns))


def trends(columns: ScoreColumns) -> Numbers:
    """What each node adds to the trend of the cluster; may be the column itself."""
    return _where(columns.fresh, columns.trend_w_per_min, 0.0)


def trend_scale(cluster_trend_w_per_min: float) -> float:
    """A trend weighs more while the whole cluster moves."""
    return BURST_TREND_SCALE if abs(cluster_trend_w_per_min) > BURST_W_PER_MIN else STEADY_TREND_SCALE


def headroom(columns: ScoreColumns) -> Numbers:
    """Percent of the budget that is free before the pod. Of what is prepared, only this depends on pods."""
    free = headroom_before(
        columns.capped_w, columns.measured_w, columns.recent_w, columns.expected_w, budget_w(columns)
    )
    return _where(columns.fresh, _where(columns.has_power, free, columns.predicted_headroom), 0.0)


def headroom_before(
    capped_w: Numbers, measured_w: Numbers, recent_w: Numbers, expected_w: Numbers, budget_w: Numbers
) -> Numbers:
    """Percent of the budget that is free where power is known. One number a node, or one number."""
    return (capped_w - (measured_w + recent_w + expected_w)) / budget_w * 100.0


def performance_pressure(columns: ScoreColumns) -> float:
    """How congested the performance nodes are on average: 0 when they are idle or there is none."""
    return mean_congestion(columns, exact_sum(congestion(columns)))


def mean_congestion(columns: ScoreColumns, total: float) -> float:
    """Of the nodes that count for the pressure; 0 where none does."""
    count = int(np.count_nonzero(_counts_for_pressure(columns)))
    return total / count if count else 0.0


def _counts_for_pressure(columns: ScoreColumns) -> Flags:
    chosen: Flags = columns.fresh & (columns.class_code == PERFORMANCE_CODE)
    return chosen


def congestion(columns: ScoreColumns) -> Numbers:
    """How congested each performance node is, in percent; 0 for all others."""
    free = np.clip((columns.capped_w - columns.measured_w) / budget_w(columns) * 100.0, 0.0, 100.0)
    return _where(
        _counts_for_pressure(columns), 100.0 - _where(columns.has_power, free, columns.predicted_headroom), 0.0
    )


def budget_w(columns: ScoreColumns) -> Numbers:
    """Something to divide by, also where the budget is not known."""
    return _where(columns.has_power, columns.capped_w, 1.0)


def _where(flags: Flags, values: Numbers, otherwise: Numbers | float) -> Numbers:
    """`np.where`, which costs as much as four sums, only where somebody needs it; may be `values` itself."""
    return values if flags.all() else np.where(flags, values, otherwise)


def score(prepared: Prepared, cpu_cores: float, gpus: float, workload_class: WorkloadClass) -> Scores:
    """The score of every node for a pod that asks for this much.

    score = 0.7 · headroom after the pod + 0.15 · (100 − cooling stress) + trend + profile bonus + pressure relief
    """
    performance = workload_class == PERFORMANCE
    marginal_w = marginal_power_w(
        share(cpu_cores, prepared.inverse_cores),
        share(gpus, prepared.inverse_gpus) if gpus else None,
        prepared.cpu_full_w,
        prepared.gpu_full_performance_w if performance else prepared.gpu_full_standard_w,
    )
    headroom = headroom_after(prepared.headroom, marginal_w, prepared.points_per_w)
    rest = prepared.rest_performance if performance else prepared.rest_standard
    return Scores(total_score(headroom, rest), headroom, marginal_w)


def headroom_after(headroom: Numbers, marginal_w: Numbers, points_per_w: Numbers) -> Numbers:
    """Percent of the budget that is free with the pod. One number a node, or one number: the lab compiles it."""
    return headroom - marginal_w * points_per_w


def total_score(headroom: Numbers, rest: Numbers) -> Numbers:
    """Headroom and all other terms, clamped."""
    return np.minimum(np.maximum(headroom * HEADROOM_WEIGHT + rest, 0.0), 100.0)


def wire_points(scores: Numbers, score_max: int) -> Numbers:
    """Whole points, as kube-scheduler takes them."""
    return np.floor(scores * score_max / 100.0 + 0.5)


def wire_scores(scores: Numbers, score_max: int) -> NDArray[np.int64]:
    return wire_points(scores, score_max).astype(np.int64)
