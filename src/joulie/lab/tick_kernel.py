"""What a tick changes in the world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.control import scoring
from joulie.lab.compiling import entry, formula, inlined
from joulie.lab.memory_kernel import nodes_of, run_of
from joulie.lab.plant_kernel import plant_step
from joulie.lab.power_kernel import refresh
from joulie.lab.ranking_kernel import set_recent
from joulie.lab.world import WATT, Flags, Numbers, World
from joulie.physics import power

static_power_w = formula(power.static_power_w)
is_believable = formula(power.is_believable)
other_terms = formula(scoring.other_terms)


@entry
def set_caps(world: World, rows: NDArray[np.int64], cpu_w: Numbers, gpu_w: Numbers) -> None:
    """New caps, already within the hardware's range."""
    for place in range(len(rows)):
        node = rows[place]
        nodes_of(world)[node].cpu_cap_w = cpu_w[place]
        nodes_of(world)[node].gpu_cap_w = gpu_w[place]
        refresh(world, node)


@entry
def read_meters(world: World, drawn_w: Numbers) -> None:
    """What packages and boards draw now, which caps act on."""
    for node in range(len(drawn_w)):
        drawn_w[node] = drawn_now_w(world, node)


@inlined
def drawn_now_w(world: World, node: int) -> float:
    drawn_w: float = nodes_of(world)[node].cpu_w + nodes_of(world)[node].gpu_w
    return drawn_w


@entry
def measure(
    world: World, reading_w: Numbers, limits: tuple[Numbers, ...], measured_w: Numbers, is_static: Flags, error: Numbers
) -> None:
    """The best tier that speaks for each node, and how far from the truth that is. No reading at all has no length."""
    nodes, (capped_w, idle_w, max_w) = nodes_of(world), limits
    for node in range(len(nodes)):
        measured_w[node] = static_power_w(capped_w[node], idle_w[node], nodes[node].bound / WATT)
        is_static[node] = True
        if len(reading_w) > 0 and is_believable(reading_w[node], max_w[node]):
            measured_w[node], is_static[node] = reading_w[node], False
        error[node] = abs(measured_w[node] - drawn_now_w(world, node)) / max_w[node]


@entry
def count_nodes(world: World, class_code: int) -> tuple[int, int]:
    """How many are of a class, and how many sleep."""
    nodes, of_class, asleep = nodes_of(world), 0, 0
    for node in range(len(nodes)):
        of_class += nodes[node].class_code == class_code
        asleep += nodes[node].asleep
    return of_class, asleep


@entry
def foresee(world: World, predicted: tuple[Numbers, ...]) -> None:
    """What the extender knows until caps, classes or cooling change."""
    capped_w, budget_w, points_per_w, cpu_w, gpu_standard_w, gpu_performance_w = predicted
    nodes = nodes_of(world)
    for node in range(len(nodes)):
        nodes[node].capped_w, nodes[node].budget_w = capped_w[node], budget_w[node]
        nodes[node].points_per_w, nodes[node].cpu_full_w = points_per_w[node], cpu_w[node]
        nodes[node].gpu_full_standard_w = gpu_standard_w[node]
        nodes[node].gpu_full_performance_w = gpu_performance_w[node]


@entry
def hand_over(
    world: World, measured_w: Numbers, trend: Numbers, cooling_stress: Numbers, scale: float, pressure: float
) -> None:
    """What the extender knows until the next tick. No pod was bound since."""
    nodes = nodes_of(world)
    for node in range(len(nodes)):
        nodes[node].measured_w = measured_w[node]
        set_recent(world, node, 0)
        terms = other_terms(cooling_stress[node], trend[node], scale, nodes[node].class_code, pressure)
        nodes[node].rest_standard, nodes[node].rest_performance = terms.standard, terms.performance


@entry
def close_meters(world: World) -> None:
    """Reads every meter now; the plant's last step may be a short one."""
    run, nodes = run_of(world), nodes_of(world)
    dt_s = run.now_s - run.steps * run.step_s
    if dt_s > 0:
        plant_step(world, dt_s)
    for node in range(len(nodes)):
        nodes[node].energy_j += nodes[node].wall / WATT * (run.now_s - nodes[node].metered_at_s)
        nodes[node].metered_at_s = run.now_s


def recap(world: World, rows: NDArray[np.int64], cpu_pct: Numbers, gpu_pct: Numbers) -> None:
    """Caps in percent of the maximum, as the agent turns them into watts: 100 % is none."""
    nodes = world.nodes[rows]
    cpu_w, gpu_w = nodes["cpu_max_w"] * cpu_pct / 100.0, nodes["gpu_max_w"] * gpu_pct / 100.0
    set_caps(world.address, rows, cpu_w, np.where(nodes["gpus"] > 0, gpu_w, nodes["gpu_max_w"]))
