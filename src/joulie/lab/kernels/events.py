"""The run itself: the next thing that happens, until a given time."""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, entry
from joulie.lab.kernels.completions import prefetch_ends
from joulie.lab.kernels.job_pages import take_job
from joulie.lab.kernels.placement.binding import begin, end
from joulie.lab.kernels.placement.trees import touch
from joulie.lab.kernels.plant import plant_step
from joulie.lab.kernels.power import refresh
from joulie.lab.kernels.queue.backfill import schedule_arrival, schedule_queue
from joulie.lab.kernels.queue.start import ASKS
from joulie.lab.kernels.queue.waiting import enqueue
from joulie.lab.kernels.world import ABSENT, STARTING, World

REACHED, ASKED, FINISHED = range(3)  # why a run pauses


@entry
def advance(world: World, until_s: float) -> int:
    """Everything that happens before a time. What is to happen at that time comes after what the caller does then."""
    run, total = world.run, len(world.start_s)
    while True:
        if look(world) == ASKS:
            return ASKED
        if world.run.done == total:
            return FINISHED
        arrival_s = world.trace.submit_s[run.next_arrival] if run.next_arrival < total else np.inf
        end_s = world.ends_s[0] if world.run.ends_count > 0 else np.inf
        wake_s = np.inf
        if world.run.waking_count > 0:
            wake_s = world.nodes[world.waking[world.run.waking_from]].ready_s
        next_s = min(arrival_s, end_s, wake_s, run.next_step_s)
        if next_s >= until_s:
            run.now_s = until_s
            return REACHED
        run.now_s = next_s
        if next_s == wake_s:
            awake(world)
        elif next_s == end_s:
            end_or_begin(world, world.ends[0])
        elif next_s == arrival_s:
            arrive(world)
        else:
            plant_step(world, run.step_s)


@compiled
def look(world: World) -> int:
    """At the queue, as far as what happened asks for it."""
    run = world.run
    outcome = 0
    if run.everything:
        outcome = schedule_queue(world)
    elif run.newcomer != ABSENT:
        outcome = schedule_arrival(world, run.newcomer)
    if outcome != ASKS:
        run.everything = False
        run.newcomer = ABSENT
    return outcome


@compiled
def arrive(world: World) -> None:
    run = world.run
    job = take_job(world, run.next_arrival)
    run.next_arrival += 1
    enqueue(world, job)
    run.newcomer = job


@compiled
def end_or_begin(world: World, job: int) -> None:
    """The event of a job: its nodes are awake, or it is done."""
    if world.jobs[job].state == STARTING:
        begin(world, job)
        return
    prefetch_ends(world)
    end(world, job)
    world.run.everything = world.run.waiting > 0


@compiled
def awake(world: World) -> None:
    node = world.waking[world.run.waking_from]
    world.run.waking_from = (world.run.waking_from + 1) % len(world.waking)
    world.run.waking_count -= 1
    refresh(world, node)
    touch(world, node)
    world.run.freed += 1
    world.run.everything = world.run.waiting > 0
