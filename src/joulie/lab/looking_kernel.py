"""A look at the queue after something happened: who can be started is, the first in order, then who may pass it."""

from __future__ import annotations

from joulie.lab.compiling import compiled, inlined
from joulie.lab.kinds_kernel import earliest, first_hopeful, lacks_room, leave_out, refuse, set_cursors, tried_kinds
from joulie.lab.memory_kernel import cursors_of, jobs_of, kinds_of, queue_of, run_of
from joulie.lab.queue_kernel import ASKS, STARTED, STAYS, try_start
from joulie.lab.relief_kernel import is_refused, relieve, relieve_all
from joulie.lab.reserving_kernel import reserve
from joulie.lab.trees_kernel import is_kept
from joulie.lab.waiting_kernel import first_in_queue, forget_reservation
from joulie.lab.world import NOBODY, NONE, World

MOST_LEFT_OUT = 1_000  # places beyond a look's depth, before it is faster to see who is next of each kind that is tried


@compiled
def look_at_all(world: World) -> int:
    """Start whoever can be started; ASKS where a ranking in Python is wanted first."""
    run, head, outcome = run_of(world), NOBODY, STAYS
    while run_of(world).waiting > 0:
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
    return let_pass(world, head)


@compiled
def let_pass(world: World, head: int) -> int:
    """Backfill, as deep as a look goes: whoever was looked at counts, unless its kind had failed before."""
    jobs, run = jobs_of(world), run_of(world)
    tried = tried_kinds(world)
    foresees = is_kept(world) and not run.sleeps and run.probe_job == NOBODY
    hopeful = first_hopeful(world, 0, tried, NOBODY) if foresees else 0
    if hopeful == tried:
        return STAYS
    if foresees:
        relieve(world)
    place, seen = run.queue_from, 0
    reach = place + run.depth + MOST_LEFT_OUT
    while seen < run.depth:
        if place <= reach:
            job, place, seen = next_in_order(world, tried, place, reach, seen, foresees)
        else:
            job, seen = next_of_kinds(world, tried, seen, foresees)
        if job == NONE:
            break
        if job < 0 or job == head:
            continue
        if probed(world, job):
            return ASKS
        outcome = try_to_pass(world, job, foresees)
        if outcome == ASKS:
            return ASKS
        if outcome == STARTED and foresees:
            hopeful = first_hopeful(world, hopeful, tried, jobs[job].number)
            if hopeful == tried:
                break
    return STAYS


@compiled
def next_in_order(world: World, tried: int, place: int, reach: int, seen: int, foresees: bool) -> tuple[int, int, int]:
    """Who is next in the queue and could start, the place behind, and how many were looked at then.

    NONE: nobody. NOBODY: nobody within reach, and kinds are pointed at who is next of them.
    """
    queue, kinds, run = queue_of(world), kinds_of(world), run_of(world)
    last, depth = min(reach, run.queue_to), run.depth
    while place < last and seen < depth:
        seen += kinds[queue[place].kind].counts
        if could_start(world, queue[place].kind, queue[place].reference_s, foresees):
            jobs_of(world)[queue[place].job].queue_place = place
            return queue[place].job, place + 1, seen
        place += 1
    if seen == depth or place >= run.queue_to:
        return int(NONE), place, seen
    set_cursors(world, tried, place)
    return NOBODY, reach + 1, seen


@compiled
def next_of_kinds(world: World, tried: int, seen: int, foresees: bool) -> tuple[int, int]:
    """The same where too many would be passed over: of those who are next of their kinds."""
    jobs, kinds, depth = jobs_of(world), kinds_of(world), run_of(world).depth
    while seen < depth:
        job = earliest(world, tried)
        if job == NONE:
            break
        kind = jobs[job].kind
        cursors_of(world)[kinds[kind].place] = jobs[job].next_waiting
        seen += 1
        if could_start(world, kind, jobs[job].reference_s, foresees):
            return job, seen
    return int(NONE), seen


@inlined
def could_start(world: World, kind: int, reference_s: float, foresees: bool) -> bool:
    """It is shorter than what failed of its kind, and there is room for one; a kind without room is refused."""
    if reference_s >= kinds_of(world)[kind].failed_s:
        return False
    if foresees and lacks_room(world, kind):
        refuse(world, kind)
        return False
    return True


@compiled
def try_to_pass(world: World, job: int, foresees: bool) -> int:
    kind = kinds_of(world)[jobs_of(world)[job].kind]
    outcome = STAYS if foresees and is_refused(world, job) else try_start(world, job, True)
    if outcome == STAYS:
        kind.failed_s = jobs_of(world)[job].reference_s
        if kind.fails_at == run_of(world).freed:
            leave_out(world, jobs_of(world)[job].kind)
    return outcome


@compiled
def look_at(world: World, job: int) -> int:
    """Somebody has come, nothing else has changed: only this job can start."""
    if probed(world, job):
        return ASKS
    head = first_in_queue(world)
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
    relieve_all(world)
    reserve(world, head)
    run_of(world).reserved_for = head


@compiled
def probed(world: World, job: int) -> bool:
    """Somebody wants to see how things stand before this job is placed."""
    run = run_of(world)
    is_it: bool = jobs_of(world)[job].number == run.probe_job and run.now_s >= run.probe_from_s
    return is_it
