"""How many pods of a shape would fit on all nodes. Only gangs ask, so that it is counted only when one does."""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.placement.grading import GPUS, MCORES, asked, has_room
from joulie.lab.kernels.placement.trees import changed_node, is_far_behind
from joulie.lab.kernels.vectors import either, line_at, set_line
from joulie.lab.kernels.world import World

PLENTY = float(1 << 20)  # pods that ask for nothing


@compiled
def slots_in_all(world: World, shape: int) -> int:
    number = world.shapes[shape].block
    if world.blocks[number].counted != world.run.changes or classes_may_differ(world, number):
        count_again(world, number)
    return int(world.slots[number, world.shapes[shape].lane])


@inlined
def classes_may_differ(world: World, number: int) -> bool:
    """From when slots were counted: a tick may let pods of class performance in, or keep them off."""
    may: bool = world.blocks[number].counted_tick != world.run.tick and not world.run.one_class
    return may


@compiled
def count_again(world: World, number: int) -> None:
    block, run = world.blocks[number], world.run
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
    here = world.nodes[node]
    free = -np.inf if here.asleep else float(here.free_mcores)
    mcores, gpus = asked(world, block, MCORES), asked(world, block, GPUS)
    by_mcores = either(mcores > 0.0, np.floor(free / mcores), PLENTY)
    by_gpus = either(gpus > 0.0, np.floor(float(here.free_gpus) / gpus), PLENTY)
    now = either(has_room(world, block, node, free), np.minimum(by_mcores, by_gpus), 0.0)
    total, there = world.slots[block], world.slots_on[block, node]
    set_line(total, line_at(total) + (now - line_at(there)))
    set_line(there, now)
