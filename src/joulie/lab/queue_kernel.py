"""First come first served, gangs whole, and EASY backfill: who waits may be passed, but is never delayed by that.

Only the first in the queue has a reservation: the nodes on which it will fit soonest, by what users estimate. Others
may start now if they leave these nodes alone, fit beside what is kept there, or are gone by then.
"""

from __future__ import annotations

from joulie.lab.binding_kernel import bind, start, unbind, uncapped_s, wake
from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import (
    blocks_of,
    change_of,
    jobs_of,
    kinds_of,
    masked_of,
    nodes_of,
    pods_of,
    run_of,
    shapes_of,
)
from joulie.lab.ranking_kernel import best_not_ready
from joulie.lab.slots_kernel import slots_in_all
from joulie.lab.trees_kernel import best_but, best_node, catch_up, is_kept, see_again
from joulie.lab.waiting_kernel import dequeue
from joulie.lab.world import GIVEN, NOBODY, World

HIDDEN = 1 << 40  # thousandths of a core that no node has
MOST_BESIDE = 6  # nodes that a search passes over, before it is faster to hide them
STARTED, STAYS, ASKS = 1, 0, -1


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
    """The best node that the pod may use."""
    shape, masked = pods_of(world)[pod].shape, 0
    if run_of(world).sleeps or not is_kept(world):
        return choose_among_all(world, job, pod, passes)
    node = best_node(world, shape, pod)
    while passes and node != NOBODY and not may_use(world, job, shape, node):
        if masked == MOST_BESIDE:
            return choose_among_all(world, job, pod, passes)
        masked_of(world)[masked] = node
        masked += 1
        node = best_but(world, shape, masked)
    return node


@compiled
def choose_among_all(world: World, job: int, pod: int, passes: bool) -> int:
    """Nodes that the pod may not use are hidden while it looks, from its shape alone."""
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
        see_again(world, shape, node)
        masked_of(world)[run_of(world).masked_count] = node
        run_of(world).masked_count += 1
    for place in range(run_of(world).masked_count):
        nodes[masked_of(world)[place]].free_mcores += HIDDEN
        see_again(world, shape, masked_of(world)[place])
    return node


@compiled
def enough_slots(world: World, job: int) -> bool:
    """A gang that cannot fit is known before its first pod is placed; one that sleeping nodes may serve is tried."""
    jobs, pods = jobs_of(world), pods_of(world)
    if not is_kept(world) or run_of(world).sleeps:
        return True
    wanted = 0
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        wanted += 1
        shape = pods[pod].shape
        if pod + 1 == jobs[job].last_pod or pods[pod + 1].shape != shape:
            if slots_in_all(world, shape) < wanted:
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
def forget_changes(world: World, first: int, last: int, changes: int) -> None:
    """All nodes are as they were so many changes ago; only the trees of these pods have seen anything else."""
    pods, shapes, run = pods_of(world), shapes_of(world), run_of(world)
    if not is_kept(world) or (run.changes - changes) * 2 > len(change_of(world)):
        return  # so many that older ones are no longer in the ring
    for pod in range(first, last):
        catch_up(world, pods[pod].shape)
    for pod in range(first, last):
        blocks_of(world)[shapes[pods[pod].shape].block].seen = changes
    run.changes = changes


@compiled
def asks_for_scores(world: World, first: int, last: int) -> bool:
    """Of a shape of these pods, since something has moved."""
    pods, run = pods_of(world), run_of(world)
    for pod in range(first, last):
        if shapes_of(world)[pods[pod].shape].given_at != run.moves:
            run.asks_shape = pods[pod].shape
            return True
    return False


@compiled
def try_start(world: World, job: int, passes: bool) -> int:
    """Binds all pods of a job, or none."""
    jobs, pods, run = jobs_of(world), pods_of(world), run_of(world)
    kind, first, last = jobs[job].kind, jobs[job].first_pod, jobs[job].last_pod
    if kinds_of(world)[kind].fails_at == run.freed:
        return STAYS
    if run.ranking == GIVEN and asks_for_scores(world, first, last):
        return ASKS
    if last - first > 1 and not enough_slots(world, job):
        kinds_of(world)[kind].fails_at = run.freed
        return STAYS
    moves, changes = run.moves, run.changes
    for pod in range(first, last):
        node = choose(world, job, pod, passes)
        if node == NOBODY:
            if pod == first:
                jobs[job].refused_at = run.relief
            take_back(world, job, pod, passes)
            run.moves = moves  # everything is as it was, so what was asked of Python still holds
            if pod > first:
                forget_changes(world, first, pod + 1, changes)
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
