"""Jobs that a cluster could never start, however empty it is: they would make the queue behind them wait for ever."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.jobs import ANY_MODEL, JobTable
from joulie.lab.setup import ClusterSetup
from joulie.lab.trace_room import Room
from joulie.model.names import GPU_MODEL_LABEL, NVIDIA_GPU

CPU_FIELD = "podTemplate.requests.cpu"
GPU_FIELD = f"podTemplate.requests.{NVIDIA_GPU}"
MODEL_FIELD = f"podTemplate.nodeSelector.{GPU_MODEL_LABEL}"


class Misfit(NamedTuple):
    """A job, the first of its pods that has no place, and why."""

    job: int
    pod: int
    what: str
    reason: str


def check_fits(jobs: JobTable, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> None:
    """InputError names the first job that fits nowhere."""
    for misfit in misfits(jobs, cluster, catalogue):
        raise InputError(f"job {jobs.id_of(misfit.job)}: {misfit.what}: {misfit.reason}")


def misfits(jobs: JobTable, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> list[Misfit]:
    """In the order of the jobs, one for each."""
    room = Room(cluster, catalogue)
    shapes, shape = np.unique(np.stack([jobs.cores, jobs.gpus, jobs.gpu_model], axis=1), axis=0, return_inverse=True)
    shape = shape.ravel()
    asked = [(float(cores), int(gpus), int(model)) for cores, gpus, model in shapes]
    slots = np.asarray([room.slots(cores, gpus, _model(jobs, model)) for cores, gpus, model in asked])
    found: dict[int, Misfit] = {}
    job = jobs.job_of_pod
    for pod in np.flatnonzero(slots[shape] == 0).tolist():
        found.setdefault(int(job[pod]), Misfit(int(job[pod]), pod, *_nowhere(jobs, room, *asked[shape[pod]])))
    in_gang = np.flatnonzero(np.diff(jobs.first_pod)[job] > 1)
    pairs, first, count = np.unique(job[in_gang] * len(shapes) + shape[in_gang], return_index=True, return_counts=True)
    for place in np.flatnonzero(count > slots[pairs % len(shapes)]).tolist():
        gang, kind = divmod(int(pairs[place]), len(shapes))
        reason = (
            f"gang {jobs.id_of(gang)!r} has {count[place]:,} such pods ({_words(*asked[kind][:2])}), "
            f"more than the {slots[kind]:,} that the empty cluster holds"
        )
        what = GPU_FIELD if asked[kind][1] else CPU_FIELD
        found.setdefault(gang, Misfit(gang, int(in_gang[first[place]]), what, reason))
    for misfit in _too_large_together(jobs, room):
        found.setdefault(misfit.job, misfit)
    return [found[place] for place in sorted(found)]


def _too_large_together(jobs: JobTable, room: Room) -> list[Misfit]:
    """Gangs of different pods that each would fit, but not all at once."""
    cores = sum(n.machines * n.cores for n in room.nodes)
    starts = jobs.first_pod[:-1]
    large = np.flatnonzero(np.add.reduceat(jobs.cores, starts) > cores) if len(jobs) else starts
    return [
        Misfit(job, int(starts[job]), CPU_FIELD, f"gang {jobs.id_of(job)!r} asks for more than all {cores:,g} cores")
        for job in large.tolist()
    ]


def _nowhere(jobs: JobTable, room: Room, cores: float, gpus: int, model: int) -> tuple[str, str]:
    """Which of the pod's wishes no node meets."""
    name = _model(jobs, model)
    if gpus and not room.slots(0, gpus):
        return GPU_FIELD, f"no node has {gpus} GPUs, the most is {room.most_gpus}"
    if gpus and name and not room.slots(0, gpus, name):
        return MODEL_FIELD, f"no node has {gpus} GPUs of model {name!r}"
    if not gpus and not room.cores_for_cpu_work:
        return CPU_FIELD, "no node takes pods without GPUs (cluster.cpu_work_on_gpu_nodes)"
    beside = f" beside {gpus} GPUs" if gpus else ""
    return CPU_FIELD, f"no node that it may use has {cores:g} cores{beside}"


def _model(jobs: JobTable, model: int) -> str:
    return "" if model == ANY_MODEL else jobs.gpu_models[model]


def _words(cores: float, gpus: int) -> str:
    return f"{cores:g} cores, {gpus} GPU{'s' * (gpus != 1)}" if gpus else f"{cores:g} cores"
