"""Which running job ends next: a heap of jobs by their end, in which a job's place is known, so that it can move."""

from __future__ import annotations

from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import ends_of, jobs_of, run_of
from joulie.lab.world import NOBODY, World


@compiled
def ends_before(world: World, one: int, other: int) -> bool:
    """Of two that end at once, the one that came first."""
    one_s, other_s = jobs_of(world)[one].end_s, jobs_of(world)[other].end_s
    return one_s < other_s or (one_s == other_s and one < other)


@compiled
def put_end(world: World, job: int) -> None:
    """After its end was set or moved."""
    if jobs_of(world)[job].place == NOBODY:
        ends_of(world)[run_of(world).ends_count] = job
        jobs_of(world)[job].place = run_of(world).ends_count
        run_of(world).ends_count += 1
    sink(world, rise(world, jobs_of(world)[job].place))


@compiled
def drop_end(world: World, job: int) -> None:
    place, last = jobs_of(world)[job].place, run_of(world).ends_count - 1
    jobs_of(world)[job].place = NOBODY
    run_of(world).ends_count = last
    if place != last:
        moved = ends_of(world)[last]
        ends_of(world)[place] = moved
        jobs_of(world)[moved].place = place
        sink(world, rise(world, place))


@compiled
def rise(world: World, place: int) -> int:
    ends, jobs = ends_of(world), jobs_of(world)
    job = ends[place]
    while place > 0:
        above = (place - 1) // 2
        if not ends_before(world, job, ends[above]):
            break
        ends[place] = ends[above]
        jobs[ends[place]].place = place
        place = above
    ends[place] = job
    jobs[job].place = place
    return place


@compiled
def sink(world: World, place: int) -> None:
    ends, jobs, count = ends_of(world), jobs_of(world), run_of(world).ends_count
    job = ends[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and ends_before(world, ends[below + 1], ends[below]):
            below += 1
        if not ends_before(world, ends[below], job):
            break
        ends[place] = ends[below]
        jobs[ends[place]].place = place
        place = below
    ends[place] = job
    jobs[job].place = place
