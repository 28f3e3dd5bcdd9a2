"""JSON documents in files: decoded strictly in C where possible, leniently where an error must be explained."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from joulie.cluster.decoding.numbers import UnusableNumber, decimal_number, whole_number


class JsonError(ValueError):
    """Text that is not JSON; the message names the position."""


class Header(Struct, rename="camel"):
    """Kind and version of an object, and the items of a list, each still encoded."""

    kind: str | None = None
    api_version: str | None = None
    items: list[Raw] | UnsetType | None = UNSET


HEADER = msgspec.json.Decoder(Header)
_ARRAY = msgspec.json.Decoder(list[Raw])
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


def bodies(data: bytes) -> list[Any]:
    """The objects of a file: one or several consecutive documents, or the elements of an array.

    A list is returned as its header, so that nothing is decoded twice.
    """
    try:
        if data.lstrip()[:1] == b"[":
            return list(_ARRAY.decode(data))
        return _consecutive(memoryview(data))
    except msgspec.DecodeError:
        value = plain(data)
        return value if isinstance(value, list) else [value]


def _consecutive(rest: memoryview) -> list[Header | Raw]:
    """`kubectl get nodes -o json; kubectl get pods -o json` writes two documents in a row."""
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
    """Plain Python data. Accepts NaN and Infinity, which `json.dumps` writes although JSON lacks them."""
    text = str(memoryview(data), "utf-8")
    try:
        value: object = json.loads(
            text, parse_constant=UnusableNumber, parse_float=decimal_number, parse_int=whole_number
        )
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            raise JsonError(f"line {error.lineno}: the JSON ends too early: is the file truncated?") from None
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise JsonError(f"line {error.lineno}, column {error.colno}: {reason}") from None
    try:
        msgspec.json.encode(value, enc_hook=str)  # half of a surrogate pair can be encoded but not displayed
    except UnicodeEncodeError:
        raise JsonError("an escaped character is half of a surrogate pair") from None
    return value
