"""How long work takes: makespan, waits, slowdowns, late jobs, and how much of it is done meanwhile."""

from __future__ import annotations

import numpy as np

from joulie.lab.analysis.measures.facts import Measure, RunFacts, late, quantile
from joulie.lab.model.jobs import Numbers


def _wait_mean_s(run: RunFacts) -> float:
    return float(np.mean(run.waited_s)) if len(run.jobs) else 0.0


def _slowdown_mean(run: RunFacts) -> float:
    return float(np.mean(run.slowdown)) if len(run.jobs) else 1.0


def _stretch_mean(run: RunFacts) -> float:
    """Time from a job's start to its end over the shortest that it can take: what caps and slow nodes cost."""
    ran_s, fastest_s = run.outcome.end_s - run.outcome.start_s, run.fastest_s
    stretch = np.divide(ran_s, fastest_s, out=np.ones_like(ran_s), where=fastest_s > 0)
    return float(np.mean(stretch)) if len(run.jobs) else 1.0


def _throughput(run: RunFacts, units: Numbers) -> float | None:
    """Device-hours done in an hour while jobs arrive; of jobs that run on, as much as of their time has passed."""
    if not units.any():
        return None
    submit_s, start_s, end_s = run.jobs.submit_s, run.outcome.start_s, run.outcome.end_s
    from_s, to_s = float(submit_s[0]), float(submit_s[-1])
    ran_s = np.maximum(end_s - start_s, 1e-9)
    done = np.clip((to_s - start_s) / ran_s, 0.0, 1.0)
    return float(np.sum(units * done[run.jobs.job_of_pod])) / (to_s - from_s) if to_s > from_s else None


def _late_jobs(run: RunFacts) -> int:
    return int(np.count_nonzero(late(run.jobs, run.outcome.end_s, run.slowdown)))


MEASURES = (
    Measure("makespan_h", "Makespan", "h", 2, lambda run: run.counted.makespan_s / 3600),
    Measure("metered_h", "Time metered", "h", 2, lambda run: run.counted.metered_s / 3600, ""),
    Measure("wait_mean_s", "Wait, mean", "s", 1, _wait_mean_s),
    Measure("wait_p50_s", "Wait, median", "s", 1, lambda run: quantile(run.waited_s, 0.5) or 0.0),
    Measure("wait_p99_s", "Wait, p99", "s", 0, lambda run: quantile(run.waited_s, 0.99) or 0.0),
    Measure("stretch_mean", "Run time over the shortest, mean", "×", 4, _stretch_mean),
    Measure(
        *("cpu_throughput", "CPU work done while jobs arrive", "core-h/h", 1),
        lambda run: _throughput(run, run.jobs.cpu_units),
        "higher",
    ),
    Measure(
        *("gpu_throughput", "GPU work done while jobs arrive", "GPU-h/h", 2),
        lambda run: _throughput(run, run.jobs.gpu_units),
        "higher",
    ),
    Measure("slowdown_mean", "Slowdown, mean", "×", 3, _slowdown_mean),
    Measure("slowdown_p50", "Slowdown, median", "×", 3, lambda run: quantile(run.slowdown, 0.5) or 1.0),
    Measure("slowdown_p99", "Slowdown, p99", "×", 2, lambda run: quantile(run.slowdown, 0.99) or 1.0),
    Measure(
        *("bounded_slowdown_mean", "Bounded slowdown, mean", "×", 3),
        lambda run: float(np.mean(run.bounded_slowdown)) if len(run.jobs) else 1.0,
    ),
    Measure(  # jobs that could be done within ten seconds count as if they took these
        *("bounded_slowdown_p99", "Bounded slowdown, p99", "×", 2),
        lambda run: quantile(run.bounded_slowdown, 0.99) or 1.0,
    ),
    Measure(
        *("performance_slowdown_p50", "Slowdown of performance jobs, median", "×", 3),
        lambda run: quantile(run.performance_slowdown, 0.5),
    ),
    Measure(
        *("performance_slowdown_p99", "Slowdown of performance jobs, p99", "×", 2),
        lambda run: quantile(run.performance_slowdown, 0.99),
    ),
    Measure("late_jobs", "Late jobs", "", 0, _late_jobs),
)
