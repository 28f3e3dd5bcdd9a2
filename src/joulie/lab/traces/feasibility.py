"""Jobs that a cluster could never start, however empty it is: they would make the queue behind them wait for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.lookup import Catalogue
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.setup import ClusterSetup
from joulie.lab.model.shapes import MILLI, asked_keys, mcores_of
from joulie.lab.traces.gang_fit import AlikePods, Reason, Together, size_words
from joulie.lab.traces.room import Room
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


def misfits(jobs: JobTable, cluster: ClusterSetup, catalogue: Catalogue | None = None) -> list[Misfit]:
    """In the order of the jobs, one for each."""
    room = Room(cluster, catalogue)
    shapes = _shapes(jobs, room)
    job = jobs.job_of_pod
    found: dict[int, Misfit] = {}
    for pod in np.flatnonzero(shapes.slots[shapes.of_pod] == 0).tolist():
        nowhere = _nowhere(room, *shapes.asked[shapes.of_pod[pod]])
        found.setdefault(int(job[pod]), Misfit(int(job[pod]), pod, *nowhere))
    parts = _parts(jobs, shapes.of_pod)
    for misfit in (*_too_many(jobs, shapes, parts), *_not_together(jobs, shapes, parts, room, found)):
        found.setdefault(misfit.job, misfit)
    return [found[place] for place in sorted(found)]


@dataclass(frozen=True, slots=True)
class _Shapes:
    """What pods ask for: cores, GPUs, model. One element a shape."""

    asked: list[tuple[float, int, str]]
    on_each: list[list[int]]  # so many fit on an empty node of each kind
    slots: NDArray[np.int64]  # on all of them
    of_pod: NDArray[np.intp]


class _Parts(NamedTuple):
    """Gangs by shape: so many pods of a gang have it, and which is the first."""

    gang: NDArray[np.int64]
    shape: NDArray[np.int64]
    pods: NDArray[np.int64]
    first: NDArray[np.int64]


def _shapes(jobs: JobTable, room: Room) -> _Shapes:
    _, first, of_pod = np.unique(asked_keys(jobs), return_index=True, return_inverse=True)
    models = [jobs.gpu_models[code] if code != ANY_MODEL else "" for code in jobs.gpu_model[first].tolist()]
    asked = list(zip((mcores_of(jobs.cores[first]) / MILLI).tolist(), jobs.gpus[first].tolist(), models, strict=True))
    on_each = [room.on_each(*one) for one in asked]
    machines = np.asarray([n.machines for n in room.nodes], np.int64)
    return _Shapes(asked, on_each, np.asarray(on_each, np.int64).reshape(len(asked), len(machines)) @ machines, of_pod)


def _parts(jobs: JobTable, of_pod: NDArray[np.intp]) -> _Parts:
    job, shapes = jobs.job_of_pod, int(of_pod.max(initial=0)) + 1
    pods = np.flatnonzero(np.diff(jobs.first_pod)[job] > 1)
    pairs, first, count = np.unique(job[pods] * shapes + of_pod[pods], return_index=True, return_counts=True)
    return _Parts(pairs // shapes, pairs % shapes, count, pods[first])


def _too_many(jobs: JobTable, shapes: _Shapes, parts: _Parts) -> Iterator[Misfit]:
    """Gangs with more pods of one shape than there is room for."""
    for place in np.flatnonzero(parts.pods > shapes.slots[parts.shape]).tolist():
        gang, (cores, gpus, _) = int(parts.gang[place]), shapes.asked[parts.shape[place]]
        words = f"has {parts.pods[place]:,} such pods ({size_words(cores, gpus)})"
        fit = f"more than the {shapes.slots[parts.shape[place]]:,} that the empty cluster holds"
        field = GPU_FIELD if gpus else CPU_FIELD
        yield Misfit(gang, int(parts.first[place]), field, f"gang {jobs.id_of(gang)!r} {words}, {fit}")


def _not_together(
    jobs: JobTable, shapes: _Shapes, parts: _Parts, room: Room, found: dict[int, Misfit]
) -> Iterator[Misfit]:
    """Gangs of unlike pods that have no place at once; gangs that ask for the same are looked at once."""
    together, known = Together(room), dict[bytes, Reason | None]()
    edges = np.append(np.flatnonzero(np.diff(parts.gang, prepend=-1)), len(parts.gang))
    unlike = np.flatnonzero(np.diff(edges) > 1)
    for begin, end in zip(edges[unlike].tolist(), edges[unlike + 1].tolist(), strict=True):
        gang, here = int(parts.gang[begin]), slice(begin, end)
        if gang in found:
            continue
        alike = parts.shape[here].tobytes() + parts.pods[here].tobytes()
        if alike not in known:
            known[alike] = together.reason(
                [
                    AlikePods(*_asked(shapes, shape), count)
                    for shape, count in zip(parts.shape[here].tolist(), parts.pods[here].tolist(), strict=True)
                ]
            )
        if why := known[alike]:
            first = int(parts.first[here][why.parts].min())
            field = GPU_FIELD if why.by_gpus else CPU_FIELD
            yield Misfit(gang, first, field, f"gang {jobs.id_of(gang)!r} {why.words}")


def _asked(shapes: _Shapes, shape: int) -> tuple[int, int, frozenset[int]]:
    cores, gpus, _ = shapes.asked[shape]
    return round(cores * MILLI), gpus, frozenset(kind for kind, fit in enumerate(shapes.on_each[shape]) if fit)


def _nowhere(room: Room, cores: float, gpus: int, model: str) -> tuple[str, str]:
    """Which of the pod's wishes no node meets."""
    if gpus and not room.slots(0, gpus):
        return GPU_FIELD, f"no node has {gpus} GPUs, the most is {room.most_gpus}"
    if gpus and model and not room.slots(0, gpus, model):
        return MODEL_FIELD, f"no node has {gpus} GPUs of model {model!r}"
    if not gpus and not room.cores_for_cpu_work:
        return CPU_FIELD, "no node takes pods without GPUs (cluster.cpu_work_on_gpu_nodes)"
    beside = f" beside {gpus} GPUs" if gpus else ""
    return CPU_FIELD, f"no node that it may use has {cores:g} cores{beside}"
