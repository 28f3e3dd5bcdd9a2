"""What a run leaves behind, before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import Flags, JobTable, Numbers

# Columns of the series, one element every `record_s`.
SERIES = (
    "time_s",  # end of the interval
    "it_w",  # mean of the interval
    "cooling_w",  # fans and compressors, mean
    "outside_c",
    "inlet_c",  # of the warmest zone
    "cpu_cap_pct",  # mean over nodes, 100: uncapped
    "gpu_cap_pct",  # mean over nodes that have boards
    "running_jobs",
    "waiting_jobs",
    "eco_nodes",
    "asleep_nodes",
)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Numbers of a run as a whole; the same seed gives the same bits, but for `decision_cpu_s` and `wall_s`."""

    makespan_s: float  # from the first arrival to the last end
    metered_s: float  # from the beginning of the run to where metering stopped
    it_energy_j: float
    gpu_nodes_energy_j: float  # of this, what nodes with GPUs took
    fan_energy_j: float
    compressor_energy_j: float
    heat_removed_j: float
    heat_stored_j: float
    peak_it_w: float  # highest mean of a plant step
    ticks: int  # of the operator
    transitions: int  # of nodes between states, applied
    wakes: int
    cap_violation_s: float  # node-seconds above a cap
    throttled_s: float  # node-seconds too hot for full speed
    twin_error_pct: float  # mean |what the twin takes for measured − truth| over the node's maximum, at ticks
    decision_cpu_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class BudgetsCounted:
    """How well the limits of a run's budgets were kept, by what their nodes drew at the wall."""

    above_limit_s: float  # group-seconds
    worst_excess_w: float
    worst_excess_pct: float  # of the limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run to the end of all work."""

    jobs: JobTable
    start_s: Numbers  # by job
    end_s: Numbers
    backfilled: Flags  # by job: passed another in the queue
    node: NDArray[np.int32]  # by pod
    nodes: tuple[str, ...]  # names
    series: dict[str, Numbers]
    counted: RunTotals
    awake_s: Numbers  # by node: how long after the end of metering until it is switched off; 0 where none ever is
    budgets: BudgetsCounted | None = None  # of a run without budgets
