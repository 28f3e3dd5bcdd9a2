"""The score of a node for a pod, over all nodes at once (docs/reference/behaviour.md, 'Score').

What does not depend on the pod is computed once (`prepare`); a pod then costs a handful of array operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.scoring.columns import ClusterFacts, Numbers, ScoreColumns, budget_w, cluster_facts, where
from joulie.control.scoring.group_room import GroupRooms
from joulie.control.scoring.term import facts_of
from joulie.control.scoring.terms import FOR_ALL, POD_TERMS, TERMS
from joulie.model.names import PERFORMANCE
from joulie.model.snapshot import WorkloadClass
from joulie.physics.marginal import marginal_power_w, share
from joulie.settings import MarginalSettings

NEUTRAL_SCORE = 50.0
HEADROOM_WEIGHT = 0.7


class Prepared(Struct, frozen=True):
    """Everything about the nodes that is the same for all pods; where nothing is known the numbers make 50."""

    headroom: Numbers  # percent of the budget that is free before the pod
    points_per_w: Numbers  # percent of the budget that one watt takes
    terms: tuple[Numbers, ...]  # in the order of `TERMS`
    rest_standard: Numbers  # all terms but headroom
    rest_performance: Numbers
    cpu_full_w: Numbers  # what a pod that takes the whole node adds, cooling included
    gpu_full_standard_w: Numbers
    gpu_full_performance_w: Numbers
    inverse_cores: Numbers
    inverse_gpus: Numbers
    cluster: ClusterFacts
    rooms: GroupRooms | None = None  # None: no budget is enforced, or none is measured
    room_w: Numbers | None = None  # of each node by these rooms, cooling included as in a pod's watts


class Scores(Struct, frozen=True):
    """A pod's result on every node."""

    score: Numbers  # clamped to 0..100, neutral where nothing is known
    headroom: Numbers  # raw: negative where the pod would exceed the budget
    marginal_w: Numbers  # what the pod adds, cooling included
    pod_terms: tuple[Numbers, ...] = ()  # in the order of `POD_TERMS`; empty where they have nothing to say


def prepare(columns: ScoreColumns, settings: MarginalSettings, rooms: GroupRooms | None = None) -> Prepared:
    """The terms that no pod changes, and what they take from the whole cluster."""
    node, cluster = facts_of(columns), cluster_facts(columns)
    terms = tuple(term.points(node, cluster) for term in TERMS)
    for_all = _added_up(terms[:FOR_ALL])
    return Prepared(
        headroom=_headroom(columns),
        points_per_w=points_per_w(columns),
        terms=terms,
        rest_standard=where(columns.fresh, _added_up((for_all, *terms[FOR_ALL:])), NEUTRAL_SCORE),
        rest_performance=where(columns.fresh, for_all, NEUTRAL_SCORE),
        **full_power_w(columns, settings),
        inverse_cores=columns.inverse_cores,
        inverse_gpus=columns.inverse_gpus,
        cluster=cluster,
        rooms=rooms,
        room_w=None if rooms is None else where(columns.fresh, rooms.node_w * np.maximum(1.0, columns.pue), np.inf),
    )


def _added_up(terms: Sequence[Numbers]) -> Numbers:
    """From the first to the last, as the lab's compiled sum does it."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def points_per_w(columns: ScoreColumns) -> Numbers:
    """Percent of the budget that one watt takes."""
    return where(columns.fresh & columns.has_power, 100.0 / budget_w(columns), 0.0)


def full_power_w(columns: ScoreColumns, settings: MarginalSettings) -> dict[str, Numbers]:
    """What a pod that takes the whole node adds, cooling included; by the names that `Prepared` has for it."""
    pue = np.maximum(1.0, columns.pue)
    return {
        "cpu_full_w": settings.cpu_coeff * columns.cpu_max_w * pue,
        "gpu_full_standard_w": settings.gpu_coeff_standard * columns.gpu_max_w * pue,
        "gpu_full_performance_w": settings.gpu_coeff_performance * columns.gpu_max_w * pue,
    }


def _headroom(columns: ScoreColumns) -> Numbers:
    """Percent of the budget that is free before the pod."""
    free = headroom_before(
        columns.capped_w, columns.measured_w, columns.recent_w, columns.expected_w, budget_w(columns)
    )
    return where(columns.fresh, where(columns.has_power, free, columns.predicted_headroom), 0.0)


def headroom_before(
    capped_w: Numbers, measured_w: Numbers, recent_w: Numbers, expected_w: Numbers, budget_w: Numbers
) -> Numbers:
    """Percent of the budget that is free where power is known. One number a node, or one number."""
    return (capped_w - (measured_w + recent_w + expected_w)) / budget_w * 100.0


def score(prepared: Prepared, cpu_cores: float, gpus: float, workload_class: WorkloadClass) -> Scores:
    """The score of every node for a pod that asks for this much.

    It is 0.7 · headroom with the pod, plus all terms of `TERMS` and `POD_TERMS` that a pod of this class gets.
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
    if prepared.room_w is None:
        return Scores(total_score(headroom, rest), headroom, marginal_w)
    pod_terms = tuple(term.points(marginal_w, prepared.room_w) for term in POD_TERMS)
    return Scores(total_score(headroom, _added_up((rest, *pod_terms))), headroom, marginal_w, pod_terms)


def headroom_after(headroom: Numbers, marginal_w: Numbers, points_per_w: Numbers) -> Numbers:
    """Percent of the budget that is free with the pod. One number a node, or one number: the lab compiles it."""
    return headroom - marginal_w * points_per_w


def total_score(headroom: Numbers, rest: Numbers) -> Numbers:
    """Headroom and all other terms, clamped."""
    return np.minimum(np.maximum(headroom * HEADROOM_WEIGHT + rest, 0.0), 100.0)


def base_score(prepared: Prepared) -> Numbers:
    """What each node is worth to a standard pod that asks for nothing."""
    return total_score(prepared.headroom, prepared.rest_standard)


def whole_points(scores: Numbers, score_max: int) -> Numbers:
    """Whole points, as kube-scheduler takes them."""
    return np.floor(scores * score_max / 100.0 + 0.5)


def integer_scores(scores: Numbers, score_max: int) -> NDArray[np.int64]:
    return whole_points(scores, score_max).astype(np.int64)
