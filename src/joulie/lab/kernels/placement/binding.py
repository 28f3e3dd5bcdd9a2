"""Pods onto nodes and off them, jobs begun and ended."""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled
from joulie.lab.kernels.completions import drop_end, put_end
from joulie.lab.kernels.job_pages import leave
from joulie.lab.kernels.placement.ranking import pod_power_w, set_recent
from joulie.lab.kernels.placement.trees import touch
from joulie.lab.kernels.power import refresh, set_end, set_pace
from joulie.lab.kernels.world import ABSENT, RUNNING, STARTING, WATT, World


@compiled
def bind(world: World, pod: int, node: int) -> None:
    """The pod has its place; it draws nothing before it runs."""
    nodes, pods, shapes, run = world.nodes, world.pods, world.shapes, world.run
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
    world.node_of_pod[pods[pod].number] = node
    head = nodes[node].first_pod
    pods[pod].after, pods[pod].before = head, ABSENT
    if head != ABSENT:
        pods[head].before = pod
    nodes[node].first_pod = pod
    run.moves += 1
    touch(world, node)


@compiled
def unbind(world: World, pod: int) -> None:
    nodes, pods, shapes, run = world.nodes, world.pods, world.shapes, world.run
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
    if before != ABSENT:
        pods[before].after = after
    else:
        nodes[node].first_pod = after
    if after != ABSENT:
        pods[after].before = before
    run.moves += 1
    touch(world, node)


@compiled
def uncapped_s(world: World, job: int, node: int) -> float:
    """How long a job takes at full speed; a gang on whatever nodes, so by the slowest there are."""
    jobs, pods, nodes, run = world.jobs, world.pods, world.nodes, world.run
    first, last = jobs[job].first_pod, jobs[job].last_pod
    core, gpu = run.slowest_core, run.slowest_gpu
    if last - first == 1 and node != ABSENT:
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
    jobs, pods, nodes = world.jobs, world.pods, world.nodes
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
    jobs, run = world.jobs, world.run
    ready_s = run.now_s
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        ready_s = max(ready_s, world.nodes[world.pods[pod].node].ready_s)
    world.backfilled[jobs[job].number] = passed
    jobs[job].expected_end_s = ready_s + bound_s(world, job) * run.estimate_factor
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        node = world.pods[pod].node
        world.pods[pod].expected_end_s = jobs[job].expected_end_s
        world.nodes[node].soonest_end_s = min(world.nodes[node].soonest_end_s, jobs[job].expected_end_s)
    if ready_s > run.now_s:
        jobs[job].state = STARTING
        jobs[job].end_s = ready_s
        put_end(world, job)
    else:
        begin(world, job)


@compiled
def begin(world: World, job: int) -> None:
    jobs, pods, nodes, now_s = world.jobs, world.pods, world.nodes, world.run.now_s
    first, last = jobs[job].first_pod, jobs[job].last_pod
    jobs[job].state = RUNNING
    world.start_s[jobs[job].number] = jobs[job].since_s = now_s
    world.run.running += 1
    for pod in range(first, last):
        pods[pod].runs = True
        nodes[pods[pod].node].load += pods[pod].load
    for pod in range(first, last):
        node = pods[pod].node
        if pod == first or node != pods[pod - 1].node:
            refresh(world, node)
        if world.shapes[pods[pod].shape].gpus == 0:
            set_pace(world, node, pod, nodes[node].frequency, 1.0)
    set_end(world, job)


@compiled
def end(world: World, job: int) -> None:
    jobs, pods = world.jobs, world.pods
    first, last = jobs[job].first_pod, jobs[job].last_pod
    drop_end(world, job)
    world.ended_s[jobs[job].number] = world.run.now_s
    world.run.running -= 1
    world.run.done += 1
    world.run.freed += 1
    for pod in range(first, last):
        world.nodes[pods[pod].node].load -= pods[pod].load
        unbind(world, pod)
        if world.nodes[pods[pod].node].pods == 0:
            world.nodes[pods[pod].node].empty_since_s = world.run.now_s
    for pod in range(first, last):
        if pod == first or pods[pod].node != pods[pod - 1].node:
            refresh(world, pods[pod].node)
    leave(world, job)


@compiled
def wake(world: World, node: int) -> None:
    """Switch a node on: it draws power at once and works later."""
    nodes, run = world.nodes, world.run
    nodes[node].asleep = False
    nodes[node].ready_s = run.now_s + run.wake_s
    world.waking[(world.run.waking_from + world.run.waking_count) % len(world.waking)] = node
    world.run.waking_count += 1
    run.wakes += 1
    refresh(world, node)
    touch(world, node)
