"""JSON as it is found in files: strictly and in C where possible, leniently where something is to be explained."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from joulie.cluster.numbers import UnusableNumber, decimal_number, whole_number


class JsonError(ValueError):
    """Text that is not JSON; says where."""


class Header(Struct, rename="camel"):
    """What every object begins with, and the items of a list, each still encoded."""

    kind: str | None = None
    api_version: str | None = None
    items: list[Raw] | UnsetType | None = UNSET


HEADER = msgspec.json.Decoder(Header)
_ARRAY = msgspec.json.Decoder(list[Raw])
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


def bodies(data: bytes) -> list[Any]:
    """The objects of a file: one or several behind each other, or the elements of an array.

    A list comes as its header, so that nothing is read twice.
    """
    try:
        if data.lstrip()[:1] == b"[":
            return list(_ARRAY.decode(data))
        return _consecutive(memoryview(data))
    except msgspec.DecodeError:
        value = plain(data)
        return value if isinstance(value, list) else [value]


def _consecutive(rest: memoryview) -> list[Header | Raw]:
    """What `kubectl get nodes -o json; kubectl get pods -o json` writes is no JSON document, but two of them."""
    found: list[Header | Raw] = []
    while True:
        try:
            header, end = HEADER.decode(rest), len(rest)
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            if trailing is None:
                raise
            end = int(trailing[1]) - 1  # counted from one
            header = HEADER.decode(rest[:end])
        is_list = isinstance(header.items, list) and (header.kind or "List").endswith("List")
        found.append(header if is_list else Raw(rest[:end]))
        rest = rest[end:]
        if not rest:
            return found


def plain(data: bytes | Raw) -> object:
    """Plain Python data. Takes what Python's own `json.dumps` writes beyond the standard: NaN and Infinity."""
    text = str(memoryview(data), "utf-8")
    try:
        value: object = json.loads(
            text, parse_constant=UnusableNumber, parse_float=decimal_number, parse_int=whole_number
        )
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            raise JsonError(f"line {error.lineno}: the JSON ends too early: is the file cut off?") from None
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise JsonError(f"line {error.lineno}, column {error.colno}: {reason}") from None
    try:
        msgspec.json.encode(value, enc_hook=str)  # half a surrogate pair can be written but never be shown
    except UnicodeEncodeError:
        raise JsonError("an escaped character is half of a surrogate pair") from None
    return value
