"""Which running job ends next: a heap of jobs by their end, in which a job's place is known, so that it can move.

Ends and places stand in arrays of their own: a heap that looks into the jobs' records waits for memory at every level.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled, inlined
from joulie.lab.memory_kernel import (
    ends_of,
    ends_s_of,
    fetch_job,
    fetch_node,
    fetch_pod,
    jobs_of,
    place_of,
    pods_of,
    run_of,
)
from joulie.lab.world import NOBODY, World

FORESEEN = 15  # the first four rows of the heap


@inlined
def came_first(world: World, one: int, other: int) -> bool:
    """Decides between two that end at once."""
    first: bool = jobs_of(world)[one].number < jobs_of(world)[other].number
    return first


@inlined
def is_sooner(world: World, one_s: float, one: int, other_s: float, other: int) -> bool:
    return one_s < other_s or (one_s == other_s and came_first(world, one, other))


@compiled
def put_end(world: World, job: int) -> None:
    """After its end was set or moved."""
    place = place_of(world)[job]
    if place == NOBODY:
        place = run_of(world).ends_count
        run_of(world).ends_count += 1
        ends_s_of(world)[place + 1] = np.inf  # nobody behind the last one
    set_place(world, place, job, jobs_of(world)[job].end_s)
    sink(world, rise(world, place))


@compiled
def drop_end(world: World, job: int) -> None:
    place, last = place_of(world)[job], run_of(world).ends_count - 1
    place_of(world)[job] = NOBODY
    run_of(world).ends_count = last
    last_s, ends_s_of(world)[last] = ends_s_of(world)[last], np.inf
    if place != last:
        set_place(world, place, ends_of(world)[last], last_s)
        sink(world, rise(world, place))


@compiled
def foresee(world: World) -> None:
    """Records of who ends soon are far away in memory: they are asked for in time, step by step up to a node."""
    ends, jobs = ends_of(world), jobs_of(world)
    if run_of(world).ends_count < FORESEEN:
        return
    for place in range(7, FORESEEN):
        fetch_job(world, ends[place])
    for place in range(3, 7):
        fetch_pod(world, jobs[ends[place]].first_pod)
    for place in range(1, 3):
        fetch_node(world, pods_of(world)[jobs[ends[place]].first_pod].node)


@compiled
def set_place(world: World, place: int, job: int, end_s: float) -> None:
    ends_of(world)[place], ends_s_of(world)[place] = job, end_s
    place_of(world)[job] = place


@compiled
def rise(world: World, place: int) -> int:
    ends, ends_s = ends_of(world), ends_s_of(world)
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
    ends, ends_s, count = ends_of(world), ends_s_of(world), run_of(world).ends_count
    job, end_s = ends[place], ends_s[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        # Nobody can guess which of the two it is, so that the processor must not try to: no branch but for equals.
        one_s, other_s = ends_s[below], ends_s[below + 1]
        if one_s == other_s and below + 1 < count and came_first(world, ends[below + 1], ends[below]):
            below += 1
        below += other_s < one_s
        if not is_sooner(world, ends_s[below], ends[below], end_s, job):
            break
        set_place(world, place, ends[below], ends_s[below])
        place = below
    set_place(world, place, job, end_s)
