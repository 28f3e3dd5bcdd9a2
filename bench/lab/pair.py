"""Two runs beside each other, one on each core, as a sweep has them: what a run then costs."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Barrier

import numpy as np

from joulie.lab.model.setup import RunSetup, TraceSetup
from joulie.lab.simulation.engine import SimulatedRun
from joulie.lab.traces.generator import generate

PAIR = 2
MAX_S = 600.0


def seconds_a_run(setup: RunSetup, trace: TraceSetup) -> float:
    """From the moment when both begin to the end of the later one, by the number of runs. Traces are there before."""
    context = multiprocessing.get_context("spawn")
    begin, ended = context.Barrier(PAIR + 1), context.Barrier(PAIR + 1)
    runs = [context.Process(target=_run, args=(setup, trace, seed, begin, ended)) for seed in range(1, PAIR + 1)]
    for run in runs:
        run.start()
    try:
        begin.wait(MAX_S)
        began = time.perf_counter()
        ended.wait(MAX_S)
        return (time.perf_counter() - began) / PAIR
    finally:
        for run in runs:
            run.terminate()
            run.join()


def _run(setup: RunSetup, trace: TraceSetup, seed: int, begin: Barrier, ended: Barrier) -> None:
    try:
        jobs = generate(trace, seed, setup.cluster)
        SimulatedRun(
            setup, generate(TraceSetup(hours=1, jobs=100), 1, setup.cluster), seed
        ).run()  # reads compiled code
        begin.wait(MAX_S)
        outcome = SimulatedRun(setup, jobs, seed).run()
        assert not np.isnan(outcome.end_s).any()
        ended.wait(MAX_S)
    except BaseException:
        begin.abort()  # the other side must not wait for a run that has failed
        ended.abort()
        raise
