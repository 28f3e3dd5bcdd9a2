"""Which running job ends next: a heap of jobs by their end, in which a job's place is known, so that it can move.

Ends and places stand in arrays of their own: a heap that looks into the jobs' records waits for memory at every level.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.memory import fetch
from joulie.lab.kernels.world import ABSENT, World

PREFETCHED = 15  # the first four rows of the heap


@inlined
def came_first(world: World, one: int, other: int) -> bool:
    """Decides between two that end at once."""
    first: bool = world.jobs[one].number < world.jobs[other].number
    return first


@inlined
def is_sooner(world: World, one_s: float, one: int, other_s: float, other: int) -> bool:
    return one_s < other_s or (one_s == other_s and came_first(world, one, other))


@compiled
def put_end(world: World, job: int) -> None:
    """After its end was set or moved."""
    place = world.place[job]
    if place == ABSENT:
        place = world.run.ends_count
        world.run.ends_count += 1
        world.ends_s[place + 1] = np.inf  # none behind the last one
    set_place(world, place, job, world.jobs[job].end_s)
    sink(world, rise(world, place))


@compiled
def drop_end(world: World, job: int) -> None:
    place, last = world.place[job], world.run.ends_count - 1
    world.place[job] = ABSENT
    world.run.ends_count = last
    last_s, world.ends_s[last] = world.ends_s[last], np.inf
    if place != last:
        set_place(world, place, world.ends[last], last_s)
        sink(world, rise(world, place))


@compiled
def prefetch_ends(world: World) -> None:
    """Prefetch the records of jobs that end soon, which are far away in memory, step by step up to a node."""
    ends, jobs = world.ends, world.jobs
    if world.run.ends_count < PREFETCHED:
        return
    for place in range(7, PREFETCHED):
        fetch(jobs, ends[place])
    for place in range(3, 7):
        fetch(world.pods, jobs[ends[place]].first_pod)
    for place in range(1, 3):
        fetch(world.nodes, world.pods[jobs[ends[place]].first_pod].node)


@compiled
def set_place(world: World, place: int, job: int, end_s: float) -> None:
    world.ends[place], world.ends_s[place] = job, end_s
    world.place[job] = place


@compiled
def rise(world: World, place: int) -> int:
    ends, ends_s = world.ends, world.ends_s
    job, end_s = ends[place], ends_s[place]
    while place > 0:
        above = (place - 1) // 2
        if not is_sooner(world, end_s, job, ends_s[above], ends[above]):
            break
        set_place(world, place, ends[above], ends_s[above])
        place = above
    set_place(world, place, job, end_s)
    return place


@compiled
def sink(world: World, place: int) -> None:
    ends, ends_s, count = world.ends, world.ends_s, world.run.ends_count
    job, end_s = ends[place], ends_s[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        # Which of the two it is cannot be predicted, so the processor must not try to: no branch but for equals.
        one_s, other_s = ends_s[below], ends_s[below + 1]
        if one_s == other_s and below + 1 < count and came_first(world, ends[below + 1], ends[below]):
            below += 1
        below += other_s < one_s
        if not is_sooner(world, ends_s[below], ends[below], end_s, job):
            break
        set_place(world, place, ends[below], ends_s[below])
        place = below
    set_place(world, place, job, end_s)
