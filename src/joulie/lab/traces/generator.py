"""Work for a run, drawn from the families of work in whole arrays; the same seed gives the same bits.

Families are drawn for workloads. Most workloads are one job of one pod; trainings on several nodes are one job of
several pods (a gang), and an hpo_experiment is several independent jobs that come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.lookup import Catalogue
from joulie.lab.model.jobs import ANY_MODEL, Codes, Flags, JobTable, Numbers
from joulie.lab.model.setup import DEFAULT_LOAD, ClusterSetup, TraceSetup
from joulie.lab.traces import families as known
from joulie.lab.traces.arrivals import arrivals
from joulie.lab.traces.inference import generate_inference
from joulie.lab.traces.room import Room
from joulie.lab.traces.sampling import Drawing, Drawn

_BODIES, _TIMES, _DEADLINES, _REQUESTS = 1, 2, 3, 6  # independent streams of chance
SLACK, SPARE_S = (1.5, 4.0), 600.0  # a deadline leaves so many times the duration, and a little more


def generate(trace: TraceSetup, seed: int, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> JobTable:
    """Jobs for a cluster: as many as are asked for, or as make the load that is asked for."""
    if trace.file:
        raise ValueError("this trace is a file's: joulie.lab.traces.reading.jobs_of reads it")
    room = Room(cluster, catalogue)
    if trace.work == "inference":
        return generate_inference(trace, np.random.default_rng([seed, _REQUESTS]), room)
    drawing = Drawing(trace, room, (seed, _BODIES))
    span_s = trace.drawn_hours * 3600.0
    if trace.jobs is not None:
        drawn = drawing.jobs(trace.jobs)
    else:
        drawn = drawing.work(DEFAULT_LOAD if trace.load is None else trace.load, span_s)
    workloads = int(drawn.workload[-1]) + 1
    rng = np.random.default_rng([seed, _TIMES])
    times_s = arrivals(rng, workloads, trace)
    submit_s = times_s[drawn.workload]
    deadline_s = np.full(len(drawn), np.nan)
    if trace.deadlines:
        slack = np.random.default_rng([seed, _DEADLINES]).uniform(*SLACK, len(drawn))
        deadline_s = submit_s + slack * drawn.duration_s + SPARE_S
    return _table(drawn, submit_s, deadline_s, drawing.server_cores)


def _table(drawn: Drawn, submit_s: Numbers, deadline_s: Numbers, server_cores: float) -> JobTable:
    """Jobs with their pods: a gang's workers first, then its parameter servers."""
    pods = drawn.workers + drawn.servers
    first_pod = np.concatenate([[0], np.cumsum(pods, dtype=np.int32)], dtype=np.int32)
    job = np.repeat(np.arange(len(drawn)), pods)
    server = np.zeros(len(job), bool)
    server[_servers(drawn, first_pod)] = True
    gpus = np.where(server, 0, drawn.gpus[job]).astype(np.int32)
    cores = np.where(server, server_cores, drawn.cores[job])
    duration_s = drawn.duration_s[job]
    family = np.where(server, len(known.FAMILIES), drawn.family[job])
    place = family * known.APPLICATIONS + drawn.application[job]
    profile = {name: table.ravel()[place] for name, table in known.applications().items()}
    whole = np.ones(len(job))
    return JobTable(
        submit_s=submit_s,
        deadline_s=deadline_s,
        family=drawn.family,
        first_pod=first_pod,
        cores=cores,
        gpus=gpus,
        gpu_model=np.full(len(job), ANY_MODEL, np.int32),
        performance=drawn.performance[job],
        cpu_units=np.where(gpus > 0, 0.0, cores * duration_s),
        gpu_units=gpus * duration_s,
        **profile,
        cpu_sensitivity=whole,
        gpu_sensitivity=whole,
        families=known.NAMES,
        gpu_models=(),
        ids=GeneratedIds(drawn.workload, drawn.trial, np.isin(drawn.family, known.HPO)),
    )


def _servers(drawn: Drawn, first_pod: Codes) -> NDArray[np.intp]:
    """Which pods are parameter servers."""
    served = np.flatnonzero(drawn.servers)
    first = first_pod[served] + drawn.workers[served]
    counts = drawn.servers[served]
    starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return starts + np.arange(len(starts))


class GeneratedIds(Sequence[str]):
    """Names of jobs, made when asked for: `w0000012`, and `w0000013/2` where a workload has several jobs."""

    def __init__(self, workload: Codes, trial: NDArray[np.int16], several: Flags) -> None:
        self._workload, self._trial, self._several = workload, trial, several

    def __len__(self) -> int:
        return len(self._workload)

    def __iter__(self) -> Iterator[str]:
        parts = zip(self._workload.tolist(), self._trial.tolist(), self._several.tolist(), strict=True)
        return (f"w{workload:07d}/{trial}" if several else f"w{workload:07d}" for workload, trial, several in parts)

    @overload
    def __getitem__(self, job: int) -> str: ...
    @overload
    def __getitem__(self, job: slice) -> list[str]: ...
    def __getitem__(self, job: int | slice) -> str | list[str]:
        if isinstance(job, slice):
            return [self[place] for place in range(*job.indices(len(self)))]
        name = f"w{self._workload[job]:07d}"
        return f"{name}/{self._trial[job]}" if self._several[job] else name
