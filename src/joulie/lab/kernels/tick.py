"""What a tick changes in the world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.control.scoring import FOR_ALL, TERMS, ClusterFacts, NodeFacts, facts_at
from joulie.lab.kernels.compiling import entry, formula, inlined, summed
from joulie.lab.kernels.placement.ranking import set_recent
from joulie.lab.kernels.plant import plant_step
from joulie.lab.kernels.power import refresh
from joulie.lab.kernels.world import WATT, Flags, Numbers, World
from joulie.physics import power

static_power_w = formula(power.static_power_w)
is_believable = formula(power.is_believable)
rest_performance = summed([term.points for term in TERMS[:FOR_ALL]])
rest_standard = summed([term.points for term in TERMS])


@entry
def set_caps(world: World, rows: NDArray[np.int64], cpu_w: Numbers, gpu_w: Numbers) -> None:
    """New caps, already within the hardware's range."""
    for place in range(len(rows)):
        node = rows[place]
        world.nodes[node].cpu_cap_w = cpu_w[place]
        world.nodes[node].gpu_cap_w = gpu_w[place]
        refresh(world, node)


@entry
def read_meters(world: World, drawn_w: Numbers) -> None:
    """What packages and boards draw now, which caps act on."""
    for node in range(len(drawn_w)):
        drawn_w[node] = drawn_now_w(world, node)


@inlined
def drawn_now_w(world: World, node: int) -> float:
    drawn_w: float = world.nodes[node].cpu_w + world.nodes[node].gpu_w
    return drawn_w


@entry
def measure(
    world: World, reading_w: Numbers, limits: tuple[Numbers, ...], measured_w: Numbers, is_static: Flags, error: Numbers
) -> None:
    """The best tier that speaks for each node, and how far from the truth that is. No reading at all has no length."""
    nodes, (capped_w, idle_w, max_w) = world.nodes, limits
    for node in range(len(nodes)):
        measured_w[node] = static_power_w(capped_w[node], idle_w[node], nodes[node].bound / WATT)
        is_static[node] = True
        if len(reading_w) > 0 and is_believable(reading_w[node], max_w[node]):
            measured_w[node], is_static[node] = reading_w[node], False
        error[node] = abs(measured_w[node] - drawn_now_w(world, node)) / max_w[node]


@entry
def count_nodes(world: World, class_code: int) -> tuple[int, int]:
    """How many are of a class, and how many sleep."""
    nodes, of_class, asleep = world.nodes, 0, 0
    for node in range(len(nodes)):
        of_class += nodes[node].class_code == class_code
        asleep += nodes[node].asleep
    return of_class, asleep


@entry
def take_predictions(world: World, predicted: tuple[Numbers, ...]) -> None:
    """What the extender knows until caps, classes or cooling change."""
    capped_w, budget_w, points_per_w, cpu_w, gpu_standard_w, gpu_performance_w = predicted
    nodes = world.nodes
    for node in range(len(nodes)):
        nodes[node].capped_w, nodes[node].budget_w = capped_w[node], budget_w[node]
        nodes[node].points_per_w, nodes[node].cpu_full_w = points_per_w[node], cpu_w[node]
        nodes[node].gpu_full_standard_w = gpu_standard_w[node]
        nodes[node].gpu_full_performance_w = gpu_performance_w[node]


@entry
def hand_over(world: World, facts: NodeFacts, cluster: ClusterFacts) -> None:
    """What the extender knows until the next tick. No pod was bound since."""
    nodes = world.nodes
    for node in range(len(nodes)):
        nodes[node].measured_w = facts.measured_w[node]
        set_recent(world, node, 0)
        here = facts_at(facts, node)
        nodes[node].rest_standard = rest_standard(here, cluster)
        nodes[node].rest_performance = rest_performance(here, cluster)


@entry
def close_meters(world: World) -> None:
    """Reads every meter now; the plant's last step may be a short one."""
    run, nodes = world.run, world.nodes
    dt_s = run.now_s - run.steps * run.step_s
    if dt_s > 0:
        plant_step(world, dt_s)
    for node in range(len(nodes)):
        nodes[node].energy_j += nodes[node].wall / WATT * (run.now_s - nodes[node].metered_at_s)
        nodes[node].metered_at_s = run.now_s


def recap(world: World, rows: NDArray[np.int64], cpu_max_w: Numbers, cpu_pct: Numbers, gpu_pct: Numbers) -> None:
    """Caps in percent of the maximum, as the agent turns them into watts: 100 % is none."""
    nodes = world.nodes[rows]
    cpu_w, gpu_w = cpu_max_w * cpu_pct / 100.0, nodes["gpu_max_w"] * gpu_pct / 100.0
    set_caps(world, rows, cpu_w, np.where(nodes["gpus"] > 0, gpu_w, nodes["gpu_max_w"]))
