"""Jobs to the records of Joulie's own format, and these to JSON Lines, streaming."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec
from msgspec import UNSET

from joulie.catalogue.lookup import Catalogue
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.traces.families import HPO, NAMES
from joulie.lab.traces.formats.records import (
    Annotations,
    JobRecord,
    PodTemplate,
    Record,
    Requests,
    Sensitivity,
    TraceNodeSelector,
    Work,
    WorkloadClass,
    WorkloadProfile,
    WorkloadRecord,
)
from joulie.model.names import PERFORMANCE, STANDARD

NAMESPACE = "lab"
JOBS_AT_ONCE = 4096

Progress = Callable[[float], None]


def write_lines(jobs: JobTable, file: IO[bytes] | gzip.GzipFile, progress: Progress | None = None) -> None:
    """One line a workload and one a pod."""
    encoder = msgspec.json.Encoder()
    for begin in range(0, len(jobs), JOBS_AT_ONCE):
        end = min(begin + JOBS_AT_ONCE, len(jobs))
        file.write(encoder.encode_lines(list(records(jobs, begin, end))))
        if progress is not None:
            progress(end / len(jobs))


def records(jobs: JobTable, begin: int, end: int) -> Iterator[Record]:
    """The lines of some jobs; jobs named `WORKLOAD/N` belong to one workload."""
    first, last = int(jobs.first_pod[begin]), int(jobs.first_pod[end])
    templates, works, sensitivities, profiles, classes = _columns(jobs, first, last)
    of_job = jobs.first_pod[begin : end + 1] - first
    submits, deadlines = jobs.submit_s[begin:end].tolist(), jobs.deadline_s[begin:end].tolist()
    earlier = jobs.id_of(begin - 1).rpartition("/")[0] if begin else ""
    for place, (submit_s, deadline_s) in enumerate(zip(submits, deadlines, strict=True)):
        name = jobs.id_of(begin + place)
        family = jobs.families[jobs.family[begin + place]]
        pods = range(int(of_job[place]), int(of_job[place + 1]))
        gang = len(pods) > 1
        several = "" if gang else name.rpartition("/")[0]
        if not several or several != earlier:
            count = UNSET if several else len(pods)
            yield WorkloadRecord(several or name, family, gang, submit_s, NAMESPACE, count)
        earlier = several
        for pod in pods:
            yield JobRecord(
                job_id=f"{name}-{pod - pods.start}" if gang else name,
                submit_time_offset_sec=submit_s,
                pod_template=templates[pod],
                work=works[pod],
                workload_id=several or name,
                workload_type=family,
                pod_role=_role(family, gang, works[pod]),
                gang=gang,
                namespace=NAMESPACE,
                sensitivity=sensitivities[pod],
                workload_class=classes[pod],
                workload_profile=profiles[pod],
                deadline_offset_sec=UNSET if math.isnan(deadline_s) else deadline_s,
            )


def quantity(value: float) -> str:
    """Exactly this number as Kubernetes writes it."""
    return repr(value).removesuffix(".0")


def _columns(jobs: JobTable, first: int, last: int) -> tuple[list[Any], ...]:
    def cut(name: str) -> list[Any]:
        values: list[Any] = getattr(jobs, name)[first:last].tolist()
        return values

    amd = [(known := Catalogue().gpu(name)) is not None and known.vendor == "amd" for name in jobs.gpu_models]
    parts = zip(cut("cores"), cut("gpus"), cut("gpu_model"), cut("performance"), strict=True)
    templates = [
        PodTemplate(
            Requests(
                quantity(cores),
                **({"amd" if model != ANY_MODEL and amd[model] else "nvidia": str(gpus)} if gpus else {}),
            ),
            Annotations(PERFORMANCE if performance else STANDARD),
            TraceNodeSelector(jobs.gpu_models[model]) if model != ANY_MODEL else UNSET,
        )
        for cores, gpus, model, performance in parts
    ]
    works = list(map(Work, cut("cpu_units"), cut("gpu_units")))
    sensitivities = list(map(Sensitivity, cut("cpu_sensitivity"), cut("gpu_sensitivity")))
    of_profile = ("cpu_utilisation", "gpu_utilisation", "memory_intensity", "io_intensity", "feed_intensity")
    profiles = list(map(WorkloadProfile, *(cut(name) for name in of_profile)))
    return templates, works, sensitivities, profiles, [_class(*both) for both in zip(works, profiles, strict=True)]


def _class(work: Work, profile: WorkloadProfile) -> WorkloadClass:
    bound = "compute-bound"
    if profile.memory_intensity > 0.5 or profile.io_intensity > 0.4:
        bound = "memory-bound" if profile.memory_intensity >= profile.io_intensity else "io-bound"
    if not work.gpu_units:
        return WorkloadClass(bound, "none")
    return WorkloadClass("feeding", "compute-bound" if profile.gpu_utilization > 0.7 else "light")


def _role(family: str, gang: bool, work: Work) -> str:
    if family == NAMES[HPO]:
        return "trial"
    return "ps" if gang and not work.gpu_units and work.cpu_units else "worker"
