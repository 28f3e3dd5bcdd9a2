"""Steps of the plant: cooling of each zone, heat in its devices, and nodes that fall asleep.

Devices of a zone are looked at one by one only while its air is so warm that one of them could be too hot.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, formula
from joulie.lab.kernels.placement.trees import touch
from joulie.lab.kernels.power import (
    CPU_RISE_C,
    CPU_TAU_S,
    GPU_RISE_C,
    GPU_TAU_S,
    board_power,
    count_seconds,
    cpu_power,
    feeding,
    power_at,
    read_zone,
    refresh,
    throttled_frequency,
    warm_up,
)
from joulie.lab.kernels.world import ABSENT, World
from joulie.plant import cooling, thermals
from joulie.plant.cooling import CoolingSettings
from joulie.plant.machines import GPU_FREQUENCY_FLOOR
from joulie.plant.thermals import CPU_THERMALS, GPU_THERMALS

SETTINGS = CoolingSettings()
CONTROL_TAU_S = SETTINGS.control_tau_s
CPU_FROM_C, CPU_TO_C = CPU_THERMALS.throttle_from_c, CPU_THERMALS.throttle_to_c
GPU_FROM_C, GPU_TO_C = GPU_THERMALS.throttle_from_c, GPU_THERMALS.throttle_to_c
HALVINGS = 30

zone_flows = formula(cooling.zone_flows)
throttle_at = formula(thermals.throttle_at)


@compiled
def plant_step(world: World, dt_s: float) -> None:
    """The step that ends now."""
    run, zones = world.run, world.zones
    count_seconds(world)
    outside_c = world.outside_c[min(run.steps, len(world.outside_c) - 1)]
    corrected = -np.expm1(-dt_s / CONTROL_TAU_S)
    cpu_followed, gpu_followed = -np.expm1(-dt_s / CPU_TAU_S), -np.expm1(-dt_s / GPU_TAU_S)
    total_w = 0.0
    for zone in range(len(zones)):
        read_zone(world, zone)
        it_w = zones[zone].step_j / dt_s
        inlet_c, fan_w, free_w, mechanical_w, compressor_w = zone_flows(
            zones[zone].inlet_c, it_w, outside_c, dt_s, corrected, zones[zone].rated_w, SETTINGS
        )
        zones[zone].inlet_c = inlet_c
        zones[zone].it_j += zones[zone].step_j
        zones[zone].fan_j += fan_w * dt_s
        zones[zone].compressor_j += compressor_w * dt_s
        zones[zone].removed_j += (free_w + mechanical_w) * dt_s
        zones[zone].cooling_w = fan_w + compressor_w
        run.it_j += zones[zone].step_j
        run.cooling_j += zones[zone].cooling_w * dt_s
        zones[zone].step_j = 0.0
        total_w += it_w
        zones[zone].cpu_air_c += (inlet_c - zones[zone].cpu_air_c) * cpu_followed
        zones[zone].gpu_air_c += (inlet_c - zones[zone].gpu_air_c) * gpu_followed
        hottest_cpu_c, hottest_gpu_c = zones[zone].cpu_air_c + CPU_RISE_C, zones[zone].gpu_air_c + GPU_RISE_C
        if hottest_cpu_c > CPU_FROM_C or hottest_gpu_c > GPU_FROM_C or zones[zone].throttled > 0:
            heat_zone(world, zone, dt_s)
    run.peak_w = max(run.peak_w, total_w)
    run.steps += 1
    run.next_step_s = (run.steps + 1) * run.step_s
    if run.sleeps:
        fall_asleep(world)


@compiled
def heat_zone(world: World, zone: int, dt_s: float) -> None:
    """How much each of its nodes is throttled by heat in the step that comes."""
    nodes, now_s = world.nodes, world.run.now_s
    cpu_kept, gpu_kept = np.exp(-dt_s / CPU_TAU_S), np.exp(-dt_s / GPU_TAU_S)
    cpu_air_c, gpu_air_c = world.zones[zone].cpu_air_c, world.zones[zone].gpu_air_c
    for number in range(world.zones[zone].first_node, world.zones[zone].last_node):
        node = nodes[number]
        if node.asleep:
            continue
        if node.gpus == 0 and node.cpu_throttle == 0.0 and now_s - node.warm_at_s == dt_s:
            # As nearly always: what `warm_up_by` and `cpu_throttle` would do, with one division.
            towards_c = CPU_RISE_C * node.cpu_w / node.cpu_max_w
            warm_c = towards_c + (node.cpu_warm_c - towards_c) * cpu_kept
            node.cpu_warm_c, node.warm_at_s = warm_c, now_s
            if cpu_air_c + towards_c + (warm_c - towards_c) * cpu_kept <= CPU_FROM_C:
                continue
        heat_node(world, number, cpu_air_c, gpu_air_c, cpu_kept, gpu_kept)


@compiled
def heat_node(world: World, node: int, cpu_air_c: float, gpu_air_c: float, cpu_kept: float, gpu_kept: float) -> None:
    nodes, zones = world.nodes, world.zones
    warm_up(world, node)
    cpu = cpu_throttle(world, node, cpu_air_c, cpu_kept)
    gpu = gpu_throttle(world, node, gpu_air_c, gpu_kept) if nodes[node].gpus > 0 else 0.0
    if cpu != nodes[node].cpu_throttle or gpu != nodes[node].gpu_throttle:
        was = nodes[node].cpu_throttle > 0 or nodes[node].gpu_throttle > 0
        nodes[node].cpu_throttle, nodes[node].gpu_throttle = cpu, gpu
        zones[nodes[node].zone].throttled += (cpu > 0 or gpu > 0) - was
        refresh(world, node)


@compiled
def cpu_throttle(world: World, node: int, air_c: float, kept: float) -> float:
    """So much that it fits the temperature at the end of the step: there is exactly one solution, found by halving."""
    nodes = world.nodes
    low, high = 0.0, 1.0
    for halving in range(HALVINGS + 1):
        middle = 0.0 if halving == 0 else 0.5 * (low + high)
        if halving == 0 and nodes[node].cpu_throttle == 0.0:
            drawn_w = nodes[node].cpu_w  # what it draws now is what it draws unthrottled
        else:
            _, _, drawn_w = cpu_power(world, node, middle)
        towards_c = CPU_RISE_C * drawn_w / nodes[node].cpu_max_w
        end_c = air_c + towards_c + (nodes[node].cpu_warm_c - towards_c) * kept
        if throttle_at(end_c, CPU_FROM_C, CPU_TO_C) > middle:
            low = middle
        elif halving == 0:
            return 0.0
        else:
            high = middle
    return high


@compiled
def gpu_throttle(world: World, node: int, air_c: float, kept: float) -> float:
    """The same for the hottest board, which speaks for all boards of its node."""
    nodes = world.nodes
    cool_w = nodes[node].hottest_w if nodes[node].gpu_throttle == 0.0 else hottest_unthrottled_w(world, node)
    low, high = 0.0, 1.0
    for halving in range(HALVINGS + 1):
        middle = 0.0 if halving == 0 else 0.5 * (low + high)
        drawn_w = cool_w
        if middle > 0:
            drawn_w = power_at(throttled_frequency(middle, GPU_FREQUENCY_FLOOR), nodes[node].gpu_idle_w, cool_w)
        towards_c = GPU_RISE_C * drawn_w / nodes[node].gpu_max_w
        end_c = air_c + towards_c + (nodes[node].gpu_warm_c - towards_c) * kept
        if throttle_at(end_c, GPU_FROM_C, GPU_TO_C) > middle:
            low = middle
        elif halving == 0:
            return 0.0
        else:
            high = middle
    return high


@compiled
def hottest_unthrottled_w(world: World, node: int) -> float:
    nodes, pods = world.nodes, world.pods
    hottest_w, pod = nodes[node].gpu_idle_w, nodes[node].first_pod
    while pod != ABSENT:
        if world.shapes[pods[pod].shape].gpus > 0 and pods[pod].runs:
            fed = feeding(nodes[node].frequency, pods[pod].feed_intensity)
            _, drawn_w, _ = board_power(world, node, pod, fed, 0.0)
            hottest_w = max(hottest_w, drawn_w)
        pod = pods[pod].after
    return hottest_w


@compiled
def fall_asleep(world: World) -> None:
    """Nodes that have been empty for long are switched off."""
    nodes, run = world.nodes, world.run
    for node in range(len(nodes)):
        idle = nodes[node].pods == 0 and not nodes[node].asleep and nodes[node].ready_s <= run.now_s
        if idle and run.now_s - nodes[node].empty_since_s >= run.sleep_after_s:
            nodes[node].asleep = True
            refresh(world, node)
            touch(world, node)
