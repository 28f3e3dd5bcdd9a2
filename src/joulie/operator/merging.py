"""JSON merge patches (RFC 7386): the smallest one that turns an object of ours into another."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


def merge_patch(there: Struct, wanted: Struct) -> dict[str, Any]:
    """What differs, None for what is to go; fields that only newer versions know are left alone."""
    return _merge(msgspec.to_builtins(there), msgspec.to_builtins(wanted))


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _merge(before, value)
            if inner:
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch
