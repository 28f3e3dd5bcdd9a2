"""Meters of the groups that budgets limit: what their nodes draw at the wall, exact whatever the step.

A group's power changes with its nodes', so how long it was above its limit is known to the moment. What lasts no time
does not count: caps of several nodes change one after the other at the same instant.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, entry
from joulie.lab.kernels.world import ABSENT, LOAD, WATT, Numbers, World

ROUNDING_W = 1e-3


@compiled
def group_power_w(world: World, group: int) -> float:
    """As its limit counts it."""
    groups = world.groups
    drawn_w: float = groups[group].reserve_w + groups[group].share * (groups[group].wall / WATT)
    return drawn_w


@compiled
def read_group(world: World, group: int) -> None:
    groups, now_s = world.groups, world.run.now_s
    dt_s = now_s - groups[group].since_s
    if dt_s > 0:
        excess_w = group_power_w(world, group) - groups[group].limit_w
        if excess_w > ROUNDING_W:
            groups[group].above_s += dt_s
            groups[group].worst_w = max(groups[group].worst_w, excess_w)
            groups[group].worst_pct = max(groups[group].worst_pct, 100.0 * excess_w / groups[group].limit_w)
    groups[group].since_s = now_s


@compiled
def change_groups(world: World, node: int, added: int) -> None:
    """A node draws so much more or less from now on."""
    for place in range(world.groups_from[node], world.groups_from[node + 1]):
        group = world.groups_of[place]
        read_group(world, group)
        world.groups[group].wall += added


@entry
def read_groups(world: World) -> None:
    """Every group's meter, up to now."""
    for group in range(len(world.groups)):
        read_group(world, group)


@entry
def read_nodes(
    world: World, cpu_w: Numbers, gpu_w: Numbers, wall_w: Numbers, cpu_used: Numbers, gpu_used: Numbers
) -> None:
    """What packages, boards and whole nodes draw now, and how busy packages and boards are, 0 to 1."""
    nodes, pods = world.nodes, world.pods
    for node in range(len(nodes)):
        cpu_w[node], gpu_w[node], wall_w[node] = nodes[node].cpu_w, nodes[node].gpu_w, nodes[node].wall / WATT
        cpu_used[node] = min(1.0, nodes[node].load / (LOAD * nodes[node].mcores))
        gpu_used[node] = 0.0
        if nodes[node].gpus == 0:
            continue
        pod = nodes[node].first_pod
        while pod != ABSENT:
            if pods[pod].runs:
                gpu_used[node] += world.shapes[pods[pod].shape].gpus * pods[pod].gpu_utilisation / nodes[node].gpus
            pod = pods[pod].after


def set_limits(world: World, limits_w: Numbers) -> None:
    """Other limits from now on: meters are read first."""
    if not np.array_equal(world.groups["limit_w"], limits_w):
        read_groups(world)
        world.groups["limit_w"] = limits_w
