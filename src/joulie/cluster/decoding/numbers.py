"""Numbers that JSON and YAML can express but no field accepts: NaN, infinity, integers beyond 64 bits.

They become `UnusableNumber` instead of a float. An object is then rejected exactly where such a number matters, with
the field's path and the number as written; elsewhere in the object it is ignored.
"""

from __future__ import annotations

import math

_MAX_INTEGER = 2**64


class UnusableNumber:
    """A number as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text if len(self.text) <= 40 else f"{self.text[:37]}..."


def whole_number(text: str, base: int = 10) -> int | UnusableNumber:
    if len(text) > 66:
        return UnusableNumber(text)
    number = int(text, base)
    return number if abs(number) < _MAX_INTEGER else UnusableNumber(text)


def decimal_number(text: str) -> float | UnusableNumber:
    number = float(text)
    return number if math.isfinite(number) else UnusableNumber(text)
