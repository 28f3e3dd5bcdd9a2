"""The records of pods and jobs from the columns of a trace: one pass over both, where numpy would take one a field."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.lab.compiling import compiled, entry
from joulie.lab.jobs import JobTable
from joulie.lab.memory_kernel import CODE, FLOAT, WHOLE, carray, jobs_of, kinds_of, pods_of, pointer, shapes_of
from joulie.lab.shapes import Shapes
from joulie.lab.world import LOAD, NOBODY, NONE, Codes, Integers, Numbers, World

_NUMBERS = (
    *("cores", "cpu_units", "gpu_units", "cpu_utilisation", "gpu_utilisation"),
    *("memory_intensity", "io_intensity", "feed_intensity", "cpu_sensitivity", "gpu_sensitivity"),
)


def fill_records(world: World, jobs: JobTable, shapes: Shapes, reference_s: Numbers) -> None:
    columns: list[NDArray[np.generic]] = [np.ascontiguousarray(getattr(jobs, name), FLOAT) for name in _NUMBERS]
    columns += [np.ascontiguousarray(column, FLOAT) for column in (jobs.submit_s, reference_s)]
    codes = (jobs.first_pod, jobs.gpus, jobs.performance, shapes.of_pod, shapes.kind_of_job)
    columns += [np.ascontiguousarray(column, CODE) for column in codes]
    addresses = np.array([column.ctypes.data for column in columns], WHOLE)
    fill(world.address, addresses)


@compiled
def numbers_at(addresses: Integers, number: int, count: int) -> Numbers:
    column: Numbers = carray(pointer(addresses[number]), count, FLOAT)
    return column


@compiled
def codes_at(addresses: Integers, number: int, count: int) -> Codes:
    column: Codes = carray(pointer(addresses[number]), count, CODE)
    return column


@entry
def fill(world: World, addresses: Integers) -> None:
    """What is not named here begins at zero."""
    jobs, kinds, shapes, count = jobs_of(world), kinds_of(world), shapes_of(world), len(pods_of(world))
    submit_s, reference_s = numbers_at(addresses, 10, len(jobs)), numbers_at(addresses, 11, len(jobs))
    first_pod, kind_of_job = codes_at(addresses, 12, len(jobs) + 1), codes_at(addresses, 16, len(jobs))
    performance, of_pod = codes_at(addresses, 14, count), codes_at(addresses, 15, count)
    for job in range(len(jobs)):
        first, last, kind = first_pod[job], first_pod[job + 1], kind_of_job[job]
        jobs[job].first_pod, jobs[job].last_pod, jobs[job].kind = first, last, kind
        jobs[job].submit_s, jobs[job].reference_s = submit_s[job], reference_s[job]
        jobs[job].start_s = jobs[job].end_s = np.nan
        jobs[job].left = 1.0
        jobs[job].next_in_queue = jobs[job].next_waiting = NONE
        jobs[job].previous_in_queue = jobs[job].previous_waiting = NOBODY
        kinds[kind].shape, kinds[kind].alike, kinds[kind].performance = of_pod[first], last - first, 0
        for pod in range(first, last):
            fill_pod(world, addresses, pod, job)
            kinds[kind].performance += performance[pod]
            if of_pod[pod] != of_pod[first]:
                kinds[kind].alike = 1
            if last - first > 1:
                shapes[of_pod[pod]].in_gangs = True


@compiled
def fill_pod(world: World, addresses: Integers, pod: int, job: int) -> None:
    pods, count = pods_of(world), len(pods_of(world))
    shape = codes_at(addresses, 15, count)[pod]
    cores, gpus = numbers_at(addresses, 0, count)[pod], codes_at(addresses, 13, count)[pod]
    cpu_units, gpu_units = numbers_at(addresses, 1, count)[pod], numbers_at(addresses, 2, count)[pod]
    pods[pod].job, pods[pod].shape = job, shape
    pods[pod].node = pods[pod].after = pods[pod].before = pods[pod].bound_in = NOBODY
    utilisation = numbers_at(addresses, 3, count)[pod]
    pods[pod].load = int(np.rint(shapes_of(world)[shape].mcores * utilisation * LOAD))
    pods[pod].cpu_rate = cores / cpu_units if cpu_units > 0 else np.inf
    pods[pod].gpu_rate = gpus / gpu_units if gpu_units > 0 else np.inf
    pods[pod].gpu_utilisation = numbers_at(addresses, 4, count)[pod]
    pods[pod].memory_intensity = numbers_at(addresses, 5, count)[pod]
    pods[pod].io_intensity = numbers_at(addresses, 6, count)[pod]
    pods[pod].feed_intensity = numbers_at(addresses, 7, count)[pod]
    pods[pod].cpu_sensitivity = numbers_at(addresses, 8, count)[pod]
    pods[pod].gpu_sensitivity = numbers_at(addresses, 9, count)[pod]
