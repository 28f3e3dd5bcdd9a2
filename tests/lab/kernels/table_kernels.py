"""Compiled code that reads and writes a class of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from joulie.lab.kernels.compiling import entry
from joulie.lab.kernels.world import Codes, Numbers, Tables


@dataclass(frozen=True, eq=False)
class Inner(Tables):
    codes: Codes


@dataclass(frozen=True, eq=False)
class Outer(Tables):
    one: Any
    many: Any
    inner: Inner
    box: Numbers


@entry
def exchange(tables: Outer, number: int) -> float:
    """Adds to the record and to a code; gives the sum of a line of the box."""
    tables.one.count += tables.many[number].count
    tables.inner.codes[number] += 1
    total = 0.0
    for value in tables.box[number, 1]:
        total += value
    return float(total * tables.box.shape[2])
