"""Jobs come out of the columns of a trace into records, page by page, and a page that all have left is used again.

A million jobs are only some ten thousand at a time: whoever touched all that memory would wait for it. Within a page
jobs stand in the order of their arrival, in which a queue is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.lab.compiling import compiled, entry
from joulie.lab.jobs import JobTable
from joulie.lab.memory_kernel import (
    CODE,
    FLOAT,
    WHOLE,
    carray,
    fetch,
    jobs_of,
    kinds_of,
    living_of,
    place_of,
    pods_of,
    pointer,
    run_of,
    shapes_of,
    start_s_of,
    trace_of,
)
from joulie.lab.shapes import Shapes
from joulie.lab.world import DONE, LOAD, NOBODY, Codes, Integers, Numbers, World

# The columns, in this order.
_NUMBERS = (
    *("cores", "cpu_units", "gpu_units", "cpu_utilisation", "gpu_utilisation"),
    *("memory_intensity", "io_intensity", "feed_intensity", "cpu_sensitivity", "gpu_sensitivity", "submit_s"),
)
SUBMIT, REFERENCE, FIRST_POD, GPUS, PERFORMANCE, SHAPE_OF_POD, KIND = range(10, 17)
AHEAD, OFTEN = 64, 4  # rows are asked for so long before they are read; not at every job, a line has eight of them


def trace_columns(jobs: JobTable, shapes: Shapes, reference_s: Numbers) -> tuple[list[NDArray[np.generic]], Integers]:
    """What is read of a trace, and where that is in memory."""
    columns: list[NDArray[np.generic]] = [np.ascontiguousarray(getattr(jobs, name), FLOAT) for name in _NUMBERS]
    columns.append(np.ascontiguousarray(reference_s, FLOAT))
    codes = (jobs.first_pod, jobs.gpus, jobs.performance, shapes.of_pod, shapes.kind_of_job)
    columns += [np.ascontiguousarray(column, CODE) for column in codes]
    return columns, np.array([column.ctypes.data for column in columns], WHOLE)


@compiled
def number_at(world: World, column: int, place: int) -> float:
    numbers: Numbers = carray(pointer(trace_of(world)[column]), place + 1, FLOAT)
    return numbers[place]


@compiled
def code_at(world: World, column: int, place: int) -> int:
    codes: Codes = carray(pointer(trace_of(world)[column]), place + 1, CODE)
    return codes[place]


@entry
def fill_kinds(world: World) -> None:
    """What the jobs of each kind have in common."""
    kinds = kinds_of(world)
    for job in range(len(start_s_of(world))):
        kind, first, last = (
            code_at(world, KIND, job),
            code_at(world, FIRST_POD, job),
            code_at(world, FIRST_POD, job + 1),
        )
        if kinds[kind].alike > 0:
            continue
        shape = code_at(world, SHAPE_OF_POD, first)
        kinds[kind].shape, kinds[kind].pods, kinds[kind].alike = shape, last - first, last - first
        for pod in range(first, last):
            kinds[kind].performance += code_at(world, PERFORMANCE, pod)
            if code_at(world, SHAPE_OF_POD, pod) != shape:
                kinds[kind].alike = 1


@compiled
def foresee_rows(world: World, job: int, pod: int) -> None:
    """There are more columns than a processor follows by itself."""
    at = trace_of(world)
    for column in range(SUBMIT):
        fetch(at[column] + pod * 8)
    for column in (GPUS, SHAPE_OF_POD):
        fetch(at[column] + pod * 4)
    for column in (SUBMIT, REFERENCE):
        fetch(at[column] + job * 8)
    for column in (FIRST_POD, KIND):
        fetch(at[column] + job * 4)


@compiled
def take_job(world: World, number: int) -> int:
    """The next record for a job of the trace, and the next for its pods."""
    jobs, run = jobs_of(world), run_of(world)
    first = code_at(world, FIRST_POD, number)
    count = code_at(world, FIRST_POD, number + 1) - first
    if number % OFTEN == 0:
        foresee_rows(world, number + AHEAD, first + AHEAD)
    if run.next_job == run.page_jobs or run.next_pod + count > run.page_pods:
        turn_page(world)
    job, taken = run.page * run.page_jobs + run.next_job, run.page * run.page_pods + run.next_pod
    run.next_job += 1
    run.next_pod += count
    living_of(world)[run.page] += 1
    jobs[job].number, jobs[job].kind = number, code_at(world, KIND, number)
    jobs[job].first_pod, jobs[job].last_pod = taken, taken + count
    jobs[job].reference_s, jobs[job].left, jobs[job].rate = number_at(world, REFERENCE, number), 1.0, 0.0
    place_of(world)[job] = NOBODY
    for pod in range(count):
        fill_pod(world, taken + pod, first + pod)
        pods_of(world)[taken + pod].job = job
    return int(job)


@compiled
def turn_page(world: World) -> None:
    """To one that all jobs have left, or to a new one."""
    run, living = run_of(world), living_of(world)
    if living[run.page] == 0:
        give_back(world, run.page)
    run.page = run.unused_page
    if run.page == NOBODY:
        run.page = run.pages
        run.pages += 1
    else:
        run.unused_page = living[run.page]
        living[run.page] = 0
    run.next_job = run.next_pod = 0


@compiled
def give_back(world: World, page: int) -> None:
    """A page that is free says which one is the next."""
    living_of(world)[page] = run_of(world).unused_page
    run_of(world).unused_page = page


@compiled
def leave(world: World, job: int) -> None:
    """A job has ended; the last of a page leaves it to others."""
    jobs_of(world)[job].state = DONE
    page = job // run_of(world).page_jobs
    living_of(world)[page] -= 1
    if living_of(world)[page] == 0 and page != run_of(world).page:
        give_back(world, page)


@compiled
def fill_pod(world: World, pod: int, number: int) -> None:
    pods = pods_of(world)
    shape = code_at(world, SHAPE_OF_POD, number)
    cores, cpu_units = number_at(world, 0, number), number_at(world, 1, number)
    gpus, gpu_units = code_at(world, GPUS, number), number_at(world, 2, number)
    pods[pod].number, pods[pod].shape, pods[pod].runs, pods[pod].is_paced = number, shape, False, False
    pods[pod].node = pods[pod].after = pods[pod].before = pods[pod].bound_in = NOBODY
    pods[pod].load = int(np.rint(shapes_of(world)[shape].mcores * number_at(world, 3, number) * LOAD))
    pods[pod].cpu_rate = cores / cpu_units if cpu_units > 0 else np.inf
    pods[pod].gpu_rate = gpus / gpu_units if gpu_units > 0 else np.inf
    pods[pod].rate = 0.0
    pods[pod].gpu_utilisation = number_at(world, 4, number)
    pods[pod].memory_intensity = number_at(world, 5, number)
    pods[pod].io_intensity = number_at(world, 6, number)
    pods[pod].feed_intensity = number_at(world, 7, number)
    pods[pod].cpu_sensitivity = number_at(world, 8, number)
    pods[pod].gpu_sensitivity = number_at(world, 9, number)
