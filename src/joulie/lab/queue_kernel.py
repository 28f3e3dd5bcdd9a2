"""First come first served, gangs whole, and EASY backfill: who waits may be passed, but is never delayed by that.

Only the first in the queue has a reservation: the nodes on which it will fit soonest, by what users estimate. Others
may start now if they leave these nodes alone, fit beside what is kept there, or are gone by then.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.binding_kernel import bind, start, unbind, uncapped_s, wake
from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import (
    jobs_of,
    kinds_of,
    leaf_of,
    masked_of,
    nodes_of,
    pods_of,
    reserved_nodes_of,
    run_of,
    shapes_of,
)
from joulie.lab.ranking_kernel import best_node, best_not_ready, catch_up, touch
from joulie.lab.reserving_kernel import reserve
from joulie.lab.world import GIVEN, NOBODY, WAITING, World

HIDDEN = 1 << 40  # thousandths of a core that no node has
STARTED, STAYS, ASKS = 1, 0, -1


@compiled
def enqueue(world: World, job: int) -> None:
    jobs = jobs_of(world)
    kind = jobs[job].kind
    jobs[job].state = WAITING
    jobs[job].next_waiting, jobs[job].previous_waiting = NOBODY, kinds_of(world)[kind].last
    if kinds_of(world)[kind].last == NOBODY:
        kinds_of(world)[kind].first = job
    else:
        jobs[kinds_of(world)[kind].last].next_waiting = job
    kinds_of(world)[kind].last = job
    run_of(world).waiting += 1
    run_of(world).waiting_performance += kinds_of(world)[kind].performance


@compiled
def dequeue(world: World, job: int) -> None:
    jobs = jobs_of(world)
    kind, before, after = jobs[job].kind, jobs[job].previous_waiting, jobs[job].next_waiting
    if before == NOBODY:
        kinds_of(world)[kind].first = after
    else:
        jobs[before].next_waiting = after
    if after == NOBODY:
        kinds_of(world)[kind].last = before
    else:
        jobs[after].previous_waiting = before
    run_of(world).waiting -= 1
    run_of(world).waiting_performance -= kinds_of(world)[kind].performance
    if run_of(world).reserved_for == job:
        forget_reservation(world)


@compiled
def forget_reservation(world: World) -> None:
    for place in range(run_of(world).reserved_count):
        nodes_of(world)[reserved_nodes_of(world)[place]].is_reserved = False
    run_of(world).reserved_count = 0
    run_of(world).reserved_for = NOBODY


@compiled
def first_waiting(world: World) -> int:
    """Jobs are numbered in the order of their arrival."""
    first = NOBODY
    for kind in range(len(kinds_of(world))):
        job = kinds_of(world)[kind].first
        if job != NOBODY and (first == NOBODY or job < first):
            first = job
    return first


@compiled
def may_use(world: World, job: int, shape: int, node: int) -> bool:
    """A job that passes the first in the queue leaves alone what is kept for that."""
    shapes = shapes_of(world)
    if not nodes_of(world)[node].is_reserved:
        return True
    if (
        nodes_of(world)[node].spare_mcores >= shapes[shape].mcores
        and nodes_of(world)[node].spare_gpus >= shapes[shape].gpus
    ):
        return True
    return gone_in_time(world, job, node)


@compiled
def gone_in_time(world: World, job: int, node: int) -> bool:
    """By the user's word it has ended when the first in the queue wants the node."""
    run, nodes = run_of(world), nodes_of(world)
    ready_s = run.now_s + run.wake_s if nodes[node].asleep else max(run.now_s, nodes[node].ready_s)
    in_time: bool = ready_s + uncapped_s(world, job, node) * run.estimate_factor <= run.reserved_until_s
    return in_time


@compiled
def use_spare(world: World, job: int, pod: int, times: int) -> None:
    """A pod that stays longer takes from what the first in the queue leaves; at once, for the next of its gang."""
    node, shape = pods_of(world)[pod].node, pods_of(world)[pod].shape
    if nodes_of(world)[node].is_reserved and not gone_in_time(world, job, node):
        nodes_of(world)[node].spare_mcores -= times * shapes_of(world)[shape].mcores
        nodes_of(world)[node].spare_gpus -= times * shapes_of(world)[shape].gpus


@compiled
def choose(world: World, job: int, pod: int, passes: bool) -> int:
    """The best node that the pod may use. Nodes that it may not use are hidden while it looks."""
    nodes = nodes_of(world)
    shape = pods_of(world)[pod].shape
    run_of(world).masked_count = 0
    while True:
        node = best_node(world, shape, pod)
        if node == NOBODY and run_of(world).sleeps:
            node = best_not_ready(world, shape)
        if node == NOBODY or not passes or may_use(world, job, shape, node):
            break
        nodes[node].free_mcores -= HIDDEN
        touch(world, node)
        masked_of(world)[run_of(world).masked_count] = node
        run_of(world).masked_count += 1
    for place in range(run_of(world).masked_count):
        nodes[masked_of(world)[place]].free_mcores += HIDDEN
        touch(world, masked_of(world)[place])
    return node


@compiled
def enough_slots(world: World, job: int) -> bool:
    """A gang that cannot fit is known before its first pod is placed; one that sleeping nodes may serve is tried."""
    jobs, pods = jobs_of(world), pods_of(world)
    if leaf_of(world).shape[1] == 0 or run_of(world).sleeps:
        return True
    wanted = 0
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        wanted += 1
        shape = pods[pod].shape
        if pod + 1 == jobs[job].last_pod or pods[pod + 1].shape != shape:
            catch_up(world, shape)
            if shapes_of(world)[shape].slots < wanted:
                return False
            wanted = 0
    return True


@compiled
def take_back(world: World, job: int, last: int, passes: bool) -> None:
    """The pods of a job up to this one off their nodes again."""
    for pod in range(jobs_of(world)[job].first_pod, last):
        if passes:
            use_spare(world, job, pod, -1)
        unbind(world, pod)


@compiled
def try_start(world: World, job: int, passes: bool) -> int:
    """Binds all pods of a job, or none."""
    jobs, pods, run = jobs_of(world), pods_of(world), run_of(world)
    kind, first, last = jobs[job].kind, jobs[job].first_pod, jobs[job].last_pod
    if kinds_of(world)[kind].fails_at == run.freed:
        return STAYS
    if run.ranking == GIVEN:
        for pod in range(first, last):
            if shapes_of(world)[pods[pod].shape].given_at != run.moves:
                run.asks_shape = pods[pod].shape
                return ASKS
    if last - first > 1 and not enough_slots(world, job):
        kinds_of(world)[kind].fails_at = run.freed
        return STAYS
    moves = run.moves
    for pod in range(first, last):
        node = choose(world, job, pod, passes)
        if node == NOBODY:
            take_back(world, job, pod, passes)
            run.moves = moves  # everything is as it was, so what was asked of Python still holds
            if not passes or run_of(world).reserved_count == 0:
                kinds_of(world)[kind].fails_at = run.freed
            return STAYS
        bind(world, pod, node)
        if passes:
            use_spare(world, job, pod, 1)
    for pod in range(first, last):
        if nodes_of(world)[pods[pod].node].asleep:
            wake(world, pods[pod].node)
    dequeue(world, job)
    start(world, job, passes)
    return STARTED


@compiled
def look_at_all(world: World) -> int:
    """Start whoever can be started; ASKS where a ranking in Python is wanted first."""
    run = run_of(world)
    while run_of(world).waiting > 0:
        head = first_waiting(world)
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
    active = tried_kinds(world)
    for _ in range(run.depth):
        kind = next_kind(world, active)
        if kind == NOBODY:
            break
        job = kinds_of(world)[kind].cursor
        kinds_of(world)[kind].cursor = jobs_of(world)[job].next_waiting
        if job == head or jobs_of(world)[job].reference_s >= kinds_of(world)[kind].failed_s:
            continue
        if probed(world, job):
            return ASKS
        outcome = try_start(world, job, True)
        if outcome == ASKS:
            return ASKS
        if outcome == STAYS:
            kinds_of(world)[kind].failed_s = jobs_of(world)[job].reference_s
    return STAYS


@compiled
def look_at(world: World, job: int) -> int:
    """Somebody has come, nothing else has changed: only this job can start."""
    if probed(world, job):
        return ASKS
    head = first_waiting(world)
    if job == head:
        return try_start(world, job, False)
    if not run_of(world).backfill or run_of(world).waiting > run_of(world).depth:
        return STAYS
    keep_for(world, head)
    return try_start(world, job, True)


@compiled
def tried_kinds(world: World) -> int:
    """How many kinds a look tries: those that wait and did not fail since something was last freed."""
    kinds, count = kinds_of(world), 0
    for kind in range(len(kinds)):
        kinds[kind].cursor, kinds[kind].failed_s = kinds[kind].first, np.inf
        if kinds[kind].first != NOBODY and kinds[kind].fails_at != run_of(world).freed:
            kinds[count].active = kind
            count += 1
    return count


@compiled
def next_kind(world: World, active: int) -> int:
    """The kind of the next in the queue; kinds that are through or have failed meanwhile are passed over."""
    kinds, chosen, first = kinds_of(world), NOBODY, NOBODY
    for place in range(active):
        kind = kinds[place].active
        job = kinds[kind].cursor
        if job != NOBODY and kinds[kind].fails_at != run_of(world).freed and (first == NOBODY or job < first):
            chosen, first = kind, job
    return chosen


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
    return job == run.probe_job and run.now_s >= run.probe_from_s
