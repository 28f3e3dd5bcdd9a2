"""The best node for a pod: kept for each shape of pods, and brought up to date only where a node has changed.

Eight shapes share a tree of winners above the nodes (see `lanes`); a changed node costs eight values and the way to
the root, as far as something changes there. A block that was not asked for meanwhile reads the list of changes, or
ranks all nodes anew where that is shorter. The tree holds values alone: the node with the best one is found on the way
down.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled, inlined
from joulie.lab.kernels.placement.grading import ORDERS, grade
from joulie.lab.kernels.placement.ranking import NO, random_best, scanned_best
from joulie.lab.kernels.vectors import line_at, set_line
from joulie.lab.kernels.world import ABSENT, FAN, GIVEN, JOULIE, RANDOM, World


@compiled
def best_node(world: World, shape: int, pod: int) -> int:
    """The node that the ranking takes among those that are awake; ABSENT where none fits."""
    if world.run.ranking == RANDOM:
        return random_best(world, shape, world.pods[pod].number)
    if not is_kept(world) or world.run.ranking == GIVEN:
        return scanned_best(world, shape)
    return kept_best(world, shape)


@compiled
def kept_best(world: World, shape: int) -> int:
    """The same, from the tree of the shape."""
    catch_up(world, shape)
    top = len(world.levels) - 1
    tree, lane = world.tree[world.shapes[shape].block], world.shapes[shape].lane
    best = tree[world.levels[top], lane]
    return ABSENT if best == NO else first_below(world, shape, top, 0, best)


@compiled
def first_below(world: World, shape: int, level: int, place: int, best: float) -> int:
    """The first node below a place of a tree that has its value."""
    if world.run.ranking == JOULIE:
        return -int(best) & (ORDERS - 1)  # the value itself says whose it is
    tree, levels, lane = world.tree[world.shapes[shape].block], world.levels, world.shapes[shape].lane
    for below in range(level - 1, -1, -1):
        place *= FAN
        while tree[levels[below] + place, lane] != best:
            place += 1
    return place


@compiled
def best_but(world: World, shape: int, count: int) -> int:
    """The best node but those that are masked: the best of what stands beside their ways to the root."""
    tree, levels, lane = world.tree[world.shapes[shape].block], world.levels, world.shapes[shape].lane
    best, best_level, best_place, best_node = NO, 0, ABSENT, ABSENT
    for masked in world.masked[:count]:
        way, width = masked, 1
        for level in range(len(levels) - 1):
            first = way - way % FAN
            for place in range(first, first + FAN):
                here, node = tree[levels[level] + place, lane], place * width  # the first below it
                is_better = here > best or (here == best and here > NO and node < best_node)
                if is_better and not leads_to_masked(world, node, width, count):
                    best, best_level, best_place, best_node = here, level, place, node
            way, width = way // FAN, width * FAN
    return ABSENT if best_place == ABSENT else first_below(world, shape, best_level, best_place, best)


@inlined
def leads_to_masked(world: World, first: int, width: int, count: int) -> bool:
    """One of these nodes is masked."""
    leads = False
    for masked in world.masked[:count]:
        leads |= first <= masked < first + width
    return leads


@compiled
def fits_somewhere(world: World, shape: int) -> bool:
    """By a tree that has seen all changes."""
    root = world.levels[len(world.levels) - 1]
    found: bool = world.tree[world.shapes[shape].block, root, world.shapes[shape].lane] > NO
    return found


@compiled
def is_kept(world: World) -> bool:
    """Each shape has a tree."""
    kept: bool = len(world.blocks) > 0
    return kept


@compiled
def touch(world: World, node: int) -> None:
    """Something that a rank depends on changed."""
    run = world.run
    world.change[run.changes & (len(world.change) - 1)] = node
    run.changes += 1


@inlined
def changed_node(world: World, change: int) -> int:
    node: int = world.change[change & (len(world.change) - 1)]
    return node


@inlined
def is_far_behind(world: World, seen: int) -> bool:
    """So many changes that to look at all nodes is shorter, or that they are no longer in the ring."""
    behind = world.run.changes - seen
    far: bool = behind > len(world.change) or behind * 4 > len(world.nodes)
    return far


@compiled
def see_again(world: World, shape: int, node: int) -> None:
    """A change that is taken back before any other shape is asked for."""
    if is_kept(world):
        regrade(world, world.shapes[shape].block, node)


@compiled
def regrade(world: World, block: int, node: int) -> None:
    if grade(world, block, node):
        rise_from(world, block, node)


@inlined
def catch_up(world: World, shape: int) -> None:
    """With all that has changed."""
    block = world.shapes[shape].block
    if world.blocks[block].seen != world.run.changes:
        renew(world, block)


@compiled
def renew(world: World, number: int) -> None:
    """The tree of a block, with what has changed, or with all nodes where these are fewer."""
    block, run = world.blocks[number], world.run
    if is_far_behind(world, block.seen):
        for node in range(block.first_node, block.last_node):
            grade(world, number, node)
        rise_from_all(world, number)
    else:
        for change in range(block.seen, run.changes):
            node = changed_node(world, change)
            if block.first_node <= node < block.last_node:
                regrade(world, number, node)
    block.seen = run.changes


@compiled
def rise_from_all(world: World, number: int) -> None:
    """All winners above nodes whose values are new."""
    first, last = world.blocks[number].first_node, world.blocks[number].last_node - 1
    for level in range(len(world.levels) - 1 if first <= last else 0):
        first, last = first // FAN, last // FAN
        for group in range(first, last + 1):
            crown(world, number, level, group)


@compiled
def rise_from(world: World, block: int, node: int) -> None:
    """Winners above a node whose values are new."""
    group = node
    for level in range(len(world.levels) - 1):
        group //= FAN
        if not crown(world, block, level, group):
            return


@inlined
def crown(world: World, block: int, level: int, group: int) -> bool:
    """The best of a few rows that stand side by side, lane by lane; whether that is new."""
    levels = world.levels
    tree, below = world.tree, levels[level] + group * FAN
    best = line_at(tree[block, below])
    for number in range(1, FAN):
        best = np.maximum(best, line_at(tree[block, below + number]))
    is_new: bool = set_line(tree[block, levels[level + 1] + group], best)
    return is_new
