"""From the names of a request to rows of the board, all at once.

A dictionary has to be asked for each name by itself, and at 20,000 names its keys lie scattered over more memory than a
processor keeps at hand: a name then costs a third of a microsecond. Here names are compared in arrays that lie
together, so that four times the names cost four times as much.
"""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard

Rows = NDArray[np.intp]

_WORD_BYTES = 8
_ROOM = 8  # slots a name: nearly all names then have a slot of their own
_NOBODY = b"\n"  # stands for a row that is free: no node has this name


class RowTable:
    """The names of the board's rows, made anew when a name has come or gone.

    A name's slot is a weighted sum of its words. The few that lose their slot to another stand in a dictionary.
    """

    def __init__(self, board: ScoreBoard) -> None:
        self._board = board
        self._version = -1

    def find(self, names: list[bytes]) -> Rows | None:
        """The row of each name; None where not all are known."""
        if self._version != self._board.index_version:
            self._build()
        asked = np.array(names, self._names.dtype)
        rows = self._row_in[self._slots(asked)]
        strangers = self._names[rows] != asked
        if strangers.any():
            for place in np.flatnonzero(strangers).tolist():
                row = self._displaced.get(names[place])
                if row is None:
                    return None
                rows[place] = row
        return rows

    def _build(self) -> None:
        names = [name.encode() or _NOBODY for name in self._board.names] or [_NOBODY]
        # One byte more than the longest: what is longer is cut there, and then equals none of them.
        words = -(-(max(map(len, names)) + 1) // _WORD_BYTES)
        self._names = np.array(names, f"S{words * _WORD_BYTES}")
        chance = Random(len(names))
        self._weights = np.array([chance.getrandbits(64) | 1 for _ in range(words)], np.uint64)
        bits = (_ROOM * len(names)).bit_length()
        self._shift = np.uint64(64 - bits)
        slots, rows = self._slots(self._names), np.arange(len(names))
        self._row_in = np.zeros(1 << bits, np.intp)
        self._row_in[slots] = rows
        displaced = np.flatnonzero(self._row_in[slots] != rows).tolist()
        self._displaced = {names[row]: row for row in displaced if names[row] != _NOBODY}
        self._version = self._board.index_version

    def _slots(self, names: NDArray[np.bytes_]) -> Rows:
        words = names.view(np.uint64).reshape(len(names), len(self._weights))
        return (words @ self._weights >> self._shift).view(np.intp)
