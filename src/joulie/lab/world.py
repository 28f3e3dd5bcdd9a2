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


# One record a node: what it is, how it stands, what is thought of it.
NODE = np.dtype(
    [
        # What a step of the plant looks at, close together
        ("warm_at_s", "f8"),
        ("cpu_w", "f8"),
        ("cpu_max_w", "f8"),
        ("cpu_warm_c", "f8"),  # above the air
        ("cpu_throttle", "f8"),
        ("gpu_throttle", "f8"),
        ("gpus", "i8"),
        ("asleep", "?"),
        ("hottest_w", "f8"),  # of its boards
        ("gpu_max_w", "f8"),  # of one board
        ("gpu_warm_c", "f8"),
        # What decides whether a pod fits, close together
        ("free_mcores", "i8"),
        ("free_gpus", "i8"),
        ("ready_s", "f8"),  # works from then on
        ("mcores", "i8"),
        ("gpu_model", "i4"),  # as in the trace; below ANY_MODEL: none that the trace names
        ("sort", "i4"),  # of machine
        ("takes_cpu_work", "?"),
        ("class_code", "i1"),
        ("is_reserved", "?"),  # for the first in the queue
        ("first_pod", "i4"),  # of a list of the pods here
        ("zone", "i4"),
        ("soonest_end_s", "f8"),  # none of them is expected to end before
        # What it is
        ("cpu_idle_w", "f8"),
        ("cpu_floor", "f8"),
        ("curve_at", "i8"),  # of its CPUs in the tables
        ("gpu_idle_w", "f8"),
        ("sweep", "i4"),
        ("core_speed", "f8"),
        ("gpu_speed", "f8"),
        # How it stands
        ("load", "i8"),
        ("pods", "i8"),
        ("performance_pods", "i8"),
        ("cpu_cap_w", "f8"),
        ("gpu_cap_w", "f8"),
        ("frequency", "f8"),
        ("gpu_w", "f8"),  # all boards
        ("wall", "i8"),  # in WATT units
        ("empty_since_s", "f8"),
        ("violating", "?"),
        ("energy_j", "f8"),
        ("metered_at_s", "f8"),
        ("recent", "i8"),  # WATT units that pods add which the twin has not seen
        ("bound", "i8"),  # WATT units that all pods here add, as the twin would estimate it
        # What the extender knows: the columns of `control.scoring`
        ("capped_w", "f8"),
        ("measured_w", "f8"),
        ("budget_w", "f8"),
        ("headroom", "f8"),  # percent of it that is free, recent pods taken off
        ("points_per_w", "f8"),
        ("rest_standard", "f8"),
        ("rest_performance", "f8"),
        ("cpu_full_w", "f8"),
        ("gpu_full_standard_w", "f8"),
        ("gpu_full_performance_w", "f8"),
        ("cpu_plain_w", "f8"),  # the same without cooling, for pods that the twin has not seen
        ("gpu_plain_standard_w", "f8"),
        ("gpu_plain_performance_w", "f8"),
        ("inverse_cores", "f8"),
        ("inverse_gpus", "f8"),
        # What is kept for the first in the queue
        ("spare_mcores", "i8"),
        ("spare_gpus", "i8"),
    ],
    align=True,
)

# One record a pod that has come and not gone.
POD = np.dtype(
    [
        ("number", "i4"),  # in the trace
        ("job", "i4"),  # its record
        ("shape", "i4"),
        ("node", "i4"),
        ("after", "i4"),  # next on its node
        ("before", "i4"),
        ("bound_in", "i4"),  # the tick after which it was bound
        ("runs", "?"),
        ("load", "i8"),
        ("added", "i8"),  # WATT units, as the twin would estimate it
        ("cpu_rate", "f8"),  # share of its work a second on reference cores; infinite: none to do
        ("gpu_rate", "f8"),
        ("rate", "f8"),  # at the speed of its node
        ("gpu_utilisation", "f8"),
        ("memory_intensity", "f8"),
        ("io_intensity", "f8"),
        ("feed_intensity", "f8"),
        ("cpu_sensitivity", "f8"),
        ("gpu_sensitivity", "f8"),
    ],
    align=True,
)

# One record a job that has come and not gone.
JOB = np.dtype(
    [
        # What a look at the queue reads, close together
        ("number", "i4"),  # in the trace, in the order of arrival
        ("kind", "i4"),
        ("next_in_queue", "i4"),
        ("previous_in_queue", "i4"),
        ("next_waiting", "i4"),  # of its kind
        ("previous_waiting", "i4"),
        ("first_pod", "i4"),
        ("last_pod", "i4"),  # the first that is not its own
        ("state", "i1"),
        ("reference_s", "f8"),  # on reference devices
        ("end_s", "f8"),
        ("left", "f8"),  # share of its work
        ("rate", "f8"),
        ("since_s", "f8"),
        ("expected_end_s", "f8"),  # as a user would have said
    ],
    align=True,
)

# One record a shape of pods, and one a kind of jobs.
SHAPE = np.dtype(
    [
        ("mcores", "i8"),
        ("gpus", "i8"),
        ("gpu_model", "i4"),
        ("performance", "?"),
        ("first_node", "i4"),  # no node before it can ever run the pod
        ("last_node", "i4"),  # nor this one or any behind it
        ("like", "i4"),  # the first shape that is ranked as this one
        ("block", "i4"),  # its tree
        ("lane", "i4"),  # in that
        ("in_gangs", "?"),
        ("given_at", "i8"),  # the move after which scores were given
    ],
    align=True,
)
# One record a block of shapes in lanes.
BLOCK = np.dtype(
    [
        ("seen", "i8"),  # how many changes of nodes its tree knows
        ("first_node", "i4"),  # as of its shapes
        ("last_node", "i4"),
        ("in_gangs", "?"),
    ],
    align=True,
)
KIND = np.dtype(
    [
        ("last", "i4"),  # who waits, in the order of arrival
        ("place", "i4"),  # among the kinds that a look still tries; NOBODY: it does not
        ("tried", "i4"),  # a list of these kinds
        ("shape", "i4"),  # of its first pod
        ("alike", "i4"),  # pods of that shape in each job; 1 where others follow
        ("hopeless", "?"),  # there is not even room for these
        ("failed_s", "f8"),  # what ran as long did not fit beside the reservation
        ("performance", "i8"),  # pods of class performance in each job
        ("fails_at", "i8"),  # nothing was freed since it last did not fit
    ],
    align=True,
)

# One record a cooling zone.
ZONE = np.dtype(
    [
        ("first_node", "i8"),
        ("last_node", "i8"),  # the first of the next zone
        ("wall", "i8"),  # WATT units of all its nodes
        ("since_s", "f8"),
        ("step_j", "f8"),  # of IT since the last step
        ("rated_w", "f8"),
        ("inlet_c", "f8"),
        ("cpu_air_c", "f8"),  # the inlet as a CPU feels it, with its lag
        ("gpu_air_c", "f8"),
        ("it_j", "f8"),
        ("fan_j", "f8"),
        ("compressor_j", "f8"),
        ("removed_j", "f8"),
        ("cooling_w", "f8"),  # of the last step
        ("throttled", "i8"),  # nodes
    ],
    align=True,
)

# Single numbers.
RUN = np.dtype(
    [
        ("now_s", "f8"),
        ("step_s", "f8"),
        ("next_step_s", "f8"),
        ("steps", "i8"),
        ("peak_w", "f8"),
        ("violations", "i8"),  # nodes above a cap
        ("violation_s", "f8"),
        ("throttled_s", "f8"),
        ("counted_at_s", "f8"),
        ("changes", "i8"),  # of nodes, ever
        ("freed", "i8"),  # times that something was freed
        ("ranking", "i8"),
        ("seed", "u8"),
        ("backfill", "?"),
        ("depth", "i8"),
        ("estimate_factor", "f8"),
        ("sleeps", "?"),
        ("sleep_after_s", "f8"),
        ("sleep_w", "f8"),
        ("wake_s", "f8"),
        ("wake_energy_j", "f8"),
        ("wakes", "i8"),
        ("slowest_core", "f8"),
        ("slowest_gpu", "f8"),
        ("tick", "i8"),
        ("counts_recent", "?"),
        ("everything", "?"),  # the queue is to be looked at from the beginning
        ("newcomer", "i8"),  # or only this job
        ("moves", "i8"),  # pods bound or gone, ever
        ("asks_shape", "i8"),  # scores of this shape are wanted from Python
        ("probe_job", "i8"),  # before this job is placed, the run stops
        ("probe_from_s", "f8"),
        ("it_j", "f8"),  # since the beginning, for the series
        ("cooling_j", "f8"),
        # The queue
        ("waiting", "i8"),
        ("waiting_performance", "i8"),  # pods of class performance among them
        ("running", "i8"),
        ("done", "i8"),
        ("next_arrival", "i8"),  # a number in the trace
        # Pages of records, see `filling_kernel`
        ("page", "i8"),  # on which the next job comes
        ("pages", "i8"),  # that were ever used
        ("unused_page", "i8"),  # of a list of those that are free again
        ("page_jobs", "i8"),  # room on each
        ("page_pods", "i8"),
        ("next_job", "i8"),  # on this one
        ("next_pod", "i8"),
        ("first_in_queue", "i8"),
        ("last_in_queue", "i8"),
        ("reserved_for", "i8"),
        ("reserved_until_s", "f8"),
        ("reserved_count", "i8"),
        ("ends_count", "i8"),
        ("waking_from", "i8"),
        ("waking_count", "i8"),
        ("masked_count", "i8"),
        # The extender
        ("known", "?"),  # twins are there and not stale
        ("score_max", "i8"),
    ],
    align=True,
)

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
    slots: Numbers  # by block and lane: how many pods would fit in all, where a block is in gangs; and room to count
    slots_on: Numbers  # by block, node and lane: how many fit there
    given: Numbers  # by shape and node: scores from a ranking in Python
    firsts: Codes  # by kind: who has waited longest, or NONE
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
