"""How good a node is for eight shapes at once: `value` of `ranking_kernel`, lane by lane and without branches."""

from __future__ import annotations

import numpy as np

from joulie.control.scoring import NEUTRAL_SCORE
from joulie.lab.compiling import compiled, inlined
from joulie.lab.lines_kernel import replace_share
from joulie.lab.memory_kernel import (
    lanes_of,
    nodes_of,
    run_of,
    slots_of,
    slots_on_row_at,
    slots_row_at,
    tree_of,
    wants_of,
)
from joulie.lab.ranking_kernel import (
    DRAINING_CODE,
    ECO_CODE,
    NO,
    headroom_after,
    marginal_power_w,
    share,
    total_score,
    wire_points,
)
from joulie.lab.world import JOULIE, MOST, World

CORES, MCORES, GPUS, PERFORMANCE = range(4)  # rows of a block's lanes
PLENTY = float(1 << 20)  # pods that ask for nothing


@compiled
def grade(world: World, block: int, node: int) -> None:
    """The leaf of a node in the tree of a block."""
    if run_of(world).ranking == JOULIE:
        grade_by_score(world, block, node)
    else:
        grade_by_use(world, block, node, 1.0 if run_of(world).ranking == MOST else -1.0)


@inlined
def free_now(world: World, node: int) -> float:
    """Thousandths of cores for who could begin now."""
    here = nodes_of(world)[node]
    return -np.inf if here.asleep or here.ready_s > run_of(world).now_s else float(here.free_mcores)


@inlined
def is_barred(world: World, node: int) -> float:
    """1 where pods of class performance are kept off."""
    code = nodes_of(world)[node].class_code
    return 1.0 if code in (ECO_CODE, DRAINING_CODE) else 0.0


@inlined
def has_room(free: float, wanted: float, free_gpus: float, wanted_gpus: float, both_classes: float) -> bool:
    """Whether a pod fits and is let in; `both_classes` is 2 where it is of class performance and kept off."""
    return (free >= wanted) & (free_gpus >= wanted_gpus) & (both_classes < 2.0)


@compiled
def grade_by_score(world: World, block: int, node: int) -> None:
    here, score_max = nodes_of(world)[node], run_of(world).score_max
    asks, wants, leaf = lanes_of(world)[block], wants_of(world)[here.sort, block], tree_of(world)[block, node]
    free, free_gpus, barred = free_now(world, node), float(here.free_gpus), is_barred(world, node)
    inverse_cores, inverse_gpus, cpu_full_w = here.inverse_cores, here.inverse_gpus, here.cpu_full_w
    standard_w, performance_w = here.gpu_full_standard_w, here.gpu_full_performance_w
    standard, performance = here.rest_standard, here.rest_performance
    headroom, points_per_w = here.headroom, here.points_per_w
    if not run_of(world).known:  # the numbers make the neutral score
        headroom, points_per_w, standard, performance = 0.0, 0.0, NEUTRAL_SCORE, NEUTRAL_SCORE
    for lane in range(len(leaf)):
        performs = asks[PERFORMANCE, lane] > 0.0
        watts = marginal_power_w(
            share(asks[CORES, lane], inverse_cores),
            share(asks[GPUS, lane], inverse_gpus),
            cpu_full_w,
            performance_w if performs else standard_w,
        )
        rest = performance if performs else standard
        points = wire_points(total_score(headroom_after(headroom, watts, points_per_w), rest), score_max)
        fits = has_room(free, wants[lane], free_gpus, asks[GPUS, lane], asks[PERFORMANCE, lane] + barred)
        leaf[lane] = points if fits else NO


@compiled
def grade_by_use(world: World, block: int, node: int, sign: float) -> None:
    here = nodes_of(world)[node]
    asks, wants, leaf = lanes_of(world)[block], wants_of(world)[here.sort, block], tree_of(world)[block, node]
    free, free_gpus, barred = free_now(world, node), float(here.free_gpus), is_barred(world, node)
    free_mcores, mcores, gpus = float(here.free_mcores), float(here.mcores), float(here.gpus)
    for lane in range(len(leaf)):
        used = 1.0 - (free_mcores - asks[MCORES, lane]) / mcores
        both = 0.5 * (used + 1.0 - (free_gpus - asks[GPUS, lane]) / gpus)
        fits = has_room(free, wants[lane], free_gpus, asks[GPUS, lane], asks[PERFORMANCE, lane] + barred)
        leaf[lane] = sign * (both if asks[GPUS, lane] > 0.0 else used) if fits else NO


@compiled
def count_slots(world: World, block: int, node: int) -> None:
    """How many pods of each shape fit on the node, and on all nodes. A quotient is exact enough to be cut off."""
    here = nodes_of(world)[node]
    asks, wants, now = lanes_of(world)[block], wants_of(world)[here.sort, block], slots_of(world)[block, 1]
    free = -np.inf if here.asleep else float(here.free_mcores)
    free_gpus, barred = float(here.free_gpus), is_barred(world, node)
    for lane in range(len(now)):
        by_mcores = np.floor(free / asks[MCORES, lane]) if asks[MCORES, lane] > 0.0 else PLENTY
        by_gpus = np.floor(free_gpus / asks[GPUS, lane]) if asks[GPUS, lane] > 0.0 else PLENTY
        fits = has_room(free, wants[lane], free_gpus, asks[GPUS, lane], asks[PERFORMANCE, lane] + barred)
        now[lane] = min(by_mcores, by_gpus) if fits else 0.0
    replace_share(slots_row_at(world, block, 0), slots_on_row_at(world, block, node), slots_row_at(world, block, 1))
