"""Which running job ends next: a heap of jobs by their end, in which a job's place is known, so that it can move.

Ends and places stand in arrays of their own: a heap that looks into the jobs' records waits for memory at every level.
"""

from __future__ import annotations

from joulie.lab.compiling import compiled, inlined
from joulie.lab.memory_kernel import ends_of, ends_s_of, jobs_of, place_of, run_of
from joulie.lab.world import NOBODY, World


@inlined
def is_sooner(world: World, one_s: float, one: int, other_s: float, other: int) -> bool:
    """Of two that end at once, the one that came first."""
    return one_s < other_s or (one_s == other_s and jobs_of(world)[one].number < jobs_of(world)[other].number)


@compiled
def put_end(world: World, job: int) -> None:
    """After its end was set or moved."""
    place = place_of(world)[job]
    if place == NOBODY:
        place = run_of(world).ends_count
        run_of(world).ends_count += 1
    set_place(world, place, job, jobs_of(world)[job].end_s)
    sink(world, rise(world, place))


@compiled
def drop_end(world: World, job: int) -> None:
    place, last = place_of(world)[job], run_of(world).ends_count - 1
    place_of(world)[job] = NOBODY
    run_of(world).ends_count = last
    if place != last:
        set_place(world, place, ends_of(world)[last], ends_s_of(world)[last])
        sink(world, rise(world, place))


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
        other = below + 1
        if other < count and is_sooner(world, ends_s[other], ends[other], ends_s[below], ends[below]):
            below = other
        if not is_sooner(world, ends_s[below], ends[below], end_s, job):
            break
        set_place(world, place, ends[below], ends_s[below])
        place = below
    set_place(world, place, job, end_s)
