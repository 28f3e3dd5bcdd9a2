"""Eight numbers at once, a line of the cache: what a compiler does not find by itself in a loop over lanes.

Addresses are those of whole lines (see `lanes`), which is fast, but not relied upon. Everything here is plain LLVM: a
processor without such wide registers takes two or four steps.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from joulie.lab.world import FAN, LANES

NUMBER_BYTES = 8
BYTES = NUMBER_BYTES * LANES
_LINE = ir.VectorType(ir.DoubleType(), LANES)


def _load(builder: Any, address: Any, number: int = 0) -> tuple[Any, Any]:
    at = builder.add(address, ir.Constant(address.type, number * BYTES))
    place = builder.inttoptr(at, _LINE.as_pointer())
    return builder.load(place, align=NUMBER_BYTES), place


def _raise_best(_: Any, below: Any, above: Any) -> Any:
    """Writes the best of FAN lines into another, lane by lane; says whether that changed it."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        best, _place = _load(builder, arguments[0])
        for number in range(1, FAN):
            other, _place = _load(builder, arguments[0], number)
            best = builder.select(builder.fcmp_ordered(">", other, best), other, best)
        was, place = _load(builder, arguments[1])
        builder.store(best, place, align=NUMBER_BYTES)
        lanes = builder.bitcast(builder.fcmp_unordered("!=", best, was), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0))

    return types.boolean(below, above), code


def _replace_share(_: Any, total: Any, share: Any, now: Any) -> Any:
    """A share of a total is another one now."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (whole, total_place), (was, place) = _load(builder, arguments[0]), _load(builder, arguments[1])
        now_there, _place = _load(builder, arguments[2])
        builder.store(builder.fadd(whole, builder.fsub(now_there, was)), total_place, align=NUMBER_BYTES)
        builder.store(now_there, place, align=NUMBER_BYTES)
        return context.get_dummy_value()

    return types.void(total, share, now), code


raise_best: Any = intrinsic(_raise_best)
replace_share: Any = intrinsic(_replace_share)
