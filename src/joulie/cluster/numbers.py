"""Numbers that JSON and YAML can spell but nothing can use: NaN, infinity, more digits than any size has.

They become `UnusableNumber` instead of a float. No field takes one, so an object is refused exactly where it matters,
with the field's path and the number as it was written; elsewhere in the object it does no harm.
"""

from __future__ import annotations

import math

_LARGEST_INTEGER = 2**64


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
    return number if abs(number) < _LARGEST_INTEGER else UnusableNumber(text)


def decimal_number(text: str) -> float | UnusableNumber:
    number = float(text)
    return number if math.isfinite(number) else UnusableNumber(text)
