"""The state of a run: tables of records that compiled code changes in place. Few arrays, so that it compiles fast.

Amounts that are added and taken back a million times are whole numbers (thousandths of a core, 2⁻³⁰ W), so that their
sums are exact and no result depends on the order of events.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

WATT = 2.0**30  # whole units of power in one watt; a megawatt leaves room for a thousand more
LOAD = 2.0**20  # whole units of load in a thousandth of a core
NOBODY = -1
NONE = np.int32(2**31 - 1)  # comes after every job

LANES = 8  # shapes that are ranked together: as many numbers as the widest registers hold
LANE_ROWS = 4  # what is known of each, see `grading_kernel`
FAN = 4  # rows of a tree below one winner

# Where a job is.
COMING, WAITING, STARTING, RUNNING, DONE = range(5)
# How nodes are ranked.
LEAST, MOST, RANDOM, JOULIE, GIVEN = range(5)

Records = Any  # fields are attributes of a record in compiled code, and names in Python


class World(NamedTuple):
    """Everything."""

    nodes: Records
    pods: Records
    jobs: Records
    shapes: Records
    kinds: Records
    zones: Records
    run: Records  # one
    blocks: Records  # of shapes in lanes
    lanes: Numbers  # by block: what its shapes ask for
    wants: Numbers  # by sort of machine, block and lane: thousandths of cores that must be free
    tree: Numbers  # by block: how good each node is, then the best of a few, and so on to the root
    levels: Codes  # where these begin
    slots: Numbers  # by block and lane: how many pods would fit in all, as far as somebody asked
    slots_on: Numbers  # by block, node and lane: how many fit there
    given: Numbers  # by shape and node: scores from a ranking in Python
    firsts: Codes  # by kind: who has waited longest, or NONE
    queue: Records
    cursors: Codes  # by kind that a look tries: who is next, or NONE
    ends: Codes  # a heap of running jobs by end
    ends_s: Numbers  # their ends
    place: Codes  # by job's record: in the heap
    waking: Codes  # a ring of nodes
    masked: Codes  # nodes that a look leaves out
    reserved_nodes: Codes
    change: Codes  # a ring of the nodes that changed, as long as a power of two
    trace: Integers  # addresses of the columns, see `filling_kernel`
    living: Codes  # by page of records: jobs that have not left; of an unused page the next one
    start_s: Numbers  # by job of the trace, as all that follow
    ended_s: Numbers
    backfilled: Flags
    node_of_pod: Codes  # by pod of the trace
    outside_c: Numbers  # by step of the plant, the last one holds on
    curves: Numbers  # value and rise of power over load, one curve after the other
    sweeps: Numbers  # by sweep: shares of the limit, slowdown, power
    columns: Any  # of the trace, held so that they stay where they are
    addresses: Integers  # of all these
    address: Any  # of the addresses: what compiled code takes for the world


def with_addresses(world: World) -> World:
    """Arrays must stay where they are from now on."""
    table = np.zeros((len(world) - 3, 4), np.int64)
    for row, array in enumerate(world[:-3]):
        assert array.flags.c_contiguous
        table[row, 0] = array.ctypes.data
        table[row, 1 : 1 + array.ndim] = array.shape
    return world._replace(addresses=table, address=table.ctypes.data)
