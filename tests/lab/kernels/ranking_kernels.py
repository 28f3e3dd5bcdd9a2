"""Compiled code that holds what is kept of the nodes' ranks to a look at all of them."""

from __future__ import annotations

from joulie.lab.kernels.compiling import compiled, entry
from joulie.lab.kernels.placement.ranking import may_run, scanned_best, times
from joulie.lab.kernels.placement.slots import slots_in_all
from joulie.lab.kernels.placement.trees import best_but, kept_best
from joulie.lab.kernels.queue.start import HIDDEN, MAX_BESIDE
from joulie.lab.kernels.world import ABSENT, World


@compiled
def finds_the_best(world: World, shape: int) -> bool:
    """The best node, and the next best where the best ones are left out."""
    nodes, masked, same = world.nodes, 0, True
    best = kept_best(world, shape)
    while same:
        same = best == scanned_best(world, shape)
        if best == ABSENT or masked == MAX_BESIDE:
            break
        nodes[best].free_mcores -= HIDDEN
        world.masked[masked] = best
        masked += 1
        best = best_but(world, shape, masked)
    for place in range(masked):
        nodes[world.masked[place]].free_mcores += HIDDEN
    return same


@entry
def first_difference(world: World) -> int:
    """The first shape whose best nodes, or number of free places, are others than a full scan finds; or −1."""
    nodes, shapes = world.nodes, world.shapes
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
