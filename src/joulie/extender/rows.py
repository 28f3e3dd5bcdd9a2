"""Looks up the rows of all names in a request at once.

A dictionary is asked for each name, and the keys of 20,000 names are scattered over more memory than the CPU caches
hold: a name then costs a third of a microsecond. Here names are compared in contiguous arrays where they are in the
request, without an object per name, so that cost grows linearly.
"""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from joulie.control.placement.board import ScoreBoard

Rows = NDArray[np.intp]
Words = NDArray[np.uint64]

UNKNOWN_ROW = -1
_WORD_BYTES = 8
_ROOM = 8  # slots per name, so that collisions are rare
_NO_NAME = b"\n"  # placeholder for a free row; no node has this name
_QUOTE = ord('"')


@cache
def _masks(words: int) -> Words:
    """Masks by length of a name: which bytes of the words belong to it."""
    size = words * _WORD_BYTES
    return (
        np.array([b"\xff" * length + bytes(size - length) for length in range(size + 1)], f"V{size}")
        .view(np.uint64)
        .reshape(size + 1, words)
    )


class Names:
    """The names in a JSON list such as `["n1","n2"]`, as kube-scheduler writes it: no blanks, no escapes."""

    def __init__(self, listed: bytes, quotes: Rows) -> None:
        self._listed = listed
        self._starts, self._ends = quotes[0::2] + 1, quotes[1::2]

    @classmethod
    def read(cls, listed: bytes) -> Names | None:
        """None if the JSON is formatted differently or is not a list of strings."""
        if not (listed.startswith(b'["') and listed.endswith(b'"]') and listed.isascii()) or b"\\" in listed:
            return None
        quotes = np.flatnonzero(np.frombuffer(listed, np.uint8) == _QUOTE)
        only_commas_between = (quotes[2::2] - quotes[1:-1:2] == len('",')).all()
        return cls(listed, quotes) if only_commas_between and quotes[-1] == len(listed) - len('"]') else None

    def __len__(self) -> int:
        return len(self._starts)

    def at(self, place: int) -> bytes:
        return self._listed[self._starts[place] : self._ends[place]]

    def words(self, count: int) -> Words:
        """The first words of each name, padded with zeros; longer names are cut."""
        size = count * _WORD_BYTES
        filled = self._listed + bytes(size)
        at_every_byte: NDArray[np.void] = np.ndarray(len(self._listed), f"V{size}", filled, 0, (1,))
        words = at_every_byte[self._starts].view(np.uint64).reshape(len(self), count)
        lengths = np.minimum(self._ends - self._starts, size)
        shortest = int(lengths.min())
        if shortest == lengths.max():  # names of a pool often have the same length
            words &= _masks(count)[shortest]
        else:
            words &= _masks(count)[lengths]
        return words

    def those(self, chosen: NDArray[np.bool_]) -> bytes:
        """A JSON list of some of the names; at least one."""
        each_with_comma = np.repeat(chosen, self._ends - self._starts + len('"",'))[:-1]
        kept = np.frombuffer(self._listed, np.uint8)[1:-1][each_with_comma].tobytes()
        return b"[%b]" % kept.removesuffix(b",")


class RowTable:
    """A hash table of the board's names, rebuilt when a name was added or removed.

    The hash is a weighted sum of a name's words. The few names that collide are in a dictionary.
    """

    def __init__(self, board: ScoreBoard) -> None:
        self._board = board
        self._version = -1

    def find(self, names: Names) -> Rows:
        """The row of each name, or `UNKNOWN_ROW`."""
        if self._version != self._board.index_version:
            self._build()
        asked = names.words(len(self._weights))
        slots = self._slots(asked)
        rows: Rows = self._row_in[slots]
        differs = self._names[rows].view(np.uint64).reshape(asked.shape) != asked
        if differs.any():
            others = differs.any(axis=1)
            rows[others] = UNKNOWN_ROW
            for place in np.flatnonzero(others & self._is_shared[slots]).tolist():
                rows[place] = self._displaced.get(names.at(place), UNKNOWN_ROW)
        return rows

    def _build(self) -> None:
        names = [name.encode() or _NO_NAME for name in self._board.names] or [_NO_NAME]
        # One byte more than the longest name: longer names are cut there and then match none.
        words = -(-(max(map(len, names)) + 1) // _WORD_BYTES)
        self._names = np.array(names, f"S{words * _WORD_BYTES}").view(f"V{words * _WORD_BYTES}")
        chance = Random(len(names))
        self._weights = np.array([chance.getrandbits(64) | 1 for _ in range(words)], np.uint64)
        bits = (_ROOM * len(names)).bit_length()
        self._shift = np.uint64(64 - bits)
        as_words = self._names.view(np.uint64).reshape(len(names), words)
        slots, rows = self._slots(as_words), np.arange(len(names))
        self._row_in = np.zeros(1 << bits, np.intp)
        self._row_in[slots] = rows
        displaced = np.flatnonzero(self._row_in[slots] != rows)
        self._displaced = {names[row]: row for row in displaced.tolist() if names[row] != _NO_NAME}
        self._is_shared = np.zeros(len(self._row_in), np.bool_)
        self._is_shared[slots[displaced]] = True
        self._version = self._board.index_version

    def _slots(self, words: Words) -> Rows:
        return (words @ self._weights >> self._shift).view(np.intp)
