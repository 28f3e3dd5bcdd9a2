"""How variants override keys of what all share: merged level by level, or all combinations of some values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec

from joulie.errors import InputError


def combinations(values: Mapping[str, Sequence[Any]], origin: str) -> list[tuple[str, dict[str, Any]]]:
    """Every combination of the values, named by them: `gpu_cap_pct=70, scheduler=most`."""
    for key, several in values.items():
        if not several:
            raise InputError(f"{origin}.{key}: holds no value")
    ends = [key.rsplit(".", 1)[-1] for key in values]
    names = [key if ends.count(end) > 1 else end for key, end in zip(values, ends, strict=True)]
    made = {
        ", ".join(f"{name}={_shown(value)}" for name, value in zip(names, chosen, strict=True)): dict(
            zip(values, chosen, strict=True)
        )
        for chosen in product(*values.values())
    }
    if values and len(made) < prod(len(several) for several in values.values()):
        raise InputError(f"{origin}: a value is there twice")
    return list(made.items()) if values else []


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def merged(into: Mapping[str, Any], keys: Sequence[str], value: object, place: str) -> dict[str, Any]:
    """A copy with the value at this place; mappings are merged, everything else is replaced."""
    first, *rest = keys
    there = into.get(first)
    if rest or (isinstance(value, dict) and isinstance(there, dict)):
        if not isinstance(there, dict | None):
            raise InputError(f"{place}: {first} holds {there!r}, which has no keys")
        below = dict(there or {})
        if rest:
            return {**into, first: merged(below, rest, value, place)}
        assert isinstance(value, dict)
        for key, inner in value.items():
            below = merged(below, key.split("."), inner, place)
        return {**into, first: below}
    return {**into, first: value}
