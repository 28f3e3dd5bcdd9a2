"""What a run is judged by: energy, delay and what they cost, each with its unit and the side on which it is better.

Energy is counted from the beginning of a run until its last job is done. One device-hour is a core of an uncapped EPYC
9654, or an uncapped H100 SXM, for an hour; how many a run does is a property of its jobs, so two runs of the same jobs
did the same work by construction. Energy by kind of work is that of the nodes without boards for CPU work and that of
those with boards for GPU work, each with its share of the cooling by watts. It is left out where CPU work may run on
nodes with boards, because a meter cannot split a node between its pods.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from joulie.lab.jobs import Flags, JobTable, Numbers
from joulie.lab.outcome import Outcome

J_PER_KWH = 3.6e6
LATE_SLOWDOWN = 2.0  # of jobs without a deadline


class Measures(Struct, frozen=True, kw_only=True):
    """One run. None: there is nothing to measure it on, such as GPU energy without GPU work."""

    it_kwh: float
    facility_kwh: float
    cpu_device_hours: float
    gpu_device_hours: float
    kwh_per_1000_cpu_hours: float | None
    kwh_per_1000_gpu_hours: float | None
    kwh_per_1000_device_hours: float | None  # both kinds added: compares runs of one trace, never traces
    pue: float
    peak_kw: float  # facility, highest mean of a recorded interval
    peak_it_kw: float  # highest mean of a plant step
    ramp_p99_kw_per_min: float | None
    idle_kw: float  # facility, once all work is done
    idle_gpu_nodes_kw: float  # that part of it which nodes with boards and their cooling draw
    settling_kwh: float  # facility, above that, of nodes that are awake at the end until they are switched off
    settling_gpu_nodes_kwh: float
    settled_h: float  # after metering, until all of them are
    makespan_h: float
    metered_h: float
    wait_mean_s: float
    wait_p50_s: float
    wait_p99_s: float
    slowdown_mean: float
    slowdown_p50: float
    slowdown_p99: float
    performance_slowdown_p50: float | None
    performance_slowdown_p99: float | None
    late_jobs: int
    cap_violation_s: float
    throttled_s: float
    transitions: int
    wakes: int
    twin_error_pct: float
    bound_kwh: float | None  # IT energy that no schedule and no caps can go below
    over_bound_pct: float | None
    decision_cpu_s: float
    wall_s: float
    jobs: int
    pods: int


class Idle(NamedTuple):
    """IT power of nodes without work, asleep where they may sleep; and what they take besides until they are."""

    all_w: float
    gpu_nodes_w: float  # of those with boards
    settling_j: float = 0.0
    settling_gpu_nodes_j: float = 0.0
    settled_s: float = 0.0  # until the last of them is


class Known(NamedTuple):
    """How a measure is shown."""

    label: str
    unit: str
    digits: int
    better: Literal["lower", "higher", ""] = "lower"


# In the order of tables. What the seed alone decides, or what only says how the computer was doing, has no better side.
KNOWN: dict[str, Known] = {
    "kwh_per_1000_cpu_hours": Known("Energy per 1,000 CPU core-hours", "kWh", 2),
    "kwh_per_1000_gpu_hours": Known("Energy per 1,000 GPU-hours", "kWh", 1),
    "kwh_per_1000_device_hours": Known("Energy per 1,000 device-hours, both kinds", "kWh", 2),
    "facility_kwh": Known("Facility energy", "kWh", 1),
    "it_kwh": Known("IT energy", "kWh", 1),
    "bound_kwh": Known("Lower bound of IT energy", "kWh", 1, ""),
    "over_bound_pct": Known("IT energy above its bound", "%", 1),
    "pue": Known("PUE", "", 3),
    "peak_kw": Known("Peak power of the facility, means as recorded", "kW", 1),
    "peak_it_kw": Known("Peak IT power, means of plant steps", "kW", 1),
    "ramp_p99_kw_per_min": Known("Ramp, p99", "kW/min", 2),
    "idle_kw": Known("Facility power without work", "kW", 2, ""),
    "idle_gpu_nodes_kw": Known("… of which nodes with boards", "kW", 2, ""),
    "settling_kwh": Known("Until empty nodes sleep, besides", "kWh", 2, ""),
    "settling_gpu_nodes_kwh": Known("… of which nodes with boards", "kWh", 2, ""),
    "settled_h": Known("… which takes", "h", 2, ""),
    "makespan_h": Known("Makespan", "h", 2),
    "metered_h": Known("Time metered", "h", 2, ""),
    "wait_mean_s": Known("Wait, mean", "s", 1),
    "wait_p50_s": Known("Wait, median", "s", 1),
    "wait_p99_s": Known("Wait, p99", "s", 0),
    "slowdown_mean": Known("Slowdown, mean", "×", 3),
    "slowdown_p50": Known("Slowdown, median", "×", 3),
    "slowdown_p99": Known("Slowdown, p99", "×", 2),
    "performance_slowdown_p50": Known("Slowdown of performance jobs, median", "×", 3),
    "performance_slowdown_p99": Known("Slowdown of performance jobs, p99", "×", 2),
    "late_jobs": Known("Late jobs", "", 0),
    "cap_violation_s": Known("Above a cap", "node-s", 0),
    "throttled_s": Known("Too hot for full speed", "node-s", 0),
    "transitions": Known("Changes of node states", "", 0),
    "wakes": Known("Nodes woken", "", 0),
    "twin_error_pct": Known("Error of the twins", "% of maximum", 2),
    "cpu_device_hours": Known("CPU work", "core-h", 0, ""),
    "gpu_device_hours": Known("GPU work", "GPU-h", 0, ""),
    "jobs": Known("Jobs", "", 0, ""),
    "pods": Known("Pods", "", 0, ""),
    "decision_cpu_s": Known("CPU time of decisions", "s", 2, ""),
    "wall_s": Known("Time to simulate", "s", 2, ""),
}
# What the computer decides, not the seed: left out where runs are compared bit by bit.
NOT_REPEATABLE = ("decision_cpu_s", "wall_s")


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


def measure(
    outcome: Outcome, *, fastest_s: Numbers, idle: Idle, bound_j: float | None = None, kinds_apart: bool = True
) -> Measures:
    """What the run comes to. `kinds_apart`: CPU work keeps off nodes with boards."""
    counted, jobs = outcome.counted, outcome.jobs
    it_kwh = counted.it_energy_j / J_PER_KWH
    facility_kwh = (counted.it_energy_j + counted.fan_energy_j + counted.compressor_energy_j) / J_PER_KWH
    pue = facility_kwh / it_kwh if it_kwh > 0 else 1.0
    cpu_hours, gpu_hours = float(np.sum(jobs.cpu_units)) / 3600, float(np.sum(jobs.gpu_units)) / 3600
    gpu_kwh = counted.gpu_nodes_energy_j / J_PER_KWH * pue
    waited_s, slowdown = waits_s(outcome), slowdowns(outcome, fastest_s)
    of_performance = slowdown[performance_jobs(jobs)]
    facility_kw, time_s = _recorded(outcome)
    bound_kwh = None if bound_j is None else bound_j / J_PER_KWH
    return Measures(
        it_kwh=it_kwh,
        facility_kwh=facility_kwh,
        cpu_device_hours=cpu_hours,
        gpu_device_hours=gpu_hours,
        kwh_per_1000_cpu_hours=_per_1000(facility_kwh - gpu_kwh, cpu_hours) if kinds_apart else None,
        kwh_per_1000_gpu_hours=_per_1000(gpu_kwh, gpu_hours) if kinds_apart else None,
        kwh_per_1000_device_hours=_per_1000(facility_kwh, cpu_hours + gpu_hours),
        pue=pue,
        peak_kw=float(np.max(facility_kw, initial=0.0)),
        peak_it_kw=counted.peak_it_w / 1000,
        ramp_p99_kw_per_min=_ramp_p99(facility_kw, time_s),
        idle_kw=idle.all_w * pue / 1000,
        idle_gpu_nodes_kw=idle.gpu_nodes_w * pue / 1000,
        settling_kwh=idle.settling_j / J_PER_KWH * pue,
        settling_gpu_nodes_kwh=idle.settling_gpu_nodes_j / J_PER_KWH * pue,
        settled_h=idle.settled_s / 3600,
        makespan_h=counted.makespan_s / 3600,
        metered_h=counted.metered_s / 3600,
        wait_mean_s=float(np.mean(waited_s)) if len(jobs) else 0.0,
        wait_p50_s=_quantile(waited_s, 0.5) or 0.0,
        wait_p99_s=_quantile(waited_s, 0.99) or 0.0,
        slowdown_mean=float(np.mean(slowdown)) if len(jobs) else 1.0,
        slowdown_p50=_quantile(slowdown, 0.5) or 1.0,
        slowdown_p99=_quantile(slowdown, 0.99) or 1.0,
        performance_slowdown_p50=_quantile(of_performance, 0.5),
        performance_slowdown_p99=_quantile(of_performance, 0.99),
        late_jobs=int(np.count_nonzero(late(jobs, outcome.end_s, slowdown))),
        cap_violation_s=counted.cap_violation_s,
        throttled_s=counted.throttled_s,
        transitions=counted.transitions,
        wakes=counted.wakes,
        twin_error_pct=counted.twin_error_pct,
        bound_kwh=bound_kwh,
        over_bound_pct=100 * (it_kwh / bound_kwh - 1) if bound_kwh else None,
        decision_cpu_s=counted.decision_cpu_s,
        wall_s=counted.wall_s,
        jobs=len(jobs),
        pods=jobs.pods,
    )


def _per_1000(kwh: float, hours: float) -> float | None:
    return 1000 * kwh / hours if hours > 0 else None


def _quantile(values: Numbers, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _recorded(outcome: Outcome) -> tuple[Numbers, Numbers]:
    """Facility power in kW and time; without the last interval where the run ended in the midst of it."""
    time_s = outcome.series["time_s"]
    facility_kw = (outcome.series["it_w"] + outcome.series["cooling_w"]) / 1000
    whole = len(time_s) < 2 or time_s[-1] - time_s[-2] >= time_s[0] * (1 - 1e-9)
    return (facility_kw, time_s) if whole else (facility_kw[:-1], time_s[:-1])


def _ramp_p99(facility_kw: Numbers, time_s: Numbers) -> float | None:
    """How fast power changes from one recorded interval to the next, up or down."""
    if len(time_s) < 3:
        return None
    return _quantile(np.abs(np.diff(facility_kw)) / (np.diff(time_s) / 60), 0.99)
