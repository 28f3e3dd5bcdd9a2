"""How good a node is for eight shapes at once: `value` of `ranking`, lane by lane and without branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from joulie.control.scoring import NEUTRAL_SCORE
from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.placement.ranking import (
    DRAINING_CODE,
    ECO_CODE,
    NO,
    headroom_after,
    marginal_power_w,
    share,
    total_score,
    whole_points,
)
from joulie.lab.kernels.vectors import all_of, either, line_at, set_line
from joulie.lab.kernels.world import JOULIE, MOST, World

CORES, MCORES, GPUS, PERFORMANCE = range(4)  # rows of a block's lanes
ORDERS = 1 << 24  # more than there are nodes


@compiled
def grade(world: World, block: int, node: int) -> bool:
    """The leaf of a node in the tree of a block; whether that is new."""
    ranking = world.run.ranking
    if ranking == JOULIE:
        leaf = by_score(world, block, node)
    else:
        leaf = by_use(world, block, node, 1.0 if ranking == MOST else -1.0)
    is_new: bool = set_line(world.tree[block, node], leaf)
    return is_new


@inlined
def free_now(world: World, node: int) -> float:
    """Thousandths of cores for a pod that could start now."""
    here = world.nodes[node]
    return -np.inf if here.asleep or here.ready_s > world.run.now_s else float(here.free_mcores)


@inlined
def has_room(world: World, block: int, node: int, free: float) -> Any:
    """Where a pod fits and is let in: pods of class performance are kept off some nodes."""
    here = world.nodes[node]
    is_barred = 1.0 if here.class_code in (ECO_CODE, DRAINING_CODE) else 0.0
    return all_of(
        free >= line_at(world.wants[here.sort, block]),
        float(here.free_gpus) >= asked(world, block, GPUS),
        asked(world, block, PERFORMANCE) + is_barred < 2.0,
    )


@inlined
def asked(world: World, block: int, what: int) -> Any:
    """By the shapes of a block."""
    return line_at(world.lanes[block, what])


@inlined
def by_score(world: World, block: int, node: int) -> Any:
    """Points are whole, so that the node's own number goes with them: of equals the first is the best."""
    here, run = world.nodes[node], world.run
    standard, performance = here.rest_standard, here.rest_performance
    headroom, points_per_w = here.headroom, here.points_per_w
    if not run.known:  # the numbers make the neutral score
        headroom, points_per_w, standard, performance = 0.0, 0.0, NEUTRAL_SCORE, NEUTRAL_SCORE
    performs = asked(world, block, PERFORMANCE) > 0.0
    watts = marginal_power_w(
        share(asked(world, block, CORES), here.inverse_cores),
        share(asked(world, block, GPUS), here.inverse_gpus),
        here.cpu_full_w,
        either(performs, here.gpu_full_performance_w, here.gpu_full_standard_w),
    )
    score = total_score(headroom_after(headroom, watts, points_per_w), either(performs, performance, standard))
    points = whole_points(score, float(run.score_max))
    return either(has_room(world, block, node, free_now(world, node)), points * float(ORDERS) - float(node), NO)


@inlined
def by_use(world: World, block: int, node: int, sign: float) -> Any:
    here = world.nodes[node]
    gpus = asked(world, block, GPUS)
    used = 1.0 - (float(here.free_mcores) - asked(world, block, MCORES)) / float(here.mcores)
    both = 0.5 * (used + 1.0 - (float(here.free_gpus) - gpus) / float(here.gpus))
    fits = has_room(world, block, node, free_now(world, node))
    return either(fits, sign * either(gpus > 0.0, both, used), NO)
