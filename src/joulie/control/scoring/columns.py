"""What is known of each node when it is scored, in columns, and what all nodes together come to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.exact_sum import exact_sum
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

# How a node's class stands in an array.
CLASS_CODES = {UNKNOWN: 0, PERFORMANCE: 1, ECO: 2, DRAINING: 3}
CLASS_NAMES = {code: name for name, code in CLASS_CODES.items()}
PERFORMANCE_CODE, ECO_CODE, DRAINING_CODE = (CLASS_CODES[name] for name in (PERFORMANCE, ECO, DRAINING))


class ScoreColumns(Struct):
    """One element a node. The extender changes elements in place as objects change."""

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


class ClusterFacts(NamedTuple):
    """What all nodes share: numbers over every fresh twin, never over the candidates of a request."""

    performance_pressure: float  # how congested the performance nodes are on average, in percent
    trend_w_per_min: float


def cluster_facts(columns: ScoreColumns) -> ClusterFacts:
    counts = columns.fresh & (columns.class_code == PERFORMANCE_CODE)
    total, nodes = exact_sum(np.where(counts, _congestion(columns), 0.0)), int(np.count_nonzero(counts))
    trend = exact_sum(where(columns.fresh, columns.trend_w_per_min, 0.0))
    return ClusterFacts(total / nodes if nodes else 0.0, trend)


def _congestion(columns: ScoreColumns) -> Numbers:
    """How congested each node is, in percent."""
    free = np.clip((columns.capped_w - columns.measured_w) / budget_w(columns) * 100.0, 0.0, 100.0)
    return 100.0 - where(columns.has_power, free, columns.predicted_headroom)


def budget_w(columns: ScoreColumns) -> Numbers:
    """Something to divide by, also where the budget is not known."""
    return where(columns.has_power, columns.capped_w, 1.0)


def where(flags: Flags, values: Numbers, otherwise: Numbers | float) -> Numbers:
    """`np.where`, which costs as much as four sums, only where it is needed; may be `values` itself."""
    return values if flags.all() else np.where(flags, values, otherwise)
