"""The best node for a pod: kept for each shape of pods, and brought up to date only where a node has changed.

Each shape has a value a node and a tree of winners above them; a changed node costs one value and the way to the root.
A shape that was not asked for meanwhile reads the list of changes, or ranks all nodes anew where that is shorter.
"""

from __future__ import annotations

from joulie.lab.compiling import compiled, inlined
from joulie.lab.memory_kernel import (
    best_of,
    best_value_of,
    change_of,
    leaf_of,
    nodes_of,
    run_of,
    shapes_of,
    slots_on_of,
)
from joulie.lab.ranking_kernel import NO, fits, random_best, scanned_best, value
from joulie.lab.world import GIVEN, NOBODY, RANDOM, Numbers, World


@compiled
def best_node(world: World, shape: int, pod: int) -> int:
    """The node that the ranking takes among those that are awake; NOBODY where none fits."""
    if run_of(world).ranking == RANDOM:
        return random_best(world, shape, pod)
    if not is_kept(world) or run_of(world).ranking == GIVEN:
        return scanned_best(world, shape)
    return kept_best(world, shapes_of(world)[shape].like)


@compiled
def kept_best(world: World, shape: int) -> int:
    """The same, from the tree of the shape."""
    catch_up(world, shape)
    return best_of(world)[shape, 1] if fits_somewhere(world, shape) else NOBODY


@compiled
def fits_somewhere(world: World, shape: int) -> bool:
    """By a tree that has seen all changes."""
    found: bool = best_value_of(world)[shape, 1] > NO
    return found


@compiled
def is_kept(world: World) -> bool:
    """Each shape has a tree."""
    kept: bool = leaf_of(world).shape[1] > 0
    return kept


@compiled
def touch(world: World, node: int) -> None:
    """Something that a rank depends on changed."""
    run = run_of(world)
    change_of(world)[run.changes & (len(change_of(world)) - 1)] = node
    run.changes += 1


@compiled
def see_again(world: World, shape: int, node: int) -> None:
    """A change that no other shape is to know of."""
    if is_kept(world):
        like = shapes_of(world)[shape].like
        set_leaf(world, like, node, value(world, like, node))


@compiled
def catch_up(world: World, shape: int) -> None:
    """With all that has changed."""
    shapes, run = shapes_of(world), run_of(world)
    count = len(nodes_of(world))
    behind = run.changes - shapes[shape].seen
    if behind > len(change_of(world)) or behind * 4 > count:
        plant_tree(world, shape)
    else:
        for number in range(shapes[shape].seen, run.changes):
            node = change_of(world)[number & (len(change_of(world)) - 1)]
            if shapes[shape].first_node <= node < shapes[shape].last_node:
                grow(world, shape, node)
    shapes[shape].seen = run.changes


@compiled
def plant_tree(world: World, shape: int) -> None:
    count, half = len(nodes_of(world)), best_of(world).shape[1] // 2
    leaf, best, best_value = leaf_of(world)[shape], best_of(world)[shape], best_value_of(world)[shape]
    first_node, last_node = shapes_of(world)[shape].first_node, shapes_of(world)[shape].last_node
    if first_node == last_node:
        return
    for node in range(first_node, last_node):
        leaf[node] = value(world, shape, node)
        if shapes_of(world)[shape].in_gangs:
            set_slots(world, shape, node)
    first, last = half + first_node // 2, half + (last_node - 1) // 2
    for place in range(first, last + 1):
        winner = better_leaf(leaf, 2 * (place - half), count)
        best[place], best_value[place] = winner, leaf[winner]
    while first > 1:
        first, last = first // 2, last // 2
        for place in range(first, last + 1):
            winner = 2 * place + (best_value[2 * place + 1] > best_value[2 * place])
            best[place], best_value[place] = best[winner], best_value[winner]


@inlined
def better_leaf(leaf: Numbers, left: int, count: int) -> int:
    """Of this node and the next; of equals the first."""
    return left if left + 1 >= count or leaf[left + 1] <= leaf[left] else left + 1


@compiled
def grow(world: World, shape: int, node: int) -> None:
    if shapes_of(world)[shape].in_gangs:
        set_slots(world, shape, node)
    set_leaf(world, shape, node, value(world, shape, node))


@compiled
def set_leaf(world: World, shape: int, node: int, now: float) -> None:
    """A new value of one node, and the winners above it."""
    leaf, best, best_value = leaf_of(world)[shape], best_of(world)[shape], best_value_of(world)[shape]
    if now == leaf[node]:
        return
    leaf[node] = now
    count, half = len(nodes_of(world)), best_of(world).shape[1] // 2
    place = half + node // 2
    winner = better_leaf(leaf, node - node % 2, count)
    winning = leaf[winner]
    while True:
        if best[place] == winner and winner != node:
            return
        best[place], best_value[place] = winner, winning
        if place == 1:
            return
        beside = place ^ 1
        if best_value[beside] > winning or (best_value[beside] == winning and beside < place):
            winner, winning = best[beside], best_value[beside]
        place //= 2


@inlined
def set_slots(world: World, shape: int, node: int) -> None:
    slots_on = slots_on_of(world)
    nodes = nodes_of(world)
    now = 0
    if not nodes[node].asleep and fits(world, shape, node):
        now = times(world, shape, nodes[node].free_mcores, nodes[node].free_gpus)
    shapes_of(world)[shape].slots += now - slots_on[shape, node]
    slots_on[shape, node] = now


@inlined
def times(world: World, shape: int, free_mcores: int, free_gpus: int) -> int:
    """How many pods of a shape fit into so much."""
    shapes = shapes_of(world)
    by_gpus = by_mcores = 1 << 20
    if shapes[shape].mcores > 0:
        by_mcores = free_mcores // shapes[shape].mcores
    if shapes[shape].gpus > 0:
        by_gpus = free_gpus // shapes[shape].gpus
    return max(0, min(by_mcores, by_gpus))
