"""Replicas that serve a changing load, as jobs: the k-th comes when k are needed and runs as long as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import JobTable, Numbers
from joulie.lab.traces.families import Profile
from joulie.lab.traces.formats.columns import RequestColumns, jobs_of_requests

WINDOW_S = 60.0
BUSIEST = 0.7  # more replicas are there before one is busier
CORES = 8.0
PROFILE = Profile(0.4, 0.0, 0.5, 0.1, 0.2)

Counts = NDArray[np.int64]


def replicas_of(needed: Counts, asked_s: Numbers) -> tuple[JobTable, Counts]:
    """Jobs of one GPU each, and the window in which each begins; `needed` and the GPU-seconds asked for by window.

    All are of class performance, for somebody waits for the answer, and as busy as the replicas were on average.
    """
    busy = np.divide(asked_s, needed * WINDOW_S, out=np.zeros(len(needed)), where=needed > 0)
    summed = np.concatenate([[0.0], np.cumsum(busy)])
    change = np.diff(needed, prepend=0, append=0)
    begin, replica = _steps(change, needed)
    end, ended = _steps(-change[::-1], needed[::-1])
    end = len(needed) - end
    # The n-th time that a replica begins goes with the n-th time that it ends.
    end[np.lexsort((begin, replica))] = end[np.lexsort((end, ended))]
    count = len(begin)
    jobs = jobs_of_requests(
        RequestColumns(
            submit_s=begin.astype(float) * WINDOW_S,
            duration_s=(end - begin).astype(float) * WINDOW_S,
            pods=np.ones(count, np.int64),
            cores=np.full(count, CORES),
            gpus=np.ones(count, np.int64),
            performance=np.ones(count, bool),
            cpu_utilisation=np.full(count, PROFILE.cpu_utilisation),
            gpu_utilisation=(summed[end] - summed[begin]) / np.maximum(end - begin, 1),
            ids=[f"replica-{number}-{first}" for number, first in zip(replica.tolist(), begin.tolist(), strict=True)],
        ),
        "inference",
        PROFILE,
    )
    return jobs, begin


def _steps(change: Counts, needed: Counts) -> tuple[Counts, Counts]:
    """When replicas come, in the order of time, and which; read backwards: when they go."""
    rises = np.maximum(change, 0)
    when = np.repeat(np.arange(len(rises)), rises)
    nth = np.arange(len(when)) - np.repeat(np.cumsum(rises) - rises, rises)
    before = np.concatenate([[0], needed])
    return when, before[when] + nth
