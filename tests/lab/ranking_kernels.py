"""Compiled code that holds what is kept of the nodes' ranks to a look at all of them."""

from __future__ import annotations

from joulie.lab.compiling import compiled, entry
from joulie.lab.memory_kernel import masked_of, nodes_of, shapes_of
from joulie.lab.queue_kernel import HIDDEN, MOST_BESIDE
from joulie.lab.ranking_kernel import may_run, scanned_best, times
from joulie.lab.slots_kernel import slots_in_all
from joulie.lab.trees_kernel import best_but, kept_best
from joulie.lab.world import NOBODY, World


@compiled
def finds_the_best(world: World, shape: int) -> bool:
    """The best node, and the next best where the best ones are left out."""
    nodes, masked, same = nodes_of(world), 0, True
    best = kept_best(world, shape)
    while same:
        same = best == scanned_best(world, shape)
        if best == NOBODY or masked == MOST_BESIDE:
            break
        nodes[best].free_mcores -= HIDDEN
        masked_of(world)[masked] = best
        masked += 1
        best = best_but(world, shape, masked)
    for place in range(masked):
        nodes[masked_of(world)[place]].free_mcores += HIDDEN
    return same


@entry
def first_difference(world: World) -> int:
    """The first shape whose best nodes, or number of free places, are others than a full scan finds; or −1."""
    nodes, shapes = nodes_of(world), shapes_of(world)
    for shape in range(len(shapes)):
        if not finds_the_best(world, shape):
            return shape
        if shapes[shape].in_gangs:
            slots = 0
            for node in range(len(nodes)):
                if not nodes[node].asleep and may_run(world, shape, node):
                    slots += times(world, shape, nodes[node].free_mcores, nodes[node].free_gpus)
            if slots != slots_in_all(world, shape):
                return shape
    return -1
