"""Arrays by name, as compiled code finds them."""

from __future__ import annotations

import numpy as np

from tests.lab.kernels.table_kernels import Inner, Outer, exchange

RECORD = np.dtype([("weight", "f8"), ("count", "i4")], align=True)


def test_compiled_code_reads_and_writes_records_arrays_and_classes_of_arrays_by_name() -> None:
    one, many, codes = np.zeros((), RECORD), np.zeros(3, RECORD), np.arange(3, dtype=np.int32)
    many["count"] = (1, 10, 100)
    box = np.arange(24, dtype=np.float64).reshape(3, 2, 4)

    assert exchange(Outer(one, many, Inner(codes), box), 2) == box[2, 1].sum() * 4
    assert one["count"] == 100
    assert codes.tolist() == [0, 1, 3]


def test_other_types_of_arrays_are_other_compiled_code_and_not_misread_memory() -> None:
    one, many = np.zeros((), RECORD), np.ones(2, RECORD)
    codes, box = np.zeros(2, np.int64), np.ones((2, 2, 3), np.float32)

    assert exchange(Outer(one, many, Inner(codes), box), 1) == 9.0  # type: ignore[arg-type]
    assert codes.tolist() == [0, 1]
