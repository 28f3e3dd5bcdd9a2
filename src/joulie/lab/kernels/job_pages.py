"""Jobs come out of the columns of a trace into records, page by page, and a page that all have left is used again.

A million jobs are only some ten thousand at a time: touching all that memory would take time. Within a page
jobs stand in the order of their arrival, in which a queue is read.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, entry
from joulie.lab.kernels.memory import fetch
from joulie.lab.kernels.world import ABSENT, DONE, LOAD, Numbers, Trace, World
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.shapes import Shapes

AHEAD, OFTEN = 64, 4  # rows are asked for so long before they are read; not at every job, a line has eight of them


def trace_of(jobs: JobTable, shapes: Shapes, reference_s: Numbers) -> Trace:
    columns = {name: getattr(jobs, name) for name in JobTable.__slots__ if name in Trace.__dataclass_fields__}
    columns |= {"reference_s": reference_s, "shape": shapes.of_pod, "kind": shapes.kind_of_job}
    kinds = {"f": np.float64, "i": np.int32, "b": np.bool_}
    return Trace(**{name: np.ascontiguousarray(each, kinds[each.dtype.kind]) for name, each in columns.items()})


@entry
def fill_kinds(world: World) -> None:
    """What the jobs of each kind have in common."""
    kinds, trace = world.kinds, world.trace
    for job in range(len(world.start_s)):
        kind, first, last = trace.kind[job], trace.first_pod[job], trace.first_pod[job + 1]
        if kinds[kind].alike > 0:
            continue
        shape = trace.shape[first]
        kinds[kind].shape, kinds[kind].pods, kinds[kind].alike = shape, last - first, last - first
        for pod in range(first, last):
            kinds[kind].performance += trace.performance[pod]
            if trace.shape[pod] != shape:
                kinds[kind].alike = 1


@compiled
def prefetch_rows(world: World, job: int, pod: int) -> None:
    """There are more columns than a processor follows by itself."""
    trace = world.trace
    for numbers in (trace.cores, trace.cpu_units, trace.gpu_units, trace.cpu_utilisation, trace.gpu_utilisation):
        fetch(numbers, pod)
    for numbers in (trace.memory_intensity, trace.io_intensity, trace.feed_intensity):
        fetch(numbers, pod)
    for numbers in (trace.cpu_sensitivity, trace.gpu_sensitivity):
        fetch(numbers, pod)
    for codes in (trace.gpus, trace.shape):
        fetch(codes, pod)
    for numbers in (trace.submit_s, trace.reference_s):
        fetch(numbers, job)
    for codes in (trace.first_pod, trace.kind):
        fetch(codes, job)


@compiled
def take_job(world: World, number: int) -> int:
    """The next record for a job of the trace, and the next for its pods."""
    jobs, run, trace = world.jobs, world.run, world.trace
    first = trace.first_pod[number]
    count = trace.first_pod[number + 1] - first
    if number % OFTEN == 0:
        prefetch_rows(world, number + AHEAD, first + AHEAD)
    if run.next_job == run.page_jobs or run.next_pod + count > run.page_pods:
        turn_page(world)
    job, taken = run.page * run.page_jobs + run.next_job, run.page * run.page_pods + run.next_pod
    run.next_job += 1
    run.next_pod += count
    world.living[run.page] += 1
    jobs[job].number, jobs[job].kind = number, trace.kind[number]
    jobs[job].first_pod, jobs[job].last_pod = taken, taken + count
    jobs[job].reference_s, jobs[job].left, jobs[job].rate = trace.reference_s[number], 1.0, 0.0
    world.place[job] = ABSENT
    for pod in range(count):
        fill_pod(world, taken + pod, first + pod)
        world.pods[taken + pod].job = job
    return int(job)


@compiled
def turn_page(world: World) -> None:
    """To one that all jobs have left, or to a new one."""
    run, living = world.run, world.living
    if living[run.page] == 0:
        give_back(world, run.page)
    run.page = run.unused_page
    if run.page == ABSENT:
        run.page = run.pages
        run.pages += 1
    else:
        run.unused_page = living[run.page]
        living[run.page] = 0
    run.next_job = run.next_pod = 0


@compiled
def give_back(world: World, page: int) -> None:
    """A page that is free says which one is the next."""
    world.living[page] = world.run.unused_page
    world.run.unused_page = page


@compiled
def leave(world: World, job: int) -> None:
    """A job has ended; the last of a page leaves it to others."""
    world.jobs[job].state = DONE
    page = job // world.run.page_jobs
    world.living[page] -= 1
    if world.living[page] == 0 and page != world.run.page:
        give_back(world, page)


@compiled
def fill_pod(world: World, pod: int, number: int) -> None:
    pods, trace = world.pods, world.trace
    shape = trace.shape[number]
    cores, cpu_units = trace.cores[number], trace.cpu_units[number]
    gpus, gpu_units = trace.gpus[number], trace.gpu_units[number]
    pods[pod].number, pods[pod].shape, pods[pod].runs, pods[pod].is_paced = number, shape, False, False
    pods[pod].node = pods[pod].after = pods[pod].before = pods[pod].bound_in = ABSENT
    pods[pod].load = int(np.rint(world.shapes[shape].mcores * trace.cpu_utilisation[number] * LOAD))
    pods[pod].cpu_rate = cores / cpu_units if cpu_units > 0 else np.inf
    pods[pod].gpu_rate = gpus / gpu_units if gpu_units > 0 else np.inf
    pods[pod].rate = 0.0
    pods[pod].gpu_utilisation = trace.gpu_utilisation[number]
    pods[pod].memory_intensity = trace.memory_intensity[number]
    pods[pod].io_intensity = trace.io_intensity[number]
    pods[pod].feed_intensity = trace.feed_intensity[number]
    pods[pod].cpu_sensitivity = trace.cpu_sensitivity[number]
    pods[pod].gpu_sensitivity = trace.gpu_sensitivity[number]
