"""Part of a trace, or all of it faster: the beginning, some of the jobs, other times of arrival."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.jobs import Flags, JobTable
from joulie.lab.model.setup import ClusterSetup, TraceSetup
from joulie.lab.traces.blocks import Drawn
from joulie.lab.traces.formats.records import MAX_TIME_S
from joulie.lab.traces.room import offered_load

_PER_JOB = ("submit_s", "deadline_s", "family")
PER_POD = (
    *("cores", "gpus", "gpu_model", "performance", "cpu_units", "gpu_units", "cpu_utilisation", "gpu_utilisation"),
    *("memory_intensity", "io_intensity", "feed_intensity", "cpu_sensitivity", "gpu_sensitivity"),
)


def chosen(jobs: JobTable, keep: Flags) -> JobTable:
    """Only these jobs, with all their pods."""
    pods = keep[jobs.job_of_pod]
    sizes = np.diff(jobs.first_pod)[keep]
    ids = [jobs.ids[job] for job in np.flatnonzero(keep).tolist()] if jobs.ids else ()
    return replace(
        jobs,
        **{name: getattr(jobs, name)[keep] for name in _PER_JOB},
        **{name: getattr(jobs, name)[pods] for name in PER_POD},
        first_pod=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        ids=ids,
    )


def of_blocks(jobs: JobTable, drawn: Drawn) -> JobTable:
    """The jobs that were drawn, with all their pods; a job that comes again has another name."""
    job, sizes = drawn.row, np.diff(jobs.first_pod)[drawn.row]
    ends = np.cumsum(sizes)
    pod = np.arange(int(sizes.sum())) + np.repeat(jobs.first_pod[job] - (ends - sizes), sizes)
    names = [f"b{place}-{jobs.id_of(row)}" for place, row in zip(drawn.place.tolist(), job.tolist(), strict=True)]
    return replace(
        jobs,
        submit_s=drawn.time_s,
        deadline_s=jobs.deadline_s[job] + (drawn.time_s - jobs.submit_s[job]),
        family=jobs.family[job],
        first_pod=np.concatenate([[0], ends]).astype(np.int32),
        **{name: getattr(jobs, name)[pod] for name in PER_POD},
        ids=names,
    )


def cut(jobs: JobTable, trace: TraceSetup, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> JobTable:
    """What a setup takes of a file: its first hours or jobs, made longer or shorter, at times that make a load."""
    if trace.hours is not None:
        jobs = chosen(jobs, jobs.submit_s < trace.hours * 3600.0)
    if trace.jobs is not None:
        jobs = chosen(jobs, np.arange(len(jobs)) < trace.jobs)
    if not len(jobs):
        where = (
            f"within the first {trace.hours:g} hours" if trace.hours is not None else "in the blocks that were drawn"
        )
        raise InputError(f"{trace.file}: holds no job {where}")
    if trace.duration_scale != 1:
        scale = trace.duration_scale
        jobs = replace(jobs, cpu_units=jobs.cpu_units * scale, gpu_units=jobs.gpu_units * scale)
        if jobs.reference_s.max() > MAX_TIME_S:
            raise InputError(f"{trace.file}: trace.duration_scale: {scale:g} makes a job longer than ten years")
    if trace.load is not None:
        offered = max(offered_load(jobs, cluster, catalogue).values())
        if not 0 < offered < np.inf:
            raise InputError(f"{trace.file}: trace.load: the load cannot be set, for all jobs come at the same time")
        factor = offered / trace.load
        if jobs.submit_s[-1] * factor > MAX_TIME_S:
            raise InputError(
                f"{trace.file}: trace.load: at {trace.load:g} the jobs would come over more than ten years"
            )
        jobs = replace(jobs, submit_s=jobs.submit_s * factor, deadline_s=jobs.deadline_s + jobs.submit_s * (factor - 1))
    return jobs
