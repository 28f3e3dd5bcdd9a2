"""JSON merge patches (RFC 7386): the smallest one that turns an object of ours into another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct


def merge_patch(there: Struct, wanted: Struct) -> dict[str, Any]:
    """What differs, None for what is to go; fields that only newer versions know are left alone."""
    return difference(msgspec.to_builtins(there), msgspec.to_builtins(wanted))


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The same for plain values."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch
