"""The run itself: the next thing that happens, until a given time."""

from __future__ import annotations

import numpy as np

from joulie.lab.binding_kernel import begin, end
from joulie.lab.compiling import compiled, entry
from joulie.lab.ends_kernel import foresee
from joulie.lab.filling_kernel import SUBMIT, number_at, take_job
from joulie.lab.looking_kernel import look_at, look_at_all
from joulie.lab.memory_kernel import ends_of, ends_s_of, jobs_of, nodes_of, run_of, start_s_of, waking_of
from joulie.lab.plant_kernel import plant_step
from joulie.lab.power_kernel import refresh
from joulie.lab.queue_kernel import ASKS
from joulie.lab.trees_kernel import touch
from joulie.lab.waiting_kernel import enqueue
from joulie.lab.world import NOBODY, STARTING, World

REACHED, ASKED, FINISHED = range(3)  # why a run pauses


def advance(world: World, until_s: float) -> int:
    """Everything that happens before a time. What is to happen at that time comes after what the caller does then."""
    why: int = move_on(world.address, until_s)
    return why


@entry
def move_on(world: World, until_s: float) -> int:
    run, total = run_of(world), len(start_s_of(world))
    while True:
        if look(world) == ASKS:
            return ASKED
        if run_of(world).done == total:
            return FINISHED
        arrival_s = number_at(world, SUBMIT, run.next_arrival) if run.next_arrival < total else np.inf
        end_s = ends_s_of(world)[0] if run_of(world).ends_count > 0 else np.inf
        wake_s = np.inf
        if run_of(world).waking_count > 0:
            wake_s = nodes_of(world)[waking_of(world)[run_of(world).waking_from]].ready_s
        next_s = min(arrival_s, end_s, wake_s, run.next_step_s)
        if next_s >= until_s:
            run.now_s = until_s
            return REACHED
        run.now_s = next_s
        if next_s == wake_s:
            awake(world)
        elif next_s == end_s:
            end_or_begin(world, ends_of(world)[0])
        elif next_s == arrival_s:
            arrive(world)
        else:
            plant_step(world, run.step_s)


@compiled
def look(world: World) -> int:
    """At the queue, as far as what happened asks for it."""
    run = run_of(world)
    outcome = 0
    if run.everything:
        outcome = look_at_all(world)
    elif run.newcomer != NOBODY:
        outcome = look_at(world, run.newcomer)
    if outcome != ASKS:
        run.everything = False
        run.newcomer = NOBODY
    return outcome


@compiled
def arrive(world: World) -> None:
    run = run_of(world)
    job = take_job(world, run.next_arrival)
    run.next_arrival += 1
    enqueue(world, job)
    run.newcomer = job


@compiled
def end_or_begin(world: World, job: int) -> None:
    """The event of a job: its nodes are awake, or it is done."""
    if jobs_of(world)[job].state == STARTING:
        begin(world, job)
        return
    foresee(world)
    end(world, job)
    run_of(world).everything = run_of(world).waiting > 0


@compiled
def awake(world: World) -> None:
    node = waking_of(world)[run_of(world).waking_from]
    run_of(world).waking_from = (run_of(world).waking_from + 1) % len(waking_of(world))
    run_of(world).waking_count -= 1
    refresh(world, node)
    touch(world, node)
    run_of(world).freed += 1
    run_of(world).everything = run_of(world).waiting > 0
