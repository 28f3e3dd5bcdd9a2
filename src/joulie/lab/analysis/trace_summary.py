"""A trace in numbers: what comes, how much work it is, and what it asks of a cluster."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.capacity import kinds, loads
from joulie.lab.model.jobs import Flags, JobTable
from joulie.lab.model.setup import ClusterSetup
from joulie.lab.traces.families import FAMILIES, HPO, NAMES

MAX_BARS = 24


class FamilySummary(Struct, frozen=True, rename="camel"):
    """Shares are of the workloads of the same kind, GPU or CPU work."""

    family: str
    workloads: int
    jobs: int
    pods: int
    core_hours: float
    gpu_hours: float
    share_pct: float
    spec_share_pct: float | None


class TraceSummary(Struct, frozen=True, rename="camel"):
    """Hours are those of reference devices."""

    jobs: int
    pods: int
    gangs: int
    largest_gang: int
    performance_pct: float  # of jobs
    with_deadline: int
    first_s: float
    last_s: float
    median_s: float  # duration on reference devices
    p99_s: float
    longest_s: float
    pod_shapes: int
    offered_load: dict[str, float] | None  # None: all come at once
    families: list[FamilySummary]
    bar_hours: float
    arrivals: list[int]  # jobs that come in each such time


def summarise(jobs: JobTable, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> TraceSummary:
    """Everything at once; the families in the order of their table."""
    known = catalogue or Catalogue()
    sizes = np.diff(jobs.first_pod)
    duration_s = jobs.reference_s
    median_s, p99_s = np.percentile(duration_s, [50, 99]).tolist()
    last_s = float(jobs.submit_s[-1])
    bar_hours = max(1.0, math.ceil(last_s / 3600 / MAX_BARS))
    bars = max(1, math.ceil(last_s / 3600 / bar_hours))
    place = np.minimum((jobs.submit_s / 3600 / bar_hours).astype(np.int64), bars - 1)
    shapes = np.unique(np.stack([jobs.cores, jobs.gpus, jobs.gpu_model, jobs.performance], axis=1), axis=0)
    return TraceSummary(
        jobs=len(jobs),
        pods=jobs.pods,
        gangs=int(np.count_nonzero(sizes > 1)),
        largest_gang=int(sizes.max()),
        performance_pct=100 * float(np.mean(jobs.performance[jobs.first_pod[:-1]])),
        with_deadline=int(np.count_nonzero(~np.isnan(jobs.deadline_s))),
        first_s=float(jobs.submit_s[0]),
        last_s=last_s,
        median_s=median_s,
        p99_s=p99_s,
        longest_s=float(duration_s.max()),
        pod_shapes=len(shapes),
        offered_load=loads(jobs, cluster, kinds(cluster, known), known) or None,
        families=_families(jobs),
        bar_hours=bar_hours,
        arrivals=np.bincount(place, minlength=bars).tolist(),
    )


def _families(jobs: JobTable) -> list[FamilySummary]:
    counted = [(name, jobs.family == code) for code, name in enumerate(jobs.families)]
    there = [(name, here) for name, here in counted if here.any()]
    workloads = {name: _workloads(jobs, here, name) for name, here in there}
    gpu_work = {name: bool(jobs.gpu_units[here[jobs.job_of_pod]].any()) for name, here in there}
    rows = []
    for name, here in there:
        pods = here[jobs.job_of_pod]
        alike = sum(count for other, count in workloads.items() if gpu_work[other] == gpu_work[name])
        rows.append(
            FamilySummary(
                family=name,
                workloads=workloads[name],
                jobs=int(here.sum()),
                pods=int(pods.sum()),
                core_hours=float(jobs.cpu_units[pods].sum()) / 3600,
                gpu_hours=float(jobs.gpu_units[pods].sum()) / 3600,
                share_pct=100 * workloads[name] / alike,
                spec_share_pct=100 * FAMILIES[NAMES.index(name)].share if name in NAMES else None,
            )
        )
    return rows


def _workloads(jobs: JobTable, here: Flags, name: str) -> int:
    """Jobs, but for the trials of an experiment, which are named `WORKLOAD/N`."""
    if name != NAMES[HPO]:
        return int(here.sum())
    return len({jobs.id_of(job).rpartition("/")[0] or job for job in np.flatnonzero(here).tolist()})
