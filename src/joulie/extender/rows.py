"""From the names of a request to rows of the board, all at once.

A dictionary has to be asked for each name by itself, and at 20,000 names its keys lie scattered over more memory than a
processor keeps at hand: a name then costs a third of a microsecond. Here names are compared as words in arrays that lie
together, so that four times the names cost four times as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard

Words = NDArray[np.uint64]
Places = NDArray[np.intp]

_WORD_BYTES = 8
_HALF = np.uint64(32)
_FACTOR, _OTHER_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)  # odd, bits well mixed
_ROOM = 8  # slots a name: most names then have a slot of their own


class RowTable:
    """The names of the board's rows, made anew when a name has come or gone.

    Each name has a slot in a first table; whoever loses its slot to another has one in a second table, and the very
    few that lose again stand in a dictionary.
    """

    def __init__(self, board: ScoreBoard) -> None:
        self._board = board
        self._version = -1

    def find(self, names: list[bytes]) -> Places | None:
        """The row of each name; None where not all are known."""
        if self._version != self._board.index_version:
            self._build()
        if not len(self._rows):
            return None
        words = self._words_of(names)
        mixed = _mixed(words)
        at = self._first[self._slots(mixed)]
        wrong = np.flatnonzero(~self._equal(at, words))
        if len(wrong):
            at[wrong] = self._second[self._slots(mixed[wrong] * _OTHER_FACTOR)]
            for place in wrong[~self._equal(at[wrong], [column[wrong] for column in words])].tolist():
                known = self._rest.get(names[place])
                if known is None:
                    return None
                at[place] = known
        return self._rows[at]

    def _build(self) -> None:
        index = self._board.index
        names = [name.encode() for name in index]
        # One byte more than the longest: what is longer is cut there, and then equals none of them.
        width = -(-(max(map(len, names), default=0) + 1) // _WORD_BYTES)
        self._dtype = np.dtype(f"S{width * _WORD_BYTES}")
        self._words = [column.copy() for column in self._words_of(names)]
        self._rows = np.fromiter(index.values(), np.intp, len(names))
        bits = max(1, (_ROOM * len(names)).bit_length())
        self._shift = np.uint64(64 - bits)
        mixed, everyone = _mixed(self._words), np.arange(len(names))
        self._first, lost = _placed(everyone, self._slots(mixed), 1 << bits)
        self._second, lost = _placed(lost, self._slots(mixed[lost] * _OTHER_FACTOR), 1 << bits)
        self._rest = {names[place]: place for place in lost.tolist()}
        self._version = self._board.index_version

    def _words_of(self, names: list[bytes]) -> list[Words]:
        """Column by column: the first eight bytes of each name, the next eight, …"""
        width = self._dtype.itemsize // _WORD_BYTES
        rows = np.array(names, dtype=self._dtype).view(np.uint64).reshape(len(names), width)
        return [rows[:, column] for column in range(width)]

    def _equal(self, at: Places, words: list[Words]) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = self._words[0][at] == words[0]
        for mine, theirs in zip(self._words[1:], words[1:], strict=True):
            same &= mine[at] == theirs
        return same

    def _slots(self, mixed: Words) -> Places:
        return (mixed >> self._shift).astype(np.intp)


def _placed(places: Places, slots: Places, size: int) -> tuple[Places, Places]:
    """A table with a place in each slot, and those that found theirs taken."""
    table = np.zeros(size, np.intp)
    table[slots] = places
    return table, places[table[slots] != places]


def _mixed(words: list[Words]) -> Words:
    mixed = np.zeros(len(words[0]), np.uint64)
    for column in words:
        mixed += column
        mixed *= _FACTOR
        mixed ^= mixed >> _HALF
    return mixed * _FACTOR
