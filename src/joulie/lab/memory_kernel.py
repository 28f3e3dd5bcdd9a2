"""The world's arrays inside compiled code, where `world` is one number: the address of a table of addresses.

Handed over as arrays, a hundred numbers would go with every call of every function, and each array would count its
readers: that took nine tenths of all time. Python keeps the arrays alive while compiled code runs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from joulie.lab.compiling import compiled, inlined
from joulie.lab.lines_kernel import BYTES, llvm_function
from joulie.lab.records import BLOCK, JOB, KIND, NODE, PLACE, POD, RUN, SHAPE, ZONE
from joulie.lab.world import Codes, Flags, Integers, Numbers, Records, World

carray = numba.carray  # type: ignore[attr-defined]
FLOAT, CODE, WHOLE, FLAG = np.float64, np.int32, np.int64, np.bool_
NODE_BYTES, POD_BYTES, JOB_BYTES = NODE.itemsize, POD.itemsize, JOB.itemsize
ROWS, COLUMNS = len(World._fields) - 3, 4  # address and shape


def _pointer(_: Any, address: Any) -> Any:
    """The memory at an address."""

    def as_pointer(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), as_pointer


def _fetch(_: Any, address: Any) -> Any:
    """Asks for the line of the cache at an address, and does not wait for it."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, whole, whole, whole])
        asks = llvm_function(builder.module, kind, "llvm.prefetch.p0i8")
        to_read, keep, of_numbers = whole(0), whole(3), whole(1)
        builder.call(asks, [builder.inttoptr(arguments[0], cgutils.voidptr_t), to_read, keep, of_numbers])
        return context.get_dummy_value()

    return types.void(address), code


pointer: Any = intrinsic(_pointer)
fetch: Any = intrinsic(_fetch)


@compiled
def row(world: World, number: int) -> Integers:
    table: Integers = carray(pointer(world), (ROWS, COLUMNS), WHOLE)
    return table[number]


@compiled
def nodes_of(world: World) -> Records:
    at = row(world, 0)
    return carray(pointer(at[0]), at[1], NODE)


@compiled
def pods_of(world: World) -> Records:
    at = row(world, 1)
    return carray(pointer(at[0]), at[1], POD)


@compiled
def jobs_of(world: World) -> Records:
    at = row(world, 2)
    return carray(pointer(at[0]), at[1], JOB)


@compiled
def shapes_of(world: World) -> Records:
    at = row(world, 3)
    return carray(pointer(at[0]), at[1], SHAPE)


@compiled
def kinds_of(world: World) -> Records:
    at = row(world, 4)
    return carray(pointer(at[0]), at[1], KIND)


@compiled
def zones_of(world: World) -> Records:
    at = row(world, 5)
    return carray(pointer(at[0]), at[1], ZONE)


@compiled
def run_of(world: World) -> Any:
    at = row(world, 6)
    return carray(pointer(at[0]), 1, RUN)[0]


@compiled
def blocks_of(world: World) -> Records:
    at = row(world, 7)
    return carray(pointer(at[0]), at[1], BLOCK)


@compiled
def tree_of(world: World) -> Numbers:
    at = row(world, 10)
    return carray(pointer(at[0]), (at[1], at[2], at[3]), FLOAT)


@compiled
def levels_of(world: World) -> Codes:
    at = row(world, 11)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def slots_of(world: World) -> Numbers:
    at = row(world, 12)
    return carray(pointer(at[0]), (at[1], at[2]), FLOAT)


@compiled
def given_of(world: World) -> Numbers:
    at = row(world, 14)
    return carray(pointer(at[0]), (at[1], at[2]), FLOAT)


@compiled
def firsts_of(world: World) -> Codes:
    at = row(world, 15)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def queue_of(world: World) -> Records:
    at = row(world, 16)
    return carray(pointer(at[0]), at[1], PLACE)


@compiled
def cursors_of(world: World) -> Codes:
    at = row(world, 17)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def ends_of(world: World) -> Codes:
    at = row(world, 18)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def ends_s_of(world: World) -> Numbers:
    at = row(world, 19)
    return carray(pointer(at[0]), at[1], FLOAT)


@compiled
def place_of(world: World) -> Codes:
    at = row(world, 20)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def waking_of(world: World) -> Codes:
    at = row(world, 21)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def masked_of(world: World) -> Codes:
    at = row(world, 22)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def reserved_nodes_of(world: World) -> Codes:
    at = row(world, 23)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def change_of(world: World) -> Codes:
    at = row(world, 24)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def trace_of(world: World) -> Integers:
    at = row(world, 25)
    return carray(pointer(at[0]), at[1], WHOLE)


@compiled
def living_of(world: World) -> Codes:
    at = row(world, 26)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def start_s_of(world: World) -> Numbers:
    at = row(world, 27)
    return carray(pointer(at[0]), at[1], FLOAT)


@compiled
def ended_s_of(world: World) -> Numbers:
    at = row(world, 28)
    return carray(pointer(at[0]), at[1], FLOAT)


@compiled
def backfilled_of(world: World) -> Flags:
    at = row(world, 29)
    return carray(pointer(at[0]), at[1], FLAG)


@compiled
def node_of_pod_of(world: World) -> Codes:
    at = row(world, 30)
    return carray(pointer(at[0]), at[1], CODE)


@compiled
def outside_c_of(world: World) -> Numbers:
    at = row(world, 31)
    return carray(pointer(at[0]), at[1], FLOAT)


@compiled
def curves_of(world: World) -> Numbers:
    at = row(world, 32)
    return carray(pointer(at[0]), (at[1], at[2]), FLOAT)


@compiled
def sweeps_of(world: World) -> Numbers:
    at = row(world, 33)
    return carray(pointer(at[0]), (at[1], at[2], at[3]), FLOAT)


@inlined
def line_in(world: World, table: int, first: int, second: int) -> int:
    """Where the lanes are that a table has for two numbers."""
    at = row(world, table)
    place: int = at[0] + (first * at[2] + second) * BYTES
    return place


@inlined
def lanes_row_at(world: World, block: int, number: int) -> int:
    return line_in(world, 8, block, number)


@inlined
def wants_row_at(world: World, sort: int, block: int) -> int:
    return line_in(world, 9, sort, block)


@inlined
def tree_row_at(world: World, block: int, number: int) -> int:
    return line_in(world, 10, block, number)


@inlined
def slots_on_row_at(world: World, block: int, node: int) -> int:
    return line_in(world, 13, block, node)


@inlined
def slots_row_at(world: World, block: int) -> int:
    place: int = row(world, 12)[0] + block * BYTES
    return place


@inlined
def fetch_record(world: World, table: int, size: int, number: int) -> None:
    """All lines of a record, before somebody needs it."""
    first = row(world, table)[0] + number * size
    for line in range(0, size, BYTES):
        fetch(first + line)


@inlined
def fetch_node(world: World, node: int) -> None:
    fetch_record(world, 0, NODE_BYTES, node)


@inlined
def fetch_pod(world: World, pod: int) -> None:
    fetch_record(world, 1, POD_BYTES, pod)


@inlined
def fetch_job(world: World, job: int) -> None:
    fetch_record(world, 2, JOB_BYTES, job)
