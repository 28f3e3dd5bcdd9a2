"""What a node draws and how fast its pods get on, each time something changes there: the plant's formulas, compiled.

Power is constant between two changes of a node, so energy is exact whatever the step.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, formula, inlined
from joulie.lab.kernels.completions import put_end
from joulie.lab.kernels.group_meters import change_groups
from joulie.lab.kernels.world import ABSENT, LOAD, WATT, World
from joulie.plant import curves, gpus, thermals, work
from joulie.plant.fleet import REST_PER_CPU_W, REST_PER_GPU_W
from joulie.plant.machines import GPU_FREQUENCY_FLOOR
from joulie.plant.thermals import CPU_THERMALS, DESIGN_INLET_C, GPU_THERMALS

CPU_RISE_C = CPU_THERMALS.at_max_c - DESIGN_INLET_C  # at maximum power
GPU_RISE_C = GPU_THERMALS.at_max_c - DESIGN_INLET_C
CPU_TAU_S, GPU_TAU_S = CPU_THERMALS.tau_s, GPU_THERMALS.tau_s
POINTS = 100  # of a curve's table
BOARD_CURVE = 0  # where the curve of GPU boards begins in it

frequency_for = formula(curves.frequency_for)
power_at = formula(curves.power_at)
throttled_frequency = formula(thermals.throttled_frequency)
board_demand_w = formula(gpus.board_demand_w)
limit_share = formula(gpus.limit_share)
held_w = formula(gpus.held_w)
cpu_speed = formula(work.cpu_speed)
feeding = formula(work.feeding)
felt_speed = formula(work.felt_speed)


@compiled
def from_curve(world: World, first: int, load: float) -> float:
    """A curve of the table at a load from 0 to 1."""
    percent = load * POINTS
    whole = int(percent)
    return world.curves[0, first + whole] + (percent - whole) * world.curves[1, first + whole]


@compiled
def from_sweep(world: World, sweep: int, what: int, share: float) -> float:
    """Linear between the points that were measured, held at the ends, as np.interp has it."""
    shares, values = world.sweeps[sweep, 0], world.sweeps[sweep, what]
    if share <= shares[0]:
        return values[0]
    for place in range(1, len(shares)):
        if share < shares[place]:
            slope = (values[place] - values[place - 1]) / (shares[place] - shares[place - 1])
            return slope * (share - shares[place - 1]) + values[place - 1]
    return values[-1]


@compiled
def cpu_power(world: World, node: int, throttle: float) -> tuple[float, float, float]:
    """What the load would draw, the frequency that cap and heat leave, and what is drawn at it."""
    nodes = world.nodes
    load = nodes[node].load / (LOAD * nodes[node].mcores)
    demand_w = nodes[node].cpu_max_w * from_curve(world, nodes[node].curve_at, min(1.0, load))
    idle_w, floor = nodes[node].cpu_idle_w, nodes[node].cpu_floor
    frequency = 1.0
    if nodes[node].cpu_cap_w < demand_w:
        frequency = min(frequency, frequency_for(nodes[node].cpu_cap_w, idle_w, demand_w, floor))
    if throttle > 0:
        frequency = min(frequency, throttled_frequency(throttle, floor))
    drawn_w = demand_w if frequency >= 1.0 else power_at(frequency, idle_w, demand_w)
    return demand_w, frequency, drawn_w


@compiled
def board_power(world: World, node: int, pod: int, fed: float, throttle: float) -> tuple[float, float, float]:
    """Of each board that a pod holds: uncapped draw, draw, and speed over uncapped."""
    nodes = world.nodes
    load = world.pods[pod].gpu_utilisation * fed
    shape = from_curve(world, BOARD_CURVE, load)
    demand_w = board_demand_w(nodes[node].gpu_max_w, shape)
    drawn_w, speed = demand_w, 1.0
    share = limit_share(nodes[node].gpu_cap_w, demand_w)
    if share < 1.0:
        sweep = nodes[node].sweep
        slowdown, power = from_sweep(world, sweep, 1, share), from_sweep(world, sweep, 2, share)
        drawn_w = held_w(demand_w, power, nodes[node].gpu_cap_w, nodes[node].gpu_idle_w)
        speed = 1.0 / slowdown
    if throttle > 0:
        left = throttled_frequency(throttle, GPU_FREQUENCY_FLOOR)
        drawn_w = power_at(left, nodes[node].gpu_idle_w, drawn_w)
        speed *= left
    return demand_w, drawn_w, fed * speed


@compiled
def warm_up(world: World, node: int) -> None:
    """Brings how warm the devices are above their air up to now."""
    nodes, now_s = world.nodes, world.run.now_s
    dt_s = now_s - nodes[node].warm_at_s
    if dt_s <= 0:
        return
    towards_c = CPU_RISE_C * nodes[node].cpu_w / nodes[node].cpu_max_w
    nodes[node].cpu_warm_c = towards_c + (nodes[node].cpu_warm_c - towards_c) * np.exp(-dt_s / CPU_TAU_S)
    if nodes[node].gpus > 0:
        towards_c = GPU_RISE_C * nodes[node].hottest_w / nodes[node].gpu_max_w
        nodes[node].gpu_warm_c = towards_c + (nodes[node].gpu_warm_c - towards_c) * np.exp(-dt_s / GPU_TAU_S)
    nodes[node].warm_at_s = now_s


@compiled
def set_wall(world: World, node: int, wall_w: float) -> None:
    """Another power at the wall from now on: meters are read first."""
    nodes, zones, now_s = world.nodes, world.zones, world.run.now_s
    wall = int(np.rint(wall_w * WATT))
    if wall == nodes[node].wall:
        return
    zone = nodes[node].zone
    read_zone(world, zone)
    nodes[node].energy_j += nodes[node].wall / WATT * (now_s - nodes[node].metered_at_s)
    nodes[node].metered_at_s = now_s
    zones[zone].wall += wall - nodes[node].wall
    if world.run.has_groups:
        change_groups(world, node, wall - nodes[node].wall)
    nodes[node].wall = wall


@compiled
def read_zone(world: World, zone: int) -> None:
    zones, now_s = world.zones, world.run.now_s
    zones[zone].step_j += zones[zone].wall / WATT * (now_s - zones[zone].since_s)
    zones[zone].since_s = now_s


@compiled
def refresh(world: World, node: int) -> None:
    """Power of a node and the pace of its pods, after anything changed there."""
    nodes, pods, run = world.nodes, world.pods, world.run
    warm_up(world, node)
    if nodes[node].asleep:
        nodes[node].cpu_w = nodes[node].gpu_w = nodes[node].hottest_w = 0.0
        set_wall(world, node, run.sleep_w)
        return
    demand_w, frequency, drawn_w = cpu_power(world, node, nodes[node].cpu_throttle)
    was_frequency, nodes[node].frequency, nodes[node].cpu_w = nodes[node].frequency, frequency, drawn_w
    boards_w = boards_demand_w = hottest_w = 0.0
    idle_boards = nodes[node].gpus
    as_before = is_as_before(world, node)
    slowed = (frequency < 1.0 or was_frequency < 1.0) and not as_before
    pod = nodes[node].first_pod if slowed or idle_boards > 0 else ABSENT
    while pod != ABSENT:
        if pods[pod].runs:
            held = world.shapes[pods[pod].shape].gpus
            if not as_before or not pods[pod].is_paced:
                pace(world, node, pod, held)
            if held > 0:
                boards_w += pods[pod].boards_w
                boards_demand_w += pods[pod].boards_demand_w
                hottest_w = max(hottest_w, pods[pod].board_w)
                idle_boards -= held
        pod = pods[pod].after
    nodes[node].kept_frequency = frequency if nodes[node].gpu_throttle == 0.0 else np.nan
    nodes[node].kept_cap_w = nodes[node].gpu_cap_w
    if nodes[node].gpus > 0:
        idle_w = nodes[node].gpu_idle_w
        boards_w += idle_boards * idle_w
        boards_demand_w += idle_boards * idle_w
        nodes[node].gpu_w = boards_w
        nodes[node].hottest_w = max(hottest_w, idle_w)
    wall_w = drawn_w + boards_w + REST_PER_CPU_W * demand_w + REST_PER_GPU_W * boards_demand_w
    if run.now_s < nodes[node].ready_s:
        wall_w += run.wake_energy_j / run.wake_s
    set_wall(world, node, wall_w)
    above = drawn_w > nodes[node].cpu_cap_w + 1e-6 or nodes[node].hottest_w > nodes[node].gpu_cap_w + 1e-6
    if above != nodes[node].violating:
        count_seconds(world)
        run.violations += 1 if above else -1
        nodes[node].violating = above


@inlined
def is_as_before(world: World, node: int) -> bool:
    """All that the pace of a pod depends on is what it was when pods were last paced; never so while boards are hot."""
    here = world.nodes[node]
    same: bool = (
        here.frequency == here.kept_frequency and here.gpu_cap_w == here.kept_cap_w and here.gpu_throttle == 0.0
    )
    return same


@compiled
def pace(world: World, node: int, pod: int, held: int) -> None:
    """What the boards of a pod draw, and how fast it gets on."""
    here, frequency, gpu_speed = world.pods[pod], world.nodes[node].frequency, 1.0
    if held > 0:
        fed = feeding(frequency, here.feed_intensity)
        demand_w, here.board_w, gpu_speed = board_power(world, node, pod, fed, world.nodes[node].gpu_throttle)
        here.boards_w, here.boards_demand_w = held * here.board_w, held * demand_w
    here.is_paced = True
    set_pace(world, node, pod, frequency, gpu_speed)


@compiled
def set_pace(world: World, node: int, pod: int, frequency: float, gpu_speed: float) -> None:
    """Share of its work that a pod does a second: as fast as the slower of its devices."""
    nodes, pods = world.nodes, world.pods
    rate = pods[pod].cpu_rate * nodes[node].core_speed
    if frequency < 1.0:
        cpu = cpu_speed(frequency, pods[pod].memory_intensity, pods[pod].io_intensity)
        rate *= felt_speed(cpu, pods[pod].cpu_sensitivity)
    if pods[pod].gpu_rate < np.inf:
        felt = felt_speed(gpu_speed, pods[pod].gpu_sensitivity)
        rate = min(rate, pods[pod].gpu_rate * nodes[node].gpu_speed * felt)
    if rate != pods[pod].rate:
        pods[pod].rate = rate
        set_end(world, pods[pod].job)


@compiled
def set_end(world: World, job: int) -> None:
    """A job gets on as fast as its slowest pod; what is done is done at the old pace."""
    jobs, now_s = world.jobs, world.run.now_s
    rate = np.inf
    for pod in range(jobs[job].first_pod, jobs[job].last_pod):
        rate = min(rate, world.pods[pod].rate)
    if rate == jobs[job].rate:
        return
    jobs[job].left = max(0.0, jobs[job].left - jobs[job].rate * (now_s - jobs[job].since_s))
    jobs[job].since_s, jobs[job].rate = now_s, rate
    jobs[job].end_s = now_s + jobs[job].left / rate if rate > 0 else np.inf
    put_end(world, job)


@compiled
def count_seconds(world: World) -> None:
    """Adds up how long nodes were above a cap or too hot, before one more or less is."""
    run = world.run
    dt_s = run.now_s - run.counted_at_s
    run.violation_s += run.violations * dt_s
    for zone in range(len(world.zones)):
        run.throttled_s += world.zones[zone].throttled * dt_s
    run.counted_at_s = run.now_s
