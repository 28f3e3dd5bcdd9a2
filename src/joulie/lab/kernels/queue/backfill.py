"""Go through the queue after a change: start jobs in order, then backfill behind the first that cannot start."""

from __future__ import annotations

from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.placement.trees import is_kept
from joulie.lab.kernels.queue.kinds import (
    earliest,
    first_hopeful,
    lacks_room,
    leave_out,
    refuse,
    set_cursors,
    tried_kinds,
)
from joulie.lab.kernels.queue.refused import is_refused, relieve, relieve_all
from joulie.lab.kernels.queue.reservation import reserve
from joulie.lab.kernels.queue.start import ASKS, STARTED, STAYS, try_start
from joulie.lab.kernels.queue.waiting import first_in_queue, forget_reservation
from joulie.lab.kernels.world import ABSENT, NONE, World

MAX_LEFT_OUT = 1_000  # places beyond the depth, before it is faster to follow the next job of each kind that is tried


@compiled
def schedule_queue(world: World) -> int:
    """Start every job that can start; ASKS where a ranking in Python is wanted first."""
    run, head, outcome = world.run, ABSENT, STAYS
    while world.run.waiting > 0:
        head = first_in_queue(world)
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
    return backfill(world, head)


@compiled
def backfill(world: World, head: int) -> int:
    """Backfill to the set depth: each job that was looked at counts, unless its kind had failed before."""
    jobs, run = world.jobs, world.run
    tried = tried_kinds(world)
    skips_hopeless = is_kept(world) and not run.sleeps and run.probe_job == ABSENT
    hopeful = first_hopeful(world, 0, tried, ABSENT) if skips_hopeless else 0
    if hopeful == tried:
        return STAYS
    if skips_hopeless:
        relieve(world)
    place, seen = run.queue_from, 0
    reach = place + run.depth + MAX_LEFT_OUT
    while seen < run.depth:
        if place <= reach:
            job, place, seen = next_in_order(world, tried, place, reach, seen, skips_hopeless)
        else:
            job, seen = next_of_kinds(world, tried, seen, skips_hopeless)
        if job == NONE:
            break
        if job < 0 or job == head:
            continue
        if probed(world, job):
            return ASKS
        outcome = try_to_pass(world, job, skips_hopeless)
        if outcome == ASKS:
            return ASKS
        if outcome == STARTED and skips_hopeless:
            hopeful = first_hopeful(world, hopeful, tried, jobs[job].number)
            if hopeful == tried:
                break
    return STAYS


@compiled
def next_in_order(
    world: World, tried: int, place: int, reach: int, seen: int, skips_hopeless: bool
) -> tuple[int, int, int]:
    """The next job in the queue that could start, the place behind it, and how many were looked at so far.

    NONE: no job. ABSENT: none within reach, and cursors point at the next job of each kind.
    """
    queue, kinds, run = world.queue, world.kinds, world.run
    last, depth = min(reach, run.queue_to), run.depth
    while place < last and seen < depth:
        seen += kinds[queue[place].kind].counts
        if could_start(world, queue[place].kind, queue[place].reference_s, skips_hopeless):
            world.jobs[queue[place].job].queue_place = place
            return queue[place].job, place + 1, seen
        place += 1
    if seen == depth or place >= run.queue_to:
        return int(NONE), place, seen
    set_cursors(world, tried, place)
    return ABSENT, reach + 1, seen


@compiled
def next_of_kinds(world: World, tried: int, seen: int, skips_hopeless: bool) -> tuple[int, int]:
    """The same where too many would be passed over: among the next jobs of each kind."""
    jobs, kinds, depth = world.jobs, world.kinds, world.run.depth
    while seen < depth:
        job = earliest(world, tried)
        if job == NONE:
            break
        kind = jobs[job].kind
        world.cursors[kinds[kind].place] = jobs[job].next_waiting
        seen += 1
        if could_start(world, kind, jobs[job].reference_s, skips_hopeless):
            return job, seen
    return int(NONE), seen


@inlined
def could_start(world: World, kind: int, reference_s: float, skips_hopeless: bool) -> bool:
    """It is shorter than what failed of its kind, and there is room for one; a kind without room is refused."""
    if reference_s >= world.kinds[kind].failed_s:
        return False
    if skips_hopeless and lacks_room(world, kind):
        refuse(world, kind)
        return False
    return True


@compiled
def try_to_pass(world: World, job: int, skips_hopeless: bool) -> int:
    kind = world.kinds[world.jobs[job].kind]
    outcome = STAYS if skips_hopeless and is_refused(world, job) else try_start(world, job, True)
    if outcome == STAYS:
        kind.failed_s = world.jobs[job].reference_s
        if kind.fails_at == world.run.freed:
            leave_out(world, world.jobs[job].kind)
    return outcome


@compiled
def schedule_arrival(world: World, job: int) -> int:
    """A job has arrived, nothing else has changed: only this job can start."""
    if probed(world, job):
        return ASKS
    head = first_in_queue(world)
    if job == head:
        return try_start(world, job, False)
    if not world.run.backfill or world.run.waiting > world.run.depth:
        return STAYS
    keep_for(world, head)
    return try_start(world, job, True)


@compiled
def keep_for(world: World, head: int) -> None:
    if world.run.reserved_for == head and world.run.now_s < world.run.reserved_until_s:
        return
    forget_reservation(world)
    relieve_all(world)
    reserve(world, head)
    world.run.reserved_for = head


@compiled
def probed(world: World, job: int) -> bool:
    """Whether the run is to pause before this job is placed, to be explained."""
    run = world.run
    is_it: bool = world.jobs[job].number == run.probe_job and run.now_s >= run.probe_from_s
    return is_it
