"""Compiled code that holds what is kept of the nodes' ranks to a look at all of them."""

from __future__ import annotations

from joulie.lab.compiling import entry
from joulie.lab.memory_kernel import nodes_of, shapes_of
from joulie.lab.ranking_kernel import may_run, scanned_best
from joulie.lab.trees_kernel import catch_up, kept_best, times
from joulie.lab.world import World


@entry
def first_difference(world: World) -> int:
    """The first shape whose kept best node, or number of free places, is another than a full scan finds; or −1."""
    nodes, shapes = nodes_of(world), shapes_of(world)
    for shape in range(len(shapes)):
        like = shapes[shape].like
        if kept_best(world, like) != scanned_best(world, shape):
            return shape
        if shapes[shape].in_gangs:
            catch_up(world, like)
            slots = 0
            for node in range(len(nodes)):
                if not nodes[node].asleep and may_run(world, shape, node):
                    slots += times(world, shape, nodes[node].free_mcores, nodes[node].free_gpus)
            if slots != shapes[like].slots:
                return shape
    return -1
