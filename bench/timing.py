"""Medians of interleaved runs: what disturbs one measurement disturbs its yardstick too."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

RUNS = 5


def interleaved(jobs: Mapping[str, Callable[[], object]], runs: int = RUNS) -> dict[str, float]:
    """Median seconds of each job, run in turns; garbage is collected between runs, never within the yardsticks."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(runs):
        for name, job in jobs.items():
            gc.collect()
            started = time.perf_counter()
            result = job()
            seconds[name].append(time.perf_counter() - started)
            del result
    return {name: statistics.median(values) for name, values in seconds.items()}


def repeated(job: Callable[[], object], times: int) -> Callable[[], None]:
    """The job many times over, for work too short to time once."""

    def run() -> None:
        for _ in range(times):
            job()

    return run


def without_gc(job: Callable[[], object]) -> Callable[[], object]:
    """The job with the cyclic garbage collector off: the fastest it can be, so the strictest yardstick."""

    def run() -> object:
        gc.disable()
        try:
            return job()
        finally:
            gc.enable()

    return run
