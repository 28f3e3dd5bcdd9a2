"""How many pods of a shape would fit on all nodes. Only gangs ask, so that it is counted only when one does."""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled, inlined
from joulie.lab.grading_kernel import GPUS, MCORES, asked, has_room
from joulie.lab.lines_kernel import either, line_at, set_line
from joulie.lab.memory_kernel import blocks_of, nodes_of, run_of, shapes_of, slots_of, slots_on_row_at, slots_row_at
from joulie.lab.trees_kernel import changed_node, is_far_behind
from joulie.lab.world import World

PLENTY = float(1 << 20)  # pods that ask for nothing


@compiled
def slots_in_all(world: World, shape: int) -> int:
    number = shapes_of(world)[shape].block
    if blocks_of(world)[number].counted != run_of(world).changes or classes_may_differ(world, number):
        count_again(world, number)
    return int(slots_of(world)[number, shapes_of(world)[shape].lane])


@inlined
def classes_may_differ(world: World, number: int) -> bool:
    """From when slots were counted: a tick may let pods of class performance in, or keep them off."""
    may: bool = blocks_of(world)[number].counted_tick != run_of(world).tick and not run_of(world).one_class
    return may


@compiled
def count_again(world: World, number: int) -> None:
    block, run = blocks_of(world)[number], run_of(world)
    if is_far_behind(world, block.counted) or classes_may_differ(world, number):
        for node in range(block.first_node, block.last_node):
            count_slots(world, number, node)
    else:
        for change in range(block.counted, run.changes):
            node = changed_node(world, change)
            if block.first_node <= node < block.last_node:
                count_slots(world, number, node)
    block.counted, block.counted_tick = run.changes, run.tick


@compiled
def count_slots(world: World, block: int, node: int) -> None:
    """How many pods of each shape fit on the node, and on all nodes. A quotient is exact enough to be cut off."""
    here = nodes_of(world)[node]
    free = -np.inf if here.asleep else float(here.free_mcores)
    mcores, gpus = asked(world, block, MCORES), asked(world, block, GPUS)
    by_mcores = either(mcores > 0.0, np.floor(free / mcores), PLENTY)
    by_gpus = either(gpus > 0.0, np.floor(float(here.free_gpus) / gpus), PLENTY)
    now = either(has_room(world, block, node, free), np.minimum(by_mcores, by_gpus), 0.0)
    total, there = slots_row_at(world, block), slots_on_row_at(world, block, node)
    set_line(total, line_at(total) + (now - line_at(there)))
    set_line(there, now)
