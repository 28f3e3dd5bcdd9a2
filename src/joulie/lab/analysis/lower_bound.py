"""What no schedule and no caps can go below, for IT energy at the wall and for the makespan.

Every pod at the best efficiency that any node which may hold it offers at any load, cap, temperature and feeding, plus
what nodes draw anyway (idle power, or sleep power where empty nodes are switched off) until the earliest possible end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.entries import words
from joulie.errors import InputError
from joulie.lab.model.jobs import ANY_MODEL, Flags, JobTable, Numbers
from joulie.lab.model.setup import RunSetup
from joulie.plant.fleet import REST_PER_CPU_W, REST_PER_GPU_W
from joulie.plant.least_energy import board_j_per_s, core_j_per_s, core_w
from joulie.plant.machines import PlantMachine
from joulie.plant.work import cpu_speed, feeding

ROUNDING = 1e-8  # runs count watts and load in whole small units
# Steps of utilisation, sensitivity and feeding to which pods are rounded; coarser if too many different ones are left.
_ON_CPUS = ((400, 400, 1),)
_ON_GPUS = ((400, 50, 40), (50, 20, 10))
MAX_PROFILES = 20_000


@dataclass(frozen=True, slots=True)
class Bound:
    """Facility energy is at least the IT energy."""

    it_energy_j: float
    makespan_s: float  # from the first arrival to the last end
    dynamic_j: float  # of the work
    idle_j: float  # of nodes as such, from the beginning of the run


class _Kind(NamedTuple):
    """Nodes that are alike."""

    machine: PlantMachine
    core_speed: float
    gpu_speed: float
    nodes: int
    takes_cpu_work: bool
    standby_w: float  # of each, whatever it does
    cores_held_w: float  # what its pods answer for besides, by the cores and the boards that they hold
    boards_held_w: float


def lower_bound(
    setup: RunSetup, machines: Sequence[PlantMachine], core_speed: Numbers, gpu_speed: Numbers, jobs: JobTable
) -> Bound:
    """InputError for a job that fits on no node."""
    kinds = [
        _kind(setup, *alike, count)
        for alike, count in Counter(zip(machines, core_speed.tolist(), gpu_speed.tolist(), strict=True)).items()
    ]
    if not len(jobs):
        return Bound(0.0, 0.0, 0.0, 0.0)
    work = _Work(jobs)
    least_j, fastest_s = np.full(jobs.pods, np.inf), np.full(jobs.pods, np.inf)
    for kind in kinds:
        may = _may_run_on(jobs, kind)
        seconds = np.maximum(work.cpu_s / kind.core_speed, work.gpu_s / (kind.gpu_speed or 1.0))
        fastest_s = np.where(may, np.minimum(fastest_s, seconds), fastest_s)
        least_j = np.where(may, np.minimum(least_j, work.joules_on(kind, seconds)), least_j)
    stranded = np.flatnonzero(np.isinf(fastest_s))
    if stranded.size:
        raise InputError(f"{jobs.id_of(int(jobs.job_of_pod[stranded[0]]))}: fits on no node of this cluster")
    end_s = max(_last_end_s(jobs, fastest_s), *(_capacity_end_s(jobs, *used) for used in _capacities(jobs, kinds)))
    dynamic_j = float(np.sum(least_j)) * (1.0 - ROUNDING)
    idle_j = sum(kind.nodes * kind.standby_w for kind in kinds) * end_s * (1.0 - ROUNDING)
    return Bound(dynamic_j + idle_j, end_s - float(jobs.submit_s[0]), dynamic_j, idle_j)


def _kind(setup: RunSetup, machine: PlantMachine, core_speed: float, gpu_speed: float, count: int) -> _Kind:
    """A node that may sleep draws sleep power or more; the rest of its idle power it draws only to hold pods."""
    cpus_w = machine.cpu.idle_w * (1.0 + REST_PER_CPU_W)
    boards_w = machine.gpu.idle_w * machine.gpus * (1.0 + REST_PER_GPU_W) if machine.gpu else 0.0
    idle_w = cpus_w + boards_w
    standby_w = min(idle_w, setup.plant.sleep_w) if setup.plant.sleep else idle_w
    takes_cpu_work = not machine.gpus or setup.cluster.cpu_work_on_gpu_nodes
    by_cores = 1.0 if not machine.gpus else cpus_w / idle_w if takes_cpu_work else 0.0
    held_w = idle_w - standby_w
    by_boards_w = held_w * (1.0 - by_cores)
    return _Kind(machine, core_speed, gpu_speed, count, takes_cpu_work, standby_w, held_w * by_cores, by_boards_w)


def _may_run_on(jobs: JobTable, kind: _Kind) -> Flags:
    """Jobs that name a model differently may be counted as able to run there: that can only lower the bound."""
    fits = (jobs.cores <= kind.machine.cpu.cores) & (jobs.gpus <= kind.machine.gpus)
    wanted = [ANY_MODEL, *(place for place, model in enumerate(jobs.gpu_models) if _is_called(kind, model))]
    may: Flags = fits & np.where(jobs.gpus > 0, np.isin(jobs.gpu_model, wanted), kind.takes_cpu_work)
    return may


def _is_called(kind: _Kind, model: str) -> bool:
    there = set(words(kind.machine.gpu.name or "")) if kind.machine.gpu else set()
    wanted = set(words(model))
    return wanted <= there or wanted >= there


class _Profiles(NamedTuple):
    """What pods do to a device, rounded so that a bound stays one and few different profiles are left."""

    utilisation: tuple[Numbers, Numbers]  # from, to
    sensitivity: Numbers
    feed: Numbers
    of_pod: NDArray[np.intp]


class _Work:
    """Pods with what decides about their energy."""

    def __init__(self, jobs: JobTable) -> None:
        self._jobs = jobs
        self.cpu_s = np.divide(jobs.cpu_units, jobs.cores, out=np.zeros(jobs.pods), where=jobs.cores > 0)
        self.gpu_s = np.divide(jobs.gpu_units, jobs.gpus, out=np.zeros(jobs.pods), where=jobs.gpus > 0)
        # Of its time, what doubles at half the frequency; what waits for memory or storage does not.
        doubled = 1.0 / cpu_speed(np.asarray(0.5), jobs.memory_intensity, jobs.io_intensity) - 1.0
        self._on_cpu = _profiles(jobs.cpu_utilisation, jobs.cpu_sensitivity * doubled, np.zeros(jobs.pods), _ON_CPUS)
        self._gpu_pods = np.flatnonzero(jobs.gpus > 0)
        used, felt, feed = jobs.gpu_utilisation, jobs.gpu_sensitivity, jobs.feed_intensity
        self._on_gpu = _profiles(used[self._gpu_pods], felt[self._gpu_pods], feed[self._gpu_pods], _ON_GPUS)

    def joules_on(self, kind: _Kind, seconds: Numbers) -> Numbers:
        """At least, of each pod that runs on such a node, and there for so long or longer."""
        jobs, machine, on_cpu, on_gpu = self._jobs, kind.machine, self._on_cpu, self._on_gpu
        used = on_cpu.utilisation[0]
        working_j = core_j_per_s(machine.cpu, kind.cores_held_w, used, on_cpu.sensitivity)[on_cpu.of_pod]
        holding_w = core_w(machine.cpu, kind.cores_held_w, used)[on_cpu.of_pod]
        joules = jobs.cores * np.maximum(working_j * self.cpu_s / kind.core_speed, holding_w * seconds)
        if machine.gpu and machine.gpus:
            held_w = kind.boards_held_w / machine.gpus
            least_fed = feeding(np.asarray(machine.cpu.frequency_floor), on_gpu.feed)
            each_j = board_j_per_s(machine.gpu, held_w, on_gpu.utilisation, on_gpu.sensitivity, least_fed)
            joules[self._gpu_pods] += each_j[on_gpu.of_pod] * (jobs.gpu_units[self._gpu_pods] / kind.gpu_speed)
        return np.asarray(joules)


def _profiles(
    utilisation: Numbers, sensitivity: Numbers, feed: Numbers, fineness: Sequence[tuple[int, int, int]]
) -> _Profiles:
    """As fine as leaves not too many."""
    (use, feel, fed), *coarser = fineness
    shape = use + 1, feel + 1, fed + 1
    rounded = _down(utilisation, use), _down(sensitivity, feel), fed - _down(1.0 - feed, fed)
    codes = np.ravel_multi_index(rounded, shape)
    occurs = np.zeros(np.prod(shape), dtype=bool)
    occurs[codes] = True
    if coarser and np.count_nonzero(occurs) > MAX_PROFILES:
        return _profiles(utilisation, sensitivity, feed, coarser)
    used, felt, needed = np.unravel_index(np.flatnonzero(occurs), shape)
    load = used / use, np.minimum((used + 1) / use, 1.0)
    return _Profiles(load, felt / feel, needed / fed, (np.cumsum(occurs) - 1)[codes])


def _down(values: Numbers, steps: int) -> NDArray[np.int64]:
    """Whole steps; a value that is one but for rounding is that one."""
    return np.asarray(np.clip(np.floor(values * steps + 1e-9), 0, steps).astype(np.int64))


def _last_end_s(jobs: JobTable, fastest_s: Numbers) -> float:
    """A gang is at best as fast as its slowest pod."""
    return float(np.max(jobs.submit_s + np.maximum.reduceat(fastest_s, jobs.first_pod[:-1])))


def _capacities(jobs: JobTable, kinds: Sequence[_Kind]) -> list[tuple[Numbers, float]]:
    """Units of each pod and how many of them all nodes together do a second, resource by resource."""
    cores = [kind.nodes * kind.machine.cpu.cores * kind.core_speed for kind in kinds]
    boards = [kind.nodes * kind.machine.gpus * kind.gpu_speed for kind in kinds]
    for_cpu_work = sum(own for own, kind in zip(cores, kinds, strict=True) if kind.takes_cpu_work)
    used = [
        (jobs.cpu_units, sum(cores)),
        (np.where(jobs.gpus > 0, 0.0, jobs.cpu_units), for_cpu_work),
        (jobs.gpu_units, sum(boards)),
    ]
    for place, model in enumerate(jobs.gpu_models):
        alike = sum(own for own, kind in zip(boards, kinds, strict=True) if _is_called(kind, model))
        used.append((np.where(jobs.gpu_model == place, jobs.gpu_units, 0.0), alike))
    return used


def _capacity_end_s(jobs: JobTable, units: Numbers, units_per_s: float) -> float:
    """From every arrival on, at least the work that comes then and later has to be done."""
    to_come = np.cumsum(units[::-1])[::-1][jobs.first_pod[:-1]]
    return float(np.max(jobs.submit_s + to_come / units_per_s)) if units_per_s > 0 else 0.0
