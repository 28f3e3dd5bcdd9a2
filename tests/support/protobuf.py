"""Protocol buffers, written as far as tests need them: embedded messages, texts and numbers."""

from __future__ import annotations


def field(number: int, value: bytes | str | int) -> bytes:
    """One field; a message is the sum of its fields."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
