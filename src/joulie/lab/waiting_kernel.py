"""Who waits: the queue in the order of arrival, and of each kind of jobs a list in the same order."""

from __future__ import annotations

from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import firsts_of, jobs_of, kinds_of, nodes_of, queue_of, reserved_nodes_of, run_of
from joulie.lab.world import NOBODY, NONE, WAITING, World

MOST_MOVED = 2_000  # places in the queue


@compiled
def enqueue(world: World, job: int) -> None:
    jobs, run = jobs_of(world), run_of(world)
    kind = jobs[job].kind
    jobs[job].state = WAITING
    jobs[job].next_waiting, jobs[job].previous_waiting = NONE, kinds_of(world)[kind].last
    if kinds_of(world)[kind].last == NOBODY:
        firsts_of(world)[kind] = job
    else:
        jobs[kinds_of(world)[kind].last].next_waiting = job
    kinds_of(world)[kind].last = job
    here = queue_of(world)[run.queue_to]
    here.reference_s, here.job, here.kind = jobs[job].reference_s, job, kind
    jobs[job].queue_place = run.queue_to
    jobs[job].refused_at = NOBODY
    run.queue_to += 1
    run.waiting += 1
    run.waiting_performance += kinds_of(world)[kind].performance


@compiled
def dequeue(world: World, job: int) -> None:
    jobs, run = jobs_of(world), run_of(world)
    kind, before, after = jobs[job].kind, jobs[job].previous_waiting, jobs[job].next_waiting
    if before == NOBODY:
        firsts_of(world)[kind] = after
    else:
        jobs[before].next_waiting = after
    if after == NONE:
        kinds_of(world)[kind].last = before
    else:
        jobs[after].previous_waiting = before
    empty_place(world, job)
    run.waiting -= 1
    run.waiting_performance -= kinds_of(world)[kind].performance
    if run.reserved_for == job:
        forget_reservation(world)


@compiled
def empty_place(world: World, job: int) -> None:
    """Who stands before a place moves up: nearly always few. Far behind, it stays empty."""
    queue, run = queue_of(world), run_of(world)
    place = jobs_of(world)[job].queue_place
    while queue[place].job != job:
        place += 1
    if place + 1 == run.queue_to:
        run.queue_to = place
    elif place - run.queue_from < MOST_MOVED:
        for moved in range(place, run.queue_from, -1):
            queue[moved] = queue[moved - 1]
        run.queue_from += 1
    else:
        queue[place].job, queue[place].kind = NOBODY, len(kinds_of(world)) - 1
    while run.queue_from < run.queue_to and queue[run.queue_from].job == NOBODY:
        run.queue_from += 1
    if run.queue_from == run.queue_to:
        run.queue_from = run.queue_to = 0


@compiled
def first_in_queue(world: World) -> int:
    job: int = queue_of(world)[run_of(world).queue_from].job
    return job


@compiled
def forget_reservation(world: World) -> None:
    for place in range(run_of(world).reserved_count):
        nodes_of(world)[reserved_nodes_of(world)[place]].is_reserved = False
    run_of(world).reserved_count = 0
    run_of(world).reserved_for = NOBODY
