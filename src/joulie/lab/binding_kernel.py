"""Pods onto nodes and off them, jobs begun and ended."""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled
from joulie.lab.ends_kernel import drop_end, put_end
from joulie.lab.filling_kernel import leave
from joulie.lab.memory_kernel import (
    backfilled_of,
    ended_s_of,
    jobs_of,
    node_of_pod_of,
    nodes_of,
    pods_of,
    run_of,
    shapes_of,
    start_s_of,
    waking_of,
)
from joulie.lab.power_kernel import refresh, set_end, set_pace
from joulie.lab.ranking_kernel import pod_power_w, set_recent
from joulie.lab.trees_kernel import touch
from joulie.lab.world import NOBODY, RUNNING, STARTING, WATT, World


@compiled
def bind(world: World, pod: int, node: int) -> None:
    """The pod has its place; it draws nothing before it runs."""
    nodes, pods, shapes, run = nodes_of(world), pods_of(world), shapes_of(world), run_of(world)
    shape = pods[pod].shape
    nodes[node].free_mcores -= shapes[shape].mcores
    nodes[node].free_gpus -= shapes[shape].gpus
    nodes[node].pods += 1
    nodes[node].performance_pods += shapes[shape].performance
    watts = pod_power_w(
        world,
        shape,
        node,
        nodes[node].cpu_plain_w,
        nodes[node].gpu_plain_standard_w,
        nodes[node].gpu_plain_performance_w,
    )
    pods[pod].added = int(np.rint(watts * WATT))
    nodes[node].bound += pods[pod].added
    if run.counts_recent:
        set_recent(world, node, nodes[node].recent + pods[pod].added)
    pods[pod].bound_in = run.tick
    pods[pod].node = node
    node_of_pod_of(world)[pods[pod].number] = node
    head = nodes[node].first_pod
    pods[pod].after, pods[pod].before = head, NOBODY
    if head != NOBODY:
        pods[head].before = pod
    nodes[node].first_pod = pod
    run.moves += 1
    touch(world, node)


@compiled
def unbind(world: World, pod: int) -> None:
    nodes, pods, shapes, run = nodes_of(world), pods_of(world), shapes_of(world), run_of(world)
    node, shape = pods[pod].node, pods[pod].shape
    nodes[node].free_mcores += shapes[shape].mcores
    nodes[node].free_gpus += shapes[shape].gpus
    nodes[node].pods -= 1
    nodes[node].performance_pods -= shapes[shape].performance
    nodes[node].bound -= pods[pod].added
    nodes[node].no_room_until_s = -np.inf
    if run.counts_recent and pods[pod].bound_in == run.tick:
        set_recent(world, node, nodes[node].recent - pods[pod].added)
    before, after = pods[pod].before, pods[pod].after
    if before != NOBODY:
        pods[before].after = after
    else:
        nodes[node].first_pod = after
    if after != NOBODY:
        pods[after].before = before
    run.moves += 1
    touch(world, node)


@compiled
def uncapped_s(world: World, job: int, node: int) -> float:
    """How long a job takes at full speed; a gang on whatever nodes, so by the slowest there are."""
    jobs, pods, nodes, run = jobs_of(world), pods_of(world), nodes_of(world), run_of(world)
    first, last = jobs[job].first_pod, jobs[job].last_pod
    core, gpu = run.slowest_core, run.slowest_gpu
    if last - first == 1 and node != NOBODY:
        core, gpu = nodes[node].core_speed, nodes[node].gpu_speed
    longest_s = 0.0
    for pod in range(first, last):
        rate = pods[pod].cpu_rate * core
        if pods[pod].gpu_rate < np.inf:
            rate = min(rate, pods[pod].gpu_rate * gpu)
        longest_s = max(longest_s, 1.0 / rate)
    return longest_s


@compiled
def bound_s(world: World, job: int) -> float:
    """The same where its pods are bound: a gang is as slow as the slowest of its own nodes."""
    jobs, pods, nodes = jobs_of(world), pods_of(world), nodes_of(world)
    longest_s = 0.0
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        node = pods[pod].node
        rate = pods[pod].cpu_rate * nodes[node].core_speed
        if pods[pod].gpu_rate < np.inf:
            rate = min(rate, pods[pod].gpu_rate * nodes[node].gpu_speed)
        longest_s = max(longest_s, 1.0 / rate)
    return longest_s


@compiled
def start(world: World, job: int, passed: bool) -> None:
    """All its pods are bound: it begins now, or when the last of its nodes is awake."""
    jobs, run = jobs_of(world), run_of(world)
    ready_s = run.now_s
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        ready_s = max(ready_s, nodes_of(world)[pods_of(world)[pod].node].ready_s)
    backfilled_of(world)[jobs[job].number] = passed
    jobs[job].expected_end_s = ready_s + bound_s(world, job) * run.estimate_factor
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        node = pods_of(world)[pod].node
        pods_of(world)[pod].expected_end_s = jobs[job].expected_end_s
        nodes_of(world)[node].soonest_end_s = min(nodes_of(world)[node].soonest_end_s, jobs[job].expected_end_s)
    if ready_s > run.now_s:
        jobs[job].state = STARTING
        jobs[job].end_s = ready_s
        put_end(world, job)
    else:
        begin(world, job)


@compiled
def begin(world: World, job: int) -> None:
    jobs, pods, nodes, now_s = jobs_of(world), pods_of(world), nodes_of(world), run_of(world).now_s
    first, last = jobs[job].first_pod, jobs[job].last_pod
    jobs[job].state = RUNNING
    start_s_of(world)[jobs[job].number] = jobs[job].since_s = now_s
    run_of(world).running += 1
    for pod in range(first, last):
        pods[pod].runs = True
        nodes[pods[pod].node].load += pods[pod].load
    for pod in range(first, last):
        node = pods[pod].node
        if pod == first or node != pods[pod - 1].node:
            refresh(world, node)
        if shapes_of(world)[pods[pod].shape].gpus == 0:
            set_pace(world, node, pod, nodes[node].frequency, 1.0)
    set_end(world, job)


@compiled
def end(world: World, job: int) -> None:
    jobs, pods = jobs_of(world), pods_of(world)
    first, last = jobs[job].first_pod, jobs[job].last_pod
    drop_end(world, job)
    ended_s_of(world)[jobs[job].number] = run_of(world).now_s
    run_of(world).running -= 1
    run_of(world).done += 1
    run_of(world).freed += 1
    for pod in range(first, last):
        nodes_of(world)[pods[pod].node].load -= pods[pod].load
        unbind(world, pod)
        if nodes_of(world)[pods[pod].node].pods == 0:
            nodes_of(world)[pods[pod].node].empty_since_s = run_of(world).now_s
    for pod in range(first, last):
        if pod == first or pods[pod].node != pods[pod - 1].node:
            refresh(world, pods[pod].node)
    leave(world, job)


@compiled
def wake(world: World, node: int) -> None:
    """Switch a node on: it draws power at once and works later."""
    nodes, run = nodes_of(world), run_of(world)
    nodes[node].asleep = False
    nodes[node].ready_s = run.now_s + run.wake_s
    waking_of(world)[(run_of(world).waking_from + run_of(world).waking_count) % len(waking_of(world))] = node
    run_of(world).waking_count += 1
    run.wakes += 1
    refresh(world, node)
    touch(world, node)
