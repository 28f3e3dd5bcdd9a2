"""What the pods of a trace have in common: few shapes ask for the same, and jobs of one kind ask for the same shapes.

So where a pod of a shape fits is found once, not once for each of a million pods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import JobTable, Numbers

Codes = NDArray[np.int32]
Integers = NDArray[np.int64]

MILLI = 1000  # Kubernetes counts cores to the thousandth


@dataclass(frozen=True, slots=True)
class Shapes:
    """One element a shape, then by pod and by job."""

    mcores: Integers
    gpus: Integers
    gpu_model: Codes
    performance: NDArray[np.bool_]
    of_pod: Codes
    kind_of_job: Codes
    kinds: int


def shapes_of(jobs: JobTable) -> Shapes:
    key = (asked_keys(jobs) << 1) | jobs.performance
    keys = np.unique(key)
    of_pod = np.searchsorted(keys, key).astype(np.int32)
    kind_of_job, kinds = _kinds(jobs, of_pod, len(keys))
    return Shapes(
        mcores=keys >> 33,
        gpus=(keys >> 17) & 0xFFFF,
        gpu_model=((keys >> 1) & 0xFFFF).astype(np.int32) - 1,
        performance=(keys & 1) == 1,
        of_pod=of_pod,
        kind_of_job=kind_of_job,
        kinds=kinds,
    )


def _kinds(jobs: JobTable, of_pod: Codes, shapes: int) -> tuple[Codes, int]:
    """A job of one pod has its shape as kind; gangs have kinds of their own, by the sequence of their shapes."""
    counts = np.diff(jobs.first_pod)
    kind = of_pod[jobs.first_pod[:-1]].astype(np.int32)
    gangs = np.flatnonzero(counts > 1)
    if not gangs.size:
        return kind, shapes
    members = np.flatnonzero(np.repeat(counts > 1, counts))
    start = np.concatenate([[0], np.cumsum(counts[gangs])[:-1]])
    position = np.arange(len(members)) - np.repeat(start, counts[gangs])
    mixed = _mixed(of_pod[members].astype(np.uint64) * np.uint64(1_000_003) + position.astype(np.uint64))
    _, inverse = np.unique(np.add.reduceat(mixed, start), return_inverse=True)
    kind[gangs] = shapes + inverse
    return kind, shapes + int(inverse.max()) + 1


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits spread so well that sums of different sequences differ (splitmix64)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def asked_keys(jobs: JobTable) -> Integers:
    """What each pod asks for as one number: thousandths of a core, boards, their model."""
    return (((mcores_of(jobs.cores) << 16) | jobs.gpus.astype(np.int64)) << 16) | (jobs.gpu_model.astype(np.int64) + 1)


def mcores_of(cores: Numbers) -> Integers:
    """Thousandths of a core as a run counts them: rounded up."""
    counted: Integers = np.ceil(cores * MILLI - 1e-6).astype(np.int64)
    return counted
