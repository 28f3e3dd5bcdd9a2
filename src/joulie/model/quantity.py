"""Kubernetes resource quantities: `100m`, `1.5`, `2Gi`, `1e3`, `4E`, plain numbers."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache

Quantity = str | int | float

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?", re.ASCII)
_SCALE: dict[str, Decimal] = {
    **{s: Decimal(10) ** e for s, e in zip(("n", "u", "m"), (-9, -6, -3), strict=True)},
    **{s: Decimal(10) ** (3 * (i + 1)) for i, s in enumerate("kMGTPE")},
    **{f"{s}i": Decimal(2) ** (10 * (i + 1)) for i, s in enumerate("KMGTPE")},
}
_MAX_VALUE = 2.0**63  # what a Kubernetes quantity can hold


def parse_quantity(quantity: Quantity) -> float:
    """The value as a float; ValueError for anything Kubernetes would not take, and for negative ones."""
    if isinstance(quantity, str):
        return _parse_text(quantity)
    if isinstance(quantity, int) and abs(quantity) > _MAX_VALUE:  # it may have more digits than can be shown
        raise ValueError("the number is out of range")
    if isinstance(quantity, bool) or not math.isfinite(quantity):
        raise ValueError(f"{quantity!r} is not a quantity")
    return _in_range(float(quantity), str(quantity))


@lru_cache(maxsize=4096)  # a cluster repeats few different quantities very often
def _parse_text(text: str) -> float:
    match = _FORM.fullmatch(text)
    if match is None or len(text) > 64:
        raise ValueError(f"{text[:64]!r} is not a quantity (such as 100m, 1.5, 2Gi or 1e3)")
    number, exponent, suffix = match.groups()
    if exponent and abs(int(exponent[1:])) > 40:
        raise ValueError(f"{text!r} is out of range")
    value = Decimal(number + (exponent or "")) * _SCALE.get(suffix or "", Decimal(1))
    return _in_range(float(value), text)


def _in_range(value: float, text: str) -> float:
    if value < 0:
        raise ValueError(f"{text!r} is negative")
    if value > _MAX_VALUE:
        raise ValueError(f"{text!r} is out of range")
    return value + 0.0  # a minus zero is a zero
