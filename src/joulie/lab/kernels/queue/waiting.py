"""Waiting jobs: the queue in the order of arrival, and of each kind of jobs a list in the same order."""

from __future__ import annotations

from joulie.lab.kernels.compiling import compiled
from joulie.lab.kernels.world import ABSENT, NONE, WAITING, World

MAX_MOVED = 2_000  # places in the queue


@compiled
def enqueue(world: World, job: int) -> None:
    jobs, run = world.jobs, world.run
    kind = jobs[job].kind
    jobs[job].state = WAITING
    jobs[job].next_waiting, jobs[job].previous_waiting = NONE, world.kinds[kind].last
    if world.kinds[kind].last == ABSENT:
        world.firsts[kind] = job
    else:
        jobs[world.kinds[kind].last].next_waiting = job
    world.kinds[kind].last = job
    here = world.queue[run.queue_to]
    here.reference_s, here.job, here.kind = jobs[job].reference_s, job, kind
    jobs[job].queue_place = run.queue_to
    jobs[job].refused_at = ABSENT
    run.queue_to += 1
    run.waiting += 1
    run.waiting_performance += world.kinds[kind].performance


@compiled
def dequeue(world: World, job: int) -> None:
    jobs, run = world.jobs, world.run
    kind, before, after = jobs[job].kind, jobs[job].previous_waiting, jobs[job].next_waiting
    if before == ABSENT:
        world.firsts[kind] = after
    else:
        jobs[before].next_waiting = after
    if after == NONE:
        world.kinds[kind].last = before
    else:
        jobs[after].previous_waiting = before
    empty_place(world, job)
    run.waiting -= 1
    run.waiting_performance -= world.kinds[kind].performance
    if run.reserved_for == job:
        forget_reservation(world)


@compiled
def empty_place(world: World, job: int) -> None:
    """Jobs before a place move up: nearly always few. Far behind, it stays empty."""
    queue, run = world.queue, world.run
    place = world.jobs[job].queue_place
    while queue[place].job != job:
        place += 1
    if place + 1 == run.queue_to:
        run.queue_to = place
    elif place - run.queue_from < MAX_MOVED:
        for moved in range(place, run.queue_from, -1):
            queue[moved] = queue[moved - 1]
        run.queue_from += 1
    else:
        queue[place].job, queue[place].kind = ABSENT, len(world.kinds) - 1
    while run.queue_from < run.queue_to and queue[run.queue_from].job == ABSENT:
        run.queue_from += 1
    if run.queue_from == run.queue_to:
        run.queue_from = run.queue_to = 0


@compiled
def first_in_queue(world: World) -> int:
    job: int = world.queue[world.run.queue_from].job
    return job


@compiled
def forget_reservation(world: World) -> None:
    for place in range(world.run.reserved_count):
        world.nodes[world.reserved_nodes[place]].is_reserved = False
    world.run.reserved_count = 0
    world.run.reserved_for = ABSENT
