"""A look at the queue after something happened: who can be started is, the first in order, then who may pass it."""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import cursors_of, firsts_of, jobs_of, kinds_of, run_of
from joulie.lab.queue_kernel import ASKS, STARTED, STAYS, forget_reservation, try_start
from joulie.lab.reserving_kernel import reserve
from joulie.lab.trees_kernel import catch_up, fits_somewhere, is_kept, slots_in_all
from joulie.lab.world import NOBODY, NONE, World

MOST_LEFT_OUT = 1_000  # of kinds that are not tried, before it is faster to see who is next of each other kind


@compiled
def look_at_all(world: World) -> int:
    """Start whoever can be started; ASKS where a ranking in Python is wanted first."""
    run, head, outcome = run_of(world), NOBODY, STAYS
    while run_of(world).waiting > 0:
        head = run_of(world).first_in_queue
        if probed(world, head):
            return ASKS
        outcome = try_start(world, head, False)
        if outcome != STARTED:
            break
    else:
        return STAYS
    if outcome == ASKS or not run.backfill:
        return outcome
    keep_for(world, head)
    return let_pass(world, head)


@compiled
def let_pass(world: World, head: int) -> int:
    """Backfill, as deep as a look goes: whoever was looked at counts, unless its kind had failed before."""
    jobs, kinds, cursors, run = jobs_of(world), kinds_of(world), cursors_of(world), run_of(world)
    tried = tried_kinds(world)
    foresees = is_kept(world) and not run.sleeps and run.probe_job == NOBODY
    if foresees and hopeful_kinds(world, tried) == 0:
        return STAYS
    following, left_out = run_of(world).first_in_queue, 0
    for _ in range(run.depth):
        while left_out < MOST_LEFT_OUT and following != NONE and kinds[jobs[following].kind].place == NOBODY:
            following = jobs[following].next_in_queue
            left_out += 1
        job = following if left_out < MOST_LEFT_OUT else earliest(world, tried)
        if job == NONE:
            break
        following = jobs[job].next_in_queue
        kind = jobs[job].kind
        cursors[kinds[kind].place] = jobs[job].next_waiting
        if job == head or jobs[job].reference_s >= kinds[kind].failed_s:
            continue
        if probed(world, job):
            return ASKS
        if foresees and kinds[kind].hopeless:
            refuse(world, job)
            continue
        outcome = try_start(world, job, True)
        if outcome == ASKS:
            return ASKS
        if outcome == STAYS:
            kinds[kind].failed_s = jobs[job].reference_s
            if kinds[kind].fails_at == run.freed:
                leave_out(world, kind)
        elif foresees and hopeful_kinds(world, tried) == 0:
            break
    return STAYS


@compiled
def refuse(world: World, job: int) -> None:
    """A job of a hopeless kind, as a try would: a gang is not tried again, nor anybody where nothing is reserved."""
    kind = jobs_of(world)[job].kind
    kinds_of(world)[kind].failed_s = -np.inf
    if run_of(world).reserved_count == 0 or jobs_of(world)[job].last_pod - jobs_of(world)[job].first_pod > 1:
        leave_out(world, kind)


@compiled
def leave_out(world: World, kind: int) -> None:
    """Of the rest of a look."""
    cursors_of(world)[kinds_of(world)[kind].place] = NONE
    kinds_of(world)[kind].place = NOBODY


@compiled
def earliest(world: World, tried: int) -> int:
    """Of those who are next of their kinds, who came first."""
    jobs, cursors, first = jobs_of(world), cursors_of(world), NONE
    for place in range(tried):
        job = cursors[place]
        if job != NONE and (first == NONE or jobs[job].number < jobs[first].number):
            first = job
    return int(first)


@compiled
def tried_kinds(world: World) -> int:
    """How many kinds a look tries: those that wait and did not fail since something was last freed."""
    kinds, firsts, cursors, count = kinds_of(world), firsts_of(world), cursors_of(world), 0
    for kind in range(len(kinds)):
        kinds[kind].place = NOBODY
        if firsts[kind] != NONE and kinds[kind].fails_at != run_of(world).freed:
            kinds[kind].failed_s, kinds[kind].hopeless, kinds[kind].place = np.inf, False, count
            kinds[count].tried = kind
            cursors[count] = firsts[kind]
            count += 1
    return count


@compiled
def hopeful_kinds(world: World, tried: int) -> int:
    """How many of these kinds have room for their first pods. Within a look room only gets less."""
    kinds, count = kinds_of(world), 0
    for place in range(tried):
        kind = kinds[place].tried
        if cursors_of(world)[place] == NONE or kinds[kind].hopeless:
            continue
        shape = kinds[kind].shape
        catch_up(world, shape)
        if kinds[kind].alike > 1:
            kinds[kind].hopeless = slots_in_all(world, shape) < kinds[kind].alike
        else:
            kinds[kind].hopeless = not fits_somewhere(world, shape)
        count += not kinds[kind].hopeless
    return count


@compiled
def look_at(world: World, job: int) -> int:
    """Somebody has come, nothing else has changed: only this job can start."""
    if probed(world, job):
        return ASKS
    head = run_of(world).first_in_queue
    if job == head:
        return try_start(world, job, False)
    if not run_of(world).backfill or run_of(world).waiting > run_of(world).depth:
        return STAYS
    keep_for(world, head)
    return try_start(world, job, True)


@compiled
def keep_for(world: World, head: int) -> None:
    if run_of(world).reserved_for == head and run_of(world).now_s < run_of(world).reserved_until_s:
        return
    forget_reservation(world)
    reserve(world, head)
    run_of(world).reserved_for = head


@compiled
def probed(world: World, job: int) -> bool:
    """Somebody wants to see how things stand before this job is placed."""
    run = run_of(world)
    is_it: bool = jobs_of(world)[job].number == run.probe_job and run.now_s >= run.probe_from_s
    return is_it
