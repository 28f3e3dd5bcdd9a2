"""How good a node is for a pod, by each way to rank, and the choices that look at all nodes.

The full scan (`scanned_best`) is the definition that kept trees are tested against: the highest value, of equals the
first.
"""

from __future__ import annotations

import numpy as np

from joulie.control import scoring
from joulie.control.scoring import CLASS_CODES
from joulie.lab.kernels.compiling import compiled, formula, inlined
from joulie.lab.kernels.world import ABSENT, GIVEN, JOULIE, LEAST, MOST, WATT, World
from joulie.lab.model.jobs import ANY_MODEL
from joulie.model.names import DRAINING, ECO
from joulie.physics import marginal

NO = -np.inf
ECO_CODE, DRAINING_CODE = CLASS_CODES[ECO], CLASS_CODES[DRAINING]
TRIES = 64  # of a random choice, before all nodes are looked at

share = formula(marginal.share)
marginal_power_w = formula(marginal.marginal_power_w)
headroom_before = formula(scoring.headroom_before)
headroom_after = formula(scoring.headroom_after)
total_score = formula(scoring.total_score)
whole_points = formula(scoring.whole_points)


@inlined
def fits(world: World, shape: int, node: int) -> bool:
    """There is room now, on hardware that the pod takes, and the filter lets it."""
    nodes, shapes = world.nodes, world.shapes
    return (
        nodes[node].free_mcores >= shapes[shape].mcores
        and nodes[node].free_gpus >= shapes[shape].gpus
        and may_run(world, shape, node)
    )


@inlined
def may_run(world: World, shape: int, node: int) -> bool:
    """Whatever runs there now."""
    nodes, shapes = world.nodes, world.shapes
    if shapes[shape].gpus == 0:
        if not nodes[node].takes_cpu_work:
            return False
    elif shapes[shape].gpu_model != ANY_MODEL and shapes[shape].gpu_model != nodes[node].gpu_model:
        return False
    if shapes[shape].performance:
        code = nodes[node].class_code
        if code in (ECO_CODE, DRAINING_CODE):
            return False
    return nodes[node].mcores >= shapes[shape].mcores and nodes[node].gpus >= shapes[shape].gpus


@compiled
def pod_power_w(
    world: World, shape: int, node: int, cpu_full_w: float, gpu_standard_w: float, gpu_performance_w: float
) -> float:
    """What a pod of the shape adds, by the twin's formula."""
    nodes, shapes = world.nodes, world.shapes
    return marginal_power_w(
        share(shapes[shape].mcores / 1000.0, nodes[node].inverse_cores),
        share(float(shapes[shape].gpus), nodes[node].inverse_gpus),
        cpu_full_w,
        gpu_performance_w if shapes[shape].performance else gpu_standard_w,
    )


@inlined
def joulie_points(world: World, shape: int, node: int) -> float:
    """What the extender would answer."""
    nodes = world.nodes
    if not world.run.known:
        return whole_points(scoring.NEUTRAL_SCORE, world.run.score_max)
    watts = pod_power_w(
        world,
        shape,
        node,
        nodes[node].cpu_full_w,
        nodes[node].gpu_full_standard_w,
        nodes[node].gpu_full_performance_w,
    )
    rest = nodes[node].rest_performance if world.shapes[shape].performance else nodes[node].rest_standard
    score = total_score(headroom_after(nodes[node].headroom, watts, nodes[node].points_per_w), rest)
    return whole_points(score, world.run.score_max)


@compiled
def set_recent(world: World, node: int, recent: int) -> None:
    """What pods add there that the twin has not seen."""
    nodes = world.nodes
    nodes[node].recent = recent
    nodes[node].headroom = headroom_before(
        nodes[node].capped_w, nodes[node].measured_w, recent / WATT, 0.0, nodes[node].budget_w
    )


@compiled
def used_share(world: World, shape: int, node: int) -> float:
    """The share of the node that would be in use with the pod, mean over what it asks for."""
    nodes, shapes = world.nodes, world.shapes
    used = 1.0 - (nodes[node].free_mcores - shapes[shape].mcores) / nodes[node].mcores
    if shapes[shape].gpus == 0:
        return used
    return 0.5 * (used + 1.0 - (nodes[node].free_gpus - shapes[shape].gpus) / nodes[node].gpus)


@inlined
def value(world: World, shape: int, node: int) -> float:
    """How good a node is for the pod among those that fit; NO where it does not."""
    if world.nodes[node].asleep or world.nodes[node].ready_s > world.run.now_s or not fits(world, shape, node):
        return NO
    return rank_value(world, shape, node)


@inlined
def rank_value(world: World, shape: int, node: int) -> float:
    ranking = world.run.ranking
    if ranking == JOULIE:
        return joulie_points(world, shape, node)
    if ranking == LEAST:
        return -used_share(world, shape, node)
    if ranking == MOST:
        return used_share(world, shape, node)
    if ranking == GIVEN:
        return world.given[shape, node]
    return 0.0


@inlined
def times(world: World, shape: int, free_mcores: int, free_gpus: int) -> int:
    """How many pods of a shape fit into so much."""
    shapes = world.shapes
    by_gpus = by_mcores = 1 << 20
    if shapes[shape].mcores > 0:
        by_mcores = free_mcores // shapes[shape].mcores
    if shapes[shape].gpus > 0:
        by_gpus = free_gpus // shapes[shape].gpus
    return max(0, min(by_mcores, by_gpus))


@compiled
def scanned_best(world: World, shape: int) -> int:
    best, best_value = ABSENT, NO
    for node in range(len(world.nodes)):
        here = value(world, shape, node)
        if here > best_value:
            best, best_value = node, here
    return best


@compiled
def random_best(world: World, shape: int, pod: int) -> int:
    """Any node that fits, each with the same chance; by seed and pod alone."""
    count = len(world.nodes)
    state = world.run.seed ^ (np.uint64(pod) * np.uint64(0x9E3779B97F4A7C15))
    for _ in range(TRIES):
        state = next_random(state)
        node = int(state >> np.uint64(11)) % count
        if value(world, shape, node) > NO:
            return node
    fitting = 0
    for node in range(count):
        fitting += value(world, shape, node) > NO
    if fitting == 0:
        return ABSENT
    state = next_random(state)
    wanted = int(state >> np.uint64(11)) % fitting
    for node in range(count):
        if value(world, shape, node) > NO:
            if wanted == 0:
                return node
            wanted -= 1
    return ABSENT


@compiled
def next_random(state: np.uint64) -> np.uint64:
    """splitmix64."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def best_not_ready(world: World, shape: int) -> int:
    """The node to wait for: one that wakes already, else one to switch on."""
    nodes, now_s = world.nodes, world.run.now_s
    best, best_value, best_wakes = ABSENT, NO, False
    for node in range(len(nodes)):
        wakes = nodes[node].ready_s > now_s
        if (wakes or nodes[node].asleep) and fits(world, shape, node):
            here = rank_value(world, shape, node)
            if (wakes and not best_wakes) or (wakes == best_wakes and here > best_value):
                best, best_value, best_wakes = node, here, wakes
    return best
