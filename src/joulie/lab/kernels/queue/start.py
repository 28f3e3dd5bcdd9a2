"""First come first served, gangs whole, and EASY backfill: a waiting job may be passed, but is never delayed by that.

Only the first in the queue has a reservation: the nodes on which it will fit soonest, by what users estimate. Others
may start now if they leave these nodes alone, fit beside what is kept there, or are gone by then.
"""

from __future__ import annotations

from joulie.lab.kernels.compiling import compiled
from joulie.lab.kernels.placement.binding import bind, start, unbind, uncapped_s, wake
from joulie.lab.kernels.placement.ranking import best_not_ready
from joulie.lab.kernels.placement.slots import slots_in_all
from joulie.lab.kernels.placement.trees import best_but, best_node, catch_up, is_kept, see_again
from joulie.lab.kernels.queue.waiting import dequeue
from joulie.lab.kernels.world import ABSENT, GIVEN, World

HIDDEN = 1 << 40  # thousandths of a core that no node has
MAX_BESIDE = 6  # nodes that a search passes over, before it is faster to hide them
STARTED, STAYS, ASKS = 1, 0, -1


@compiled
def may_use(world: World, job: int, shape: int, node: int) -> bool:
    """A job that passes the first in the queue leaves alone what is kept for that."""
    shapes = world.shapes
    if not world.nodes[node].is_reserved:
        return True
    if world.nodes[node].spare_mcores >= shapes[shape].mcores and world.nodes[node].spare_gpus >= shapes[shape].gpus:
        return True
    return gone_in_time(world, job, node)


@compiled
def gone_in_time(world: World, job: int, node: int) -> bool:
    """By the user's word it has ended when the first in the queue wants the node."""
    run, nodes = world.run, world.nodes
    ready_s = run.now_s + run.wake_s if nodes[node].asleep else max(run.now_s, nodes[node].ready_s)
    in_time: bool = ready_s + uncapped_s(world, job, node) * run.estimate_factor <= run.reserved_until_s
    return in_time


@compiled
def use_spare(world: World, job: int, pod: int, times: int) -> None:
    """A pod that stays longer takes from what the first in the queue leaves; at once, for the next of its gang."""
    node, shape = world.pods[pod].node, world.pods[pod].shape
    if world.nodes[node].is_reserved and not gone_in_time(world, job, node):
        world.nodes[node].spare_mcores -= times * world.shapes[shape].mcores
        world.nodes[node].spare_gpus -= times * world.shapes[shape].gpus


@compiled
def choose(world: World, job: int, pod: int, passes: bool) -> int:
    """The best node that the pod may use."""
    shape, masked = world.pods[pod].shape, 0
    if world.run.sleeps or not is_kept(world):
        return choose_among_all(world, job, pod, passes)
    node = best_node(world, shape, pod)
    while passes and node != ABSENT and not may_use(world, job, shape, node):
        if masked == MAX_BESIDE:
            return choose_among_all(world, job, pod, passes)
        world.masked[masked] = node
        masked += 1
        node = best_but(world, shape, masked)
    return node


@compiled
def choose_among_all(world: World, job: int, pod: int, passes: bool) -> int:
    """Nodes that the pod may not use are hidden while it looks, from its shape alone."""
    nodes = world.nodes
    shape = world.pods[pod].shape
    world.run.masked_count = 0
    while True:
        node = best_node(world, shape, pod)
        if node == ABSENT and world.run.sleeps:
            node = best_not_ready(world, shape)
        if node == ABSENT or not passes or may_use(world, job, shape, node):
            break
        nodes[node].free_mcores -= HIDDEN
        see_again(world, shape, node)
        world.masked[world.run.masked_count] = node
        world.run.masked_count += 1
    for place in range(world.run.masked_count):
        nodes[world.masked[place]].free_mcores += HIDDEN
        see_again(world, shape, world.masked[place])
    return node


@compiled
def enough_slots(world: World, job: int) -> bool:
    """A gang that cannot fit is known before its first pod is placed; one that sleeping nodes may serve is tried."""
    jobs, pods = world.jobs, world.pods
    if not is_kept(world) or world.run.sleeps:
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
    for pod in range(world.jobs[job].first_pod, last):
        if passes:
            use_spare(world, job, pod, -1)
        unbind(world, pod)


@compiled
def forget_changes(world: World, first: int, last: int, changes: int) -> None:
    """All nodes are as they were so many changes ago; only the trees of these pods have seen anything else."""
    pods, shapes, run = world.pods, world.shapes, world.run
    if not is_kept(world) or (run.changes - changes) * 2 > len(world.change):
        return  # so many that older ones are no longer in the ring
    for pod in range(first, last):
        catch_up(world, pods[pod].shape)
    for pod in range(first, last):
        world.blocks[shapes[pods[pod].shape].block].seen = changes
    run.changes = changes


@compiled
def asks_for_scores(world: World, first: int, last: int) -> bool:
    """Of a shape of these pods, since something has moved."""
    pods, run = world.pods, world.run
    for pod in range(first, last):
        if world.shapes[pods[pod].shape].given_at != run.moves:
            run.asks_shape = pods[pod].shape
            return True
    return False


@compiled
def try_start(world: World, job: int, passes: bool) -> int:
    """Binds all pods of a job, or none."""
    jobs, pods, run = world.jobs, world.pods, world.run
    kind, first, last = jobs[job].kind, jobs[job].first_pod, jobs[job].last_pod
    if world.kinds[kind].fails_at == run.freed:
        return STAYS
    if run.ranking == GIVEN and asks_for_scores(world, first, last):
        return ASKS
    if last - first > 1 and not enough_slots(world, job):
        world.kinds[kind].fails_at = run.freed
        return STAYS
    moves, changes = run.moves, run.changes
    for pod in range(first, last):
        node = choose(world, job, pod, passes)
        if node == ABSENT:
            if pod == first:
                jobs[job].refused_at = run.relief
            take_back(world, job, pod, passes)
            run.moves = moves  # everything is as it was, so what was asked of Python still holds
            if pod > first:
                forget_changes(world, first, pod + 1, changes)
            if not passes or world.run.reserved_count == 0:
                world.kinds[kind].fails_at = run.freed
            return STAYS
        bind(world, pod, node)
        if passes:
            use_spare(world, job, pod, 1)
    for pod in range(first, last):
        if world.nodes[pods[pod].node].asleep:
            wake(world, pods[pod].node)
    dequeue(world, job)
    start(world, job, passes)
    return STARTED
