"""`World` inside compiled code: one number, the address of a table of its arrays' addresses and shapes.

Its fields are arrays there as well, found through that table where they are used. Handed over as arrays, a hundred
numbers would go with every call of every function, and each array would count its readers: that took nine tenths of
all time. Python keeps the arrays alive while compiled code runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import templates
from numba.extending import intrinsic, lower_getattr_generic, models, register_model, unbox
from numba.np import numpy_support

from joulie.lab.kernels.compiling import inlined
from joulie.lab.kernels.vectors import BYTES, llvm_function, pointer_into, untyped_arrays
from joulie.lab.kernels.world import COLUMNS, Records, Tables

# Of numba, without types.
_primitive: Any = models.PrimitiveModel
_has_attributes: Any = templates.infer_getattr
_has_code: Any = lower_getattr_generic
_comes_in: Any = unbox
_INTEGER = ir.IntType(64)


class TablesType(types.Type):
    """A class of arrays: their names and types, in the order of the table."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        super().__init__(name)
        self.members = members

    @property
    def key(self) -> Any:
        return self.name, tuple(self.members.items())


def type_of(member: Any) -> Any:
    """As compiled code sees it: an array, one record where there are no dimensions, or a class of these."""
    if isinstance(member, Tables):
        return TablesType(type(member).__name__, {name: type_of(each) for name, each in member.members().items()})
    kind: Any = numpy_support.from_dtype(member.dtype)
    return types.Array(kind, member.ndim, "C") if member.ndim else kind


def _address_of(_kind: Any, tables: Any, native: Any) -> Any:
    address = native.pyapi.object_getattr_string(tables, "address")
    number = native.unbox(types.int64, address)
    native.pyapi.decref(address)
    return number


class _Attributes(templates.AttributeTemplate):
    key = TablesType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.members.get(name)


def _member(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    member, row = kind.members[name], list(kind.members).index(name) * COLUMNS
    table = builder.inttoptr(address, _INTEGER.as_pointer())
    place, *shape = [builder.load(builder.gep(table, [_INTEGER(row + column)])) for column in range(COLUMNS)]
    if isinstance(member, TablesType):
        return place
    if isinstance(member, types.Record):
        return builder.inttoptr(place, context.get_value_type(member))
    array = untyped_arrays.make_array(member)(context, builder)
    size = _INTEGER(untyped_arrays.get_itemsize(context, member))
    shape, strides = shape[: member.ndim], [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(place, context.get_data_type(member.dtype).as_pointer())
    untyped_arrays.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


register_model(TablesType)(lambda manager, kind: _primitive(manager, kind, _INTEGER))
_comes_in(TablesType)(_address_of)
_has_attributes(_Attributes)
_has_code(TablesType)(_member)


def _prefetch(_: Any, array: Any, byte: Any) -> Any:
    """Asks for the line of the cache at a byte of an array, and does not wait for it."""

    def code(context: Any, builder: Any, known: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, whole, whole, whole])
        asks = llvm_function(builder.module, kind, "llvm.prefetch.p0i8")
        to_read, keep, of_numbers = whole(0), whole(3), whole(1)
        first = pointer_into(context, builder, known.args[0], arguments[0], ir.IntType(8))
        builder.call(asks, [builder.gep(first, [arguments[1]]), to_read, keep, of_numbers])
        return context.get_dummy_value()

    return types.void(array, byte), code


prefetch: Any = intrinsic(_prefetch)


@inlined
def fetch(table: Records, number: int) -> None:
    """All lines of a record, before it is needed."""
    for byte in range(0, table.itemsize, BYTES):
        prefetch(table, number * table.itemsize + byte)
