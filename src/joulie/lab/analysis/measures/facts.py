"""What measures are made of: a finished run, and what several of them share, computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from joulie.lab.model.jobs import Flags, JobTable, Numbers
from joulie.lab.model.outcome import Outcome, RunTotals

J_PER_KWH = 3.6e6
LATE_SLOWDOWN = 2.0  # of jobs without a deadline
BOUND_S = 10.0  # of the bounded slowdown: what is shorter counts as if it took this long

Value = float | int | None


class Idle(NamedTuple):
    """IT power of nodes without work, asleep where they may sleep; and what they take besides until they are."""

    all_w: float
    gpu_nodes_w: float  # of those with boards
    settling_j: float = 0.0
    settling_gpu_nodes_j: float = 0.0
    settled_s: float = 0.0  # until the last of them is


@dataclass(frozen=True)
class RunFacts:
    """A run that is done."""

    outcome: Outcome
    fastest_s: Numbers  # the shortest that each job can take
    idle: Idle
    bound_j: float | None = None  # IT energy that no schedule and no caps can go below
    kinds_apart: bool = True  # CPU work keeps off nodes with boards
    offered: Mapping[str, float] = field(default_factory=dict)  # work over what can be done of it, by resource

    @property
    def counted(self) -> RunTotals:
        return self.outcome.counted

    @property
    def jobs(self) -> JobTable:
        return self.outcome.jobs

    @cached_property
    def it_kwh(self) -> float:
        return self.counted.it_energy_j / J_PER_KWH

    @cached_property
    def facility_kwh(self) -> float:
        counted = self.counted
        return (counted.it_energy_j + counted.fan_energy_j + counted.compressor_energy_j) / J_PER_KWH

    @cached_property
    def pue(self) -> float:
        return self.facility_kwh / self.it_kwh if self.it_kwh > 0 else 1.0

    @cached_property
    def gpu_kwh(self) -> float:
        """Of nodes with boards, with their share of the cooling by watts."""
        return self.counted.gpu_nodes_energy_j / J_PER_KWH * self.pue

    @cached_property
    def cpu_hours(self) -> float:
        return float(np.sum(self.jobs.cpu_units)) / 3600

    @cached_property
    def gpu_hours(self) -> float:
        return float(np.sum(self.jobs.gpu_units)) / 3600

    @cached_property
    def waited_s(self) -> Numbers:
        return waits_s(self.outcome)

    @cached_property
    def slowdown(self) -> Numbers:
        return slowdowns(self.outcome, self.fastest_s)

    @cached_property
    def bounded_slowdown(self) -> Numbers:
        """As Feitelson has it: a wait of a minute is no disaster for a job of a second."""
        spent_s = self.outcome.end_s - self.jobs.submit_s
        return np.maximum(1.0, spent_s / np.maximum(self.fastest_s, BOUND_S))

    @cached_property
    def performance_slowdown(self) -> Numbers:
        return self.slowdown[performance_jobs(self.jobs)]

    @cached_property
    def recorded(self) -> tuple[Numbers, Numbers]:
        """Facility power in kW and time; without the last interval where the run ended in the midst of it."""
        time_s = self.outcome.series["time_s"]
        facility_kw = (self.outcome.series["it_w"] + self.outcome.series["cooling_w"]) / 1000
        whole = len(time_s) < 2 or time_s[-1] - time_s[-2] >= time_s[0] * (1 - 1e-9)
        return (facility_kw, time_s) if whole else (facility_kw[:-1], time_s[:-1])


class Measure(NamedTuple):
    """One number that a run is judged by, and how it is shown."""

    key: str
    label: str
    unit: str
    digits: int
    of: Callable[[RunFacts], Value]  # None: there is nothing to measure it on, such as GPU energy without GPU work
    better: Literal["lower", "higher", ""] = "lower"  # "": the seed alone decides it, or how the computer was doing
    repeatable: bool = True  # the same seed gives the same bits


def waits_s(outcome: Outcome) -> Numbers:
    """How long each job waited."""
    waited: Numbers = outcome.start_s - outcome.jobs.submit_s
    return waited


def slowdowns(outcome: Outcome, fastest_s: Numbers) -> Numbers:
    """Time from submission to end of each job over the shortest that it can take on this cluster, uncapped."""
    spent_s: Numbers = outcome.end_s - outcome.jobs.submit_s
    return np.divide(spent_s, fastest_s, out=np.ones_like(spent_s), where=fastest_s > 0)


def late(jobs: JobTable, end_s: Numbers, slowdown: Numbers) -> Flags:
    """Past the deadline; without one, more than twice as long as it can take."""
    return np.where(np.isnan(jobs.deadline_s), slowdown > LATE_SLOWDOWN, end_s > jobs.deadline_s)


def performance_jobs(jobs: JobTable) -> Flags:
    """Jobs with at least one pod of the class `performance`."""
    return np.logical_or.reduceat(jobs.performance, jobs.first_pod[:-1]) if len(jobs) else np.zeros(0, dtype=np.bool_)


def quantile(values: Numbers, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None
