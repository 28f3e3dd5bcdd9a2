"""When and where the first in the queue will fit, if all jobs end when users said they would."""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.placement.ranking import may_run, times
from joulie.lab.kernels.placement.slots import slots_in_all
from joulie.lab.kernels.placement.trees import is_kept
from joulie.lab.kernels.world import ABSENT, Integers, Numbers, World

OVERDUE_S = 60.0  # a job past its stated end is expected to end so soon


@inlined
def not_over_s(world: World, said_s: float) -> float:
    """When a job is expected to end that was said to end then."""
    now_s: float = world.run.now_s
    return said_s if said_s > now_s else now_s + OVERDUE_S


@compiled
def reserve(world: World, job: int) -> None:
    jobs = world.jobs
    first, last = jobs[job].first_pod, jobs[job].last_pod
    if last - first == 1:
        reserve_one(world, world.pods[first].shape)
    else:
        reserve_gang(world, job)


@compiled
def keep(world: World, node: int, spare_mcores: int, spare_gpus: int) -> None:
    if not world.nodes[node].is_reserved:
        world.nodes[node].is_reserved = True
        world.reserved_nodes[world.run.reserved_count] = node
        world.run.reserved_count += 1
    world.nodes[node].spare_mcores, world.nodes[node].spare_gpus = spare_mcores, spare_gpus


@compiled
def reserve_one(world: World, shape: int) -> None:
    """The node on which one pod fits first. Only ends before the best so far matter, and these are soon few."""
    nodes, shapes = world.nodes, world.shapes
    best, best_s, best_mcores, best_gpus = ABSENT, np.inf, 0, 0
    for node in range(shapes[shape].first_node, shapes[shape].last_node):
        if not may_run(world, shape, node):
            continue
        mcores, gpus, passed_s = nodes[node].free_mcores, nodes[node].free_gpus, -np.inf
        while mcores < shapes[shape].mcores or gpus < shapes[shape].gpus:
            if passed_s == -np.inf and at_the_earliest_s(world, shape, node) >= best_s:
                break
            # All that end next, at one time.
            next_s, freed_mcores, freed_gpus = next_end(world, node, passed_s)
            if next_s >= best_s:
                no_room(world, shape, node, next_s)
                break
            mcores, gpus, passed_s = mcores + freed_mcores, gpus + freed_gpus, next_s
        if mcores >= shapes[shape].mcores and gpus >= shapes[shape].gpus and passed_s < best_s:
            best, best_s, best_mcores, best_gpus = node, passed_s, mcores, gpus
    world.run.reserved_until_s = best_s
    if best != ABSENT:
        keep(world, best, best_mcores - shapes[shape].mcores, best_gpus - shapes[shape].gpus)


@inlined
def at_the_earliest_s(world: World, shape: int, node: int) -> float:
    """When a pod could fit at the earliest, as far as that is known without a look at the pods there."""
    here, asks = world.nodes[node], world.shapes[shape]
    soonest_s: float = here.soonest_end_s
    if asks.mcores >= here.no_room_mcores and asks.gpus >= here.no_room_gpus:
        soonest_s = max(soonest_s, here.no_room_until_s)
    return soonest_s


@inlined
def no_room(world: World, shape: int, node: int, until_s: float) -> None:
    """Pods that arrive, or stay longer than expected, make it later; only pods that leave could make it sooner."""
    here, asks = world.nodes[node], world.shapes[shape]
    here.no_room_until_s, here.no_room_mcores, here.no_room_gpus = until_s, asks.mcores, asks.gpus


@inlined
def next_end(world: World, node: int, passed_s: float) -> tuple[float, int, int]:
    """When the next pods there are expected to end, after this time, and what they leave."""
    nodes, pods, shapes = world.nodes, world.pods, world.shapes
    next_s, mcores, gpus = np.inf, 0, 0
    pod = nodes[node].first_pod
    while pod != ABSENT:
        end_s = not_over_s(world, pods[pod].expected_end_s)
        if passed_s < end_s <= next_s:
            if end_s < next_s:
                next_s, mcores, gpus = end_s, 0, 0
            mcores += shapes[pods[pod].shape].mcores
            gpus += shapes[pods[pod].shape].gpus
        pod = pods[pod].after
    if passed_s == -np.inf:
        nodes[node].soonest_end_s = next_s
    return next_s, mcores, gpus


@compiled
def reserve_gang(world: World, job: int) -> None:
    """The moment when all its pods fit at once, and nodes on which they then do."""
    nodes, pods, jobs, shapes = world.nodes, world.pods, world.jobs, world.shapes
    first, last = jobs[job].first_pod, jobs[job].last_pod
    mcores, gpus = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
    for node in range(len(nodes)):
        mcores[node], gpus[node] = nodes[node].free_mcores, nodes[node].free_gpus
    wanted = np.zeros(len(shapes), dtype=np.int64)
    for pod in range(first, last):
        wanted[pods[pod].shape] += 1
    world.run.reserved_until_s = until_they_fit(world, job, wanted, mcores, gpus)
    if world.run.reserved_until_s == np.inf:
        return
    node = 0
    for pod in range(first, last):
        shape = pods[pod].shape
        if pod > first and shape != pods[pod - 1].shape:
            node = 0
        while room_on(world, shape, node, mcores, gpus) == 0:
            node += 1
        mcores[node] -= shapes[shape].mcores
        gpus[node] -= shapes[shape].gpus
        keep(world, node, mcores[node], gpus[node])


@compiled
def until_they_fit(world: World, job: int, wanted: Integers, mcores: Integers, gpus: Integers) -> float:
    """When all its pods fit, so many of each shape; what is free is left as it will be then. Infinite: never."""
    pods, jobs, shapes = world.pods, world.jobs, world.shapes
    running, left = world.ends, world.run.ends_count
    ends_s, soonest = np.empty(left), np.arange(left)
    for place in range(left):
        ends_s[place] = not_over_s(world, jobs[running[place]].expected_end_s)
    for top in range(left // 2 - 1, -1, -1):
        sink_place(soonest, ends_s, top, left)
    asked = np.flatnonzero(wanted)
    fitting = np.zeros(len(asked), dtype=np.int64)
    for place in range(len(asked)):
        fitting[place] = slots_now(world, asked[place])
    until_s = world.run.now_s
    while not (np.all(fitting >= wanted[asked]) and find_room(world, job, mcores, gpus)):
        if left == 0:
            return np.inf
        ending, until_s = running[soonest[0]], ends_s[soonest[0]]
        left -= 1
        soonest[0] = soonest[left]
        sink_place(soonest, ends_s, 0, left)
        for pod in range(jobs[ending].first_pod, jobs[ending].last_pod):
            node = pods[pod].node
            for place in range(len(asked)):
                fitting[place] -= room_on(world, asked[place], node, mcores, gpus)
            mcores[node] += shapes[pods[pod].shape].mcores
            gpus[node] += shapes[pods[pod].shape].gpus
            for place in range(len(asked)):
                fitting[place] += room_on(world, asked[place], node, mcores, gpus)
    return until_s


@compiled
def slots_now(world: World, shape: int) -> int:
    """How many pods would fit in all, sleeping nodes included."""
    nodes = world.nodes
    if is_kept(world) and not world.run.sleeps:
        return slots_in_all(world, shape)
    slots = 0
    for node in range(len(nodes)):
        if may_run(world, shape, node):
            slots += times(world, shape, nodes[node].free_mcores, nodes[node].free_gpus)
    return slots


@compiled
def sink_place(heap: Integers, ends_s: Numbers, top: int, count: int) -> None:
    """Puts a heap of places in order below its top: few of the soonest ends are asked for, so sorting does not pay."""
    moved, at = heap[top], top
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and is_before(ends_s, heap[below + 1], heap[below]):
            below += 1
        if not is_before(ends_s, heap[below], moved):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moved


@inlined
def is_before(ends_s: Numbers, one: int, other: int) -> bool:
    """Of two that are expected to end at once, the one that ends first."""
    return ends_s[one] < ends_s[other] or (ends_s[one] == ends_s[other] and one < other)


@compiled
def find_room(world: World, job: int, mcores: Integers, gpus: Integers) -> bool:
    """Whether pods of several shapes fit beside each other, and not only each by itself."""
    jobs, pods, shapes = world.jobs, world.pods, world.shapes
    left_mcores, left_gpus = mcores.copy(), gpus.copy()
    node = 0
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        shape = pods[pod].shape
        if pod > jobs[job].first_pod and shape != pods[pod - 1].shape:
            node = 0
        while node < len(left_mcores) and room_on(world, shape, node, left_mcores, left_gpus) == 0:
            node += 1
        if node == len(left_mcores):
            return False
        left_mcores[node] -= shapes[shape].mcores
        left_gpus[node] -= shapes[shape].gpus
    return True


@compiled
def room_on(world: World, shape: int, node: int, mcores: Integers, gpus: Integers) -> int:
    return times(world, shape, mcores[node], gpus[node]) if may_run(world, shape, node) else 0
