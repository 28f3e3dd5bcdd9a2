"""Shapes in lanes: eight of them side by side, so that a processor grades a node for all eight at once.

A block of eight has one tree of winners over the nodes; each of its rows holds eight numbers.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from joulie.lab.kernels import world as w
from joulie.lab.kernels.records import BLOCK
from joulie.lab.model.jobs import ANY_MODEL

MAX_KEPT = 60_000_000  # values of shapes times nodes that are kept; beyond, every choice looks at all nodes
NEVER = -(1 << 40)


class Lanes(Struct, frozen=True):
    """The arrays of `World` of the same names."""

    blocks: w.Records
    lanes: w.Numbers
    wants: w.Numbers
    tree: w.Numbers
    levels: w.Codes
    slots: w.Numbers
    slots_on: w.Numbers


def lanes_of(shapes: w.Records, nodes: w.Records, *, kept: bool) -> Lanes:
    """Gives every shape that is ranked by itself a lane; shapes for the same nodes get into the same blocks."""
    order = np.lexsort((shapes["in_gangs"], shapes["last_node"], shapes["first_node"]))
    order = order[shapes["like"][order] == order]
    place = _places(shapes[order])
    if not kept or (place.max(initial=0) + w.LANES) * len(nodes) > MAX_KEPT:
        order, place = order[:0], place[:0]
    shapes["block"][order], shapes["lane"][order] = place // w.LANES, place % w.LANES
    shapes["block"], shapes["lane"] = shapes["block"][shapes["like"]], shapes["lane"][shapes["like"]]
    count = int(place.max(initial=-1)) // w.LANES + 1
    lanes = _in_lines((count, w.LANE_ROWS, w.LANES), 0.0)
    blocks = np.zeros(count, BLOCK)
    blocks["seen"] = blocks["counted"] = NEVER
    for block in range(count):
        its = shapes[order[place // w.LANES == block]]
        for row, values in enumerate((its["mcores"] / 1000.0, its["mcores"], its["gpus"], its["performance"])):
            lanes[block, row, : len(its)] = values
        blocks[block]["first_node"], blocks[block]["last_node"] = its["first_node"].min(), its["last_node"].max()
    levels = _levels(len(nodes))
    return Lanes(
        blocks=blocks,
        lanes=lanes,
        wants=_wants(shapes[order], place, nodes, count),
        tree=_in_lines((count, levels[-1] + 1, w.LANES), -np.inf),
        levels=levels,
        slots=_in_lines((count, w.LANES), 0.0),
        slots_on=_in_lines((count, len(nodes), w.LANES), 0.0),
    )


def records_in_lines(count: int, kind: np.dtype[np.void]) -> w.Records:
    """Eight numbers are a line of the cache: what lies across two costs double. Empty records, in whole lines."""
    return _in_lines((count * kind.itemsize // 8,), 0.0).view(kind)


def _in_lines(shape: tuple[int, ...], value: float) -> w.Numbers:
    size = int(np.prod(shape))
    room = np.full(size + w.LANES, value) if value else np.zeros(size + w.LANES)
    first = -room.ctypes.data // room.itemsize % w.LANES
    return room[first : first + size].reshape(shape)


def _levels(nodes: int) -> w.Codes:
    """Where each level of a tree begins, from the nodes to the root; all but the root are full."""
    starts, size = [0], nodes
    while size > 1:
        size = -(-size // w.FAN)
        starts.append(starts[-1] + size * w.FAN)
    return np.array(starts, np.int32)


def _places(shapes: w.Records) -> w.Integers:
    """Lanes, counted on over all blocks: shapes that other nodes serve begin a new block."""
    nodes = shapes["first_node"] + (shapes["last_node"].astype(np.int64) << 32)
    _, first, sizes = np.unique(nodes, return_index=True, return_counts=True)
    places, begin = np.empty(len(shapes), np.int64), 0
    for start, size in sorted(zip(first.tolist(), sizes.tolist(), strict=True)):
        places[start : start + size] = begin + np.arange(size)
        begin += -(-size // w.LANES) * w.LANES
    return places


def _wants(shapes: w.Records, places: w.Integers, nodes: w.Records, count: int) -> w.Numbers:
    """By sort of machine: the thousandths of cores that must be free; infinite where it never takes the pod."""
    machines = machines_of(nodes)
    wants = _in_lines((len(machines), count * w.LANES), np.inf)
    for lane, shape in zip(places.tolist(), shapes, strict=True):
        wants[takes(shape, machines), lane] = shape["mcores"]
    return wants.reshape(len(machines), count, w.LANES)


def machines_of(nodes: w.Records) -> w.Records:
    """One node of each sort, in the order of the sorts."""
    return nodes[np.unique(nodes["sort"], return_index=True)[1]]


def takes(shape: w.Records, machines: w.Records) -> w.Flags:
    """Whether a machine can run a pod of the shape while it is empty, whatever its class."""
    able: w.Flags = machines["takes_cpu_work"]
    if shape["gpus"] > 0:
        able = (machines["gpu_model"] == shape["gpu_model"]) | (shape["gpu_model"] == ANY_MODEL)
    return np.asarray(able & (machines["mcores"] >= shape["mcores"]) & (machines["gpus"] >= shape["gpus"]))
