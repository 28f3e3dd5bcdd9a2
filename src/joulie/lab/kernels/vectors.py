"""Eight numbers at once, a line of the cache: a type of number for compiled code, with which the formulas of `control`
compute for eight shapes what they compute for one.

A compiler does not find this by itself in loops over eight lanes. Addresses are those of whole lines (see
`simulation.lanes`), which is fast, but not relied upon. Everything here is plain LLVM: a processor without such wide
registers takes two or four steps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import templates
from numba.extending import intrinsic, lower_builtin, models, register_model
from numba.np import arrayobj

from joulie.lab.kernels.world import LANES

BYTES = 8 * LANES
# Of numba, without types.
llvm_function: Any = cgutils.get_or_insert_function
_primitive: Any = models.PrimitiveModel
_signature: Any = templates.signature
_has_rule: Any = templates.infer_global
_has_code: Any = lower_builtin
untyped_arrays: Any = arrayobj

_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_FIRST = ir.Constant(ir.IntType(32), 0)
_FIRST_ONLY = ir.Constant(ir.VectorType(_FIRST.type, LANES), [0] * LANES)


class LineType(types.Type):
    """Eight numbers."""


class FlagsType(types.Type):
    """Eight times yes or no."""


LINE, FLAGS = LineType("Line"), FlagsType("LineFlags")
register_model(LineType)(lambda manager, kind: _primitive(manager, kind, _NUMBERS))
register_model(FlagsType)(lambda manager, kind: _primitive(manager, kind, _FLAGS))


def _in_all_lanes(builder: Any, kind: Any, value: Any) -> Any:
    """One number, eight times."""
    if isinstance(kind, LineType):
        return value
    nothing = ir.Constant(_NUMBERS, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, value, _FIRST), nothing, _FIRST_ONLY)


def _works_on_lines(function: Any, count: int, result: Any, build: Callable[..., Any]) -> None:
    """An operator or function of numpy, also for lines and for lines with single numbers."""

    class Rule(templates.AbstractTemplate):
        key = function

        def generic(self, args: Any, _kws: Any) -> Any:
            lines = [isinstance(each, LineType) for each in args]
            if len(args) == count and any(lines) and all(isinstance(each, LineType | types.Float) for each in args):
                return _signature(result, *args)
            return None

    def code(_context: Any, builder: Any, known: Any, arguments: Any) -> Any:
        pairs = zip(known.args, arguments, strict=True)
        return build(builder, *[_in_all_lanes(builder, kind, value) for kind, value in pairs])

    _has_rule(function)(Rule)
    kinds = [(LineType,)] if count == 1 else [(LineType, LineType), (LineType, types.Float), (types.Float, LineType)]
    for each in kinds:
        _has_code(function, *each)(code)


def _ordered(sign: str) -> Callable[..., Any]:
    return lambda builder, one, other: builder.fcmp_ordered(sign, one, other)


def _floor(builder: Any, line: Any) -> Any:
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS])
    return builder.call(llvm_function(builder.module, kind, f"llvm.floor.v{LANES}f64"), [line])


_ARITHMETIC = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"}
for _function, _name in _ARITHMETIC.items():
    _works_on_lines(_function, 2, LINE, lambda builder, one, other, name=_name: getattr(builder, name)(one, other))
for _function, _sign in ((operator.ge, ">="), (operator.gt, ">"), (operator.lt, "<")):
    _works_on_lines(_function, 2, FLAGS, _ordered(_sign))
for _function, _sign in ((np.minimum, "<"), (np.maximum, ">")):
    _works_on_lines(
        _function, 2, LINE, lambda builder, a, b, sign=_sign: builder.select(builder.fcmp_ordered(sign, a, b), a, b)
    )
_works_on_lines(np.floor, 1, LINE, _floor)


def pointer_into(context: Any, builder: Any, array_type: Any, array: Any, pointed: Any) -> Any:
    """To the first element of an array, as something else."""
    return builder.bitcast(untyped_arrays.make_array(array_type)(context, builder, array).data, pointed.as_pointer())


def _line_at(_: Any, row: Any) -> Any:
    """An array of eight numbers as a line."""

    def code(context: Any, builder: Any, known: Any, arguments: Any) -> Any:
        return builder.load(pointer_into(context, builder, known.args[0], arguments[0], _NUMBERS), align=8)

    return LINE(row), code


def _set_line(_: Any, row: Any, line: Any) -> Any:
    """Whether that is another one than before."""

    def code(context: Any, builder: Any, known: Any, arguments: Any) -> Any:
        place = pointer_into(context, builder, known.args[0], arguments[0], _NUMBERS)
        was = builder.load(place, align=8)
        builder.store(arguments[1], place, align=8)
        lanes = builder.bitcast(builder.fcmp_unordered("!=", arguments[1], was), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", lanes, lanes.type(0))

    return types.boolean(row, line), code


def _either(_: Any, flags: Any, one: Any, other: Any) -> Any:
    """The one where it is so, else the other, lane by lane."""

    def code(_context: Any, builder: Any, known: Any, arguments: Any) -> Any:
        pairs = zip(known.args[1:], arguments[1:], strict=True)
        return builder.select(arguments[0], *[_in_all_lanes(builder, kind, value) for kind, value in pairs])

    return LINE(flags, one, other), code


def _all_of(_: Any, one: Any, other: Any, third: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.and_(builder.and_(arguments[0], arguments[1]), arguments[2])

    return FLAGS(one, other, third), code


line_at: Any = intrinsic(_line_at)
set_line: Any = intrinsic(_set_line)
either: Any = intrinsic(_either)
all_of: Any = intrinsic(_all_of)
