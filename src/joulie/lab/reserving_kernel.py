"""When and where the first in the queue will fit, if everybody ends as users have said."""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import ends_of, jobs_of, nodes_of, pods_of, reserved_nodes_of, run_of, shapes_of
from joulie.lab.ranking_kernel import may_run, times
from joulie.lab.world import NOBODY, Integers, World

OVERDUE_S = 60.0  # who should have ended is expected to end so soon


@compiled
def expected_end_s(world: World, job: int) -> float:
    now_s: float = run_of(world).now_s
    said_s: float = jobs_of(world)[job].expected_end_s
    return said_s if said_s > now_s else now_s + OVERDUE_S


@compiled
def reserve(world: World, job: int) -> None:
    jobs = jobs_of(world)
    first, last = jobs[job].first_pod, jobs[job].last_pod
    if last - first == 1:
        reserve_one(world, pods_of(world)[first].shape)
    else:
        reserve_gang(world, job)


@compiled
def keep(world: World, node: int, spare_mcores: int, spare_gpus: int) -> None:
    if not nodes_of(world)[node].is_reserved:
        nodes_of(world)[node].is_reserved = True
        reserved_nodes_of(world)[run_of(world).reserved_count] = node
        run_of(world).reserved_count += 1
    nodes_of(world)[node].spare_mcores, nodes_of(world)[node].spare_gpus = spare_mcores, spare_gpus


@compiled
def reserve_one(world: World, shape: int) -> None:
    """The node on which one pod fits first. Only ends before the best so far matter, and these are soon few."""
    nodes, pods, shapes = nodes_of(world), pods_of(world), shapes_of(world)
    best, best_s, best_mcores, best_gpus = NOBODY, np.inf, 0, 0
    for node in range(len(nodes)):
        if not may_run(world, shape, node):
            continue
        mcores, gpus, passed_s = nodes[node].free_mcores, nodes[node].free_gpus, -np.inf
        while mcores < shapes[shape].mcores or gpus < shapes[shape].gpus:
            # All that end next, at one time.
            next_s = np.inf
            pod = nodes[node].first_pod
            while pod != NOBODY:
                end_s = expected_end_s(world, pods[pod].job)
                if passed_s < end_s < next_s:
                    next_s = end_s
                pod = pods[pod].after
            if next_s >= best_s:
                break
            pod = nodes[node].first_pod
            while pod != NOBODY:
                if expected_end_s(world, pods[pod].job) == next_s:
                    mcores += shapes[pods[pod].shape].mcores
                    gpus += shapes[pods[pod].shape].gpus
                pod = pods[pod].after
            passed_s = next_s
        if mcores >= shapes[shape].mcores and gpus >= shapes[shape].gpus and passed_s < best_s:
            best, best_s, best_mcores, best_gpus = node, passed_s, mcores, gpus
    run_of(world).reserved_until_s = best_s
    if best != NOBODY:
        keep(world, best, best_mcores - shapes[shape].mcores, best_gpus - shapes[shape].gpus)


@compiled
def reserve_gang(world: World, job: int) -> None:
    """The moment when all its pods fit at once, and nodes on which they then do."""
    nodes, pods, jobs, shapes = nodes_of(world), pods_of(world), jobs_of(world), shapes_of(world)
    first, last = jobs[job].first_pod, jobs[job].last_pod
    mcores, gpus = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
    for node in range(len(nodes)):
        mcores[node], gpus[node] = nodes[node].free_mcores, nodes[node].free_gpus
    wanted = np.zeros(len(shapes), dtype=np.int64)
    for pod in range(first, last):
        wanted[pods[pod].shape] += 1
    run_of(world).reserved_until_s = until_they_fit(world, job, wanted, mcores, gpus)
    if run_of(world).reserved_until_s == np.inf:
        return
    for pod in range(first, last):
        shape = pods[pod].shape
        for node in range(len(nodes)):
            if room_on(world, shape, node, mcores, gpus) > 0:
                mcores[node] -= shapes[shape].mcores
                gpus[node] -= shapes[shape].gpus
                keep(world, node, mcores[node], gpus[node])
                break


@compiled
def until_they_fit(world: World, job: int, wanted: Integers, mcores: Integers, gpus: Integers) -> float:
    """When all its pods fit, so many of each shape; what is free is left as it will be then. Infinite: never."""
    nodes, pods, jobs, shapes = nodes_of(world), pods_of(world), jobs_of(world), shapes_of(world)
    running = ends_of(world)[: run_of(world).ends_count].copy()
    ends_s = np.empty(len(running))
    for place in range(len(running)):
        ends_s[place] = expected_end_s(world, running[place])
    order = np.argsort(ends_s, kind="mergesort")
    asked = np.flatnonzero(wanted)
    fitting = np.zeros(len(asked), dtype=np.int64)
    for place in range(len(asked)):
        for node in range(len(nodes)):
            fitting[place] += room_on(world, asked[place], node, mcores, gpus)
    until_s, step = run_of(world).now_s, 0
    while not (np.all(fitting >= wanted[asked]) and find_room(world, job, mcores, gpus)):
        if step == len(order):
            return np.inf
        ending, until_s = running[order[step]], ends_s[order[step]]
        step += 1
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
def find_room(world: World, job: int, mcores: Integers, gpus: Integers) -> bool:
    """Whether pods of several shapes fit beside each other, and not only each by itself."""
    jobs, pods, shapes = jobs_of(world), pods_of(world), shapes_of(world)
    left_mcores, left_gpus = mcores.copy(), gpus.copy()
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        shape, node = pods[pod].shape, 0
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
