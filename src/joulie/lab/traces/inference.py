"""Generated inference: requests come at a constant rate or one that goes up and down; replicas of one GPU serve them.

Load is the share of all boards that replicas hold. As an autoscaler does it, there are so many that none is busy above
70 %, and one goes only after it was not needed for five minutes. Requests are a Poisson process.
"""

from __future__ import annotations

import numpy as np

from joulie.errors import InputError
from joulie.lab.model.jobs import JobTable, Numbers
from joulie.lab.model.setup import DEFAULT_LOAD, TraceSetup
from joulie.lab.traces.arrivals import intensities
from joulie.lab.traces.formats.replicas import BUSIEST, WINDOW_S, Counts, replicas_of
from joulie.lab.traces.room import GPUS, Room

REQUEST_S = 0.5  # of a board
STABLE_WINDOWS = 5  # Kubernetes' autoscaler waits 300 s before it takes replicas away
TRIES = 20


def generate_inference(trace: TraceSetup, rng: np.random.Generator, room: Room) -> JobTable:
    """InputError where there are no boards, or too little load for a single replica."""
    boards = room.capacity[GPUS]
    if not boards:
        raise InputError("trace.work: inference needs GPUs, and no node of the cluster has one")
    load = DEFAULT_LOAD if trace.load is None else trace.load
    windows = max(1, round(trace.drawn_hours * 3600 / WINDOW_S))
    edges_s: Numbers = np.arange(windows + 1, dtype=np.float64) * WINDOW_S
    shape = intensities(rng, edges_s, trace)
    held = load * boards * windows
    rate = held * BUSIEST * WINDOW_S / REQUEST_S * shape / shape.sum()
    requests = rng.poisson(rate).astype(float)
    needed = _to_hold(requests * REQUEST_S, held)
    if not needed.any():
        raise InputError(f"trace.load: {load:g} of {boards:g} GPUs is not a single replica")
    return replicas_of(needed, np.minimum(requests * REQUEST_S, needed * BUSIEST * WINDOW_S))[0]


def _to_hold(asked_s: Numbers, held: float) -> Counts:
    """Replicas by window that come nearest to so many replica-windows: rounding up and waiting hold more than asked."""
    low, high = 0.0, 2.0
    best = _needed(asked_s)
    for _ in range(TRIES):
        middle = (low + high) / 2
        tried = _needed(asked_s * middle)
        if abs(tried.sum() - held) < abs(best.sum() - held):
            best = tried
        low, high = (middle, high) if tried.sum() < held else (low, middle)
    return best


def _needed(asked_s: Numbers) -> Counts:
    now = np.ceil(asked_s / (WINDOW_S * BUSIEST)).astype(np.int64)
    padded = np.concatenate([np.zeros(STABLE_WINDOWS - 1, np.int64), now])
    stable: Counts = np.lib.stride_tricks.sliding_window_view(padded, STABLE_WINDOWS).max(axis=1)
    return stable
