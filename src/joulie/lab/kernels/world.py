"""The state of a run: tables of records that compiled code changes in place. Few arrays, so that it compiles fast.

Amounts that are added and taken back a million times are whole numbers (thousandths of a core, 2⁻³⁰ W), so that their
sums are exact and no result depends on the order of events.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

WATT = 2.0**30  # whole units of power in one watt; a megawatt leaves room for a thousand more
LOAD = 2.0**20  # whole units of load in a thousandth of a core
ABSENT = -1  # as an index: no job, pod, node or place
NONE = np.int32(2**31 - 1)  # comes after every job

LANES = 8  # shapes that are ranked together: as many numbers as the widest registers hold
LANE_ROWS = 4  # what is known of each, see `placement.grading`
FAN = 4  # rows of a tree below one winner

# Where a job is.
COMING, WAITING, STARTING, RUNNING, DONE = range(5)
# How nodes are ranked.
LEAST, MOST, RANDOM, JOULIE, GIVEN = range(5)

Records = Any  # fields are attributes of a record in compiled code, and names in Python


COLUMNS = 4  # of a table: address, and up to three dimensions


class Tables:
    """Arrays by name, for compiled code (see `memory`). They must stay where they are."""

    def members(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @cached_property
    def _table(self) -> Integers:
        members = self.members().values()
        table = np.zeros((len(members), COLUMNS), np.int64)
        for row, member in zip(table, members, strict=True):
            if isinstance(member, Tables):
                row[0] = member.address
            else:
                assert member.flags.c_contiguous
                row[0] = member.ctypes.data
                row[1 : 1 + member.ndim] = member.shape
        return table

    @cached_property
    def address(self) -> int:
        return self._table.ctypes.data

    @cached_property
    def _numba_type_(self) -> Any:
        """What compiled code takes it for: numba asks by this name, at every call."""
        from joulie.lab.kernels.memory import type_of

        return type_of(self)


@dataclass(frozen=True, eq=False)
class Trace(Tables):
    """The columns of a trace that a run reads."""

    # By pod
    cores: Numbers
    cpu_units: Numbers
    gpu_units: Numbers
    cpu_utilisation: Numbers
    gpu_utilisation: Numbers
    memory_intensity: Numbers
    io_intensity: Numbers
    feed_intensity: Numbers
    cpu_sensitivity: Numbers
    gpu_sensitivity: Numbers
    gpus: Codes
    performance: Flags
    shape: Codes
    # By job
    submit_s: Numbers
    reference_s: Numbers
    first_pod: Codes
    kind: Codes


@dataclass(frozen=True, eq=False)
class World(Tables):
    """Everything."""

    nodes: Records
    pods: Records
    jobs: Records
    shapes: Records
    kinds: Records
    zones: Records
    run: Records  # one, without a dimension
    blocks: Records  # of shapes in lanes
    lanes: Numbers  # by block: what its shapes ask for
    wants: Numbers  # by sort of machine, block and lane: thousandths of cores that must be free
    tree: Numbers  # by block: how good each node is, then the best of a few, and so on to the root
    levels: Codes  # where these begin
    slots: Numbers  # by block and lane: how many pods would fit in all, as far as that was asked
    slots_on: Numbers  # by block, node and lane: how many fit there
    given: Numbers  # by shape and node: scores from a ranking in Python
    firsts: Codes  # by kind: the job that has waited longest, or NONE
    queue: Records
    cursors: Codes  # by kind that a pass tries: the next job, or NONE
    ends: Codes  # a heap of running jobs by end
    ends_s: Numbers  # their ends
    place: Codes  # by job's record: in the heap
    waking: Codes  # a ring of nodes
    masked: Codes  # nodes that a look leaves out
    reserved_nodes: Codes
    change: Codes  # a ring of the nodes that changed, as long as a power of two
    trace: Trace
    living: Codes  # by page of records: jobs that have not left; of an unused page the next one
    start_s: Numbers  # by job of the trace, as all that follow
    ended_s: Numbers
    backfilled: Flags
    node_of_pod: Codes  # by pod of the trace
    groups: Records  # of power budgets
    groups_from: Codes  # by node: where those that it is in begin
    groups_of: Codes
    outside_c: Numbers  # by step of the plant, the last one holds on
    curves: Numbers  # value and rise of power over load, one curve after the other
    sweeps: Numbers  # by sweep: shares of the limit, slowdown, power
