"""Scores as the bytes of an answer, without an object for each: entries of equal length, gathered and copied at once.

JSON allows blanks between a key and its value, so each entry is as long as the longest: `{"Host":"n7","Score":   50}`.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard


class Entries:
    """What an answer says of each row; all rows are rendered when a name has come or gone."""

    def __init__(self, board: ScoreBoard, score_max: int) -> None:
        self._board = board
        self._version = -1
        self._heads: NDArray[np.bytes_] = np.empty(0, dtype="S1")  # by row, filled up with blanks
        self._rendered: list[str] = []  # by row, whose name it says
        width = len(str(score_max))
        self._ends = np.array([b"%*d}" % (width, points) for points in range(score_max + 1)])

    def of(self, rows: NDArray[np.intp], points: NDArray[np.int64]) -> memoryview:
        """One entry a row, each with a comma before it."""
        if self._version != self._board.index_version:
            self._render()
        entries = np.empty(len(rows), self._dtype)
        entries["head"] = self._heads[rows]
        entries["end"] = self._ends[points]
        return entries.view(np.uint8).data

    def of_unknown(self, name: str, points: int) -> bytes:
        """An entry for a node that has no row."""
        return _head(name) + bytes(self._ends[points])

    def _render(self) -> None:
        """Those whose name is another than before."""
        names, known = self._board.names, self._rendered
        known += [""] * (len(names) - len(known))
        new = [row for row, name in enumerate(names) if name != known[row]]
        heads = [_head(names[row]) for row in new]
        grown = np.zeros(len(names) - len(self._heads), self._heads.dtype)
        self._heads = np.append(self._heads, grown)
        longest = max(map(len, heads), default=0)
        if longest > self._heads.dtype.itemsize:
            self._heads = np.char.ljust(self._heads, longest)
        self._heads[new] = [head.ljust(self._heads.dtype.itemsize) for head in heads]
        self._rendered = names.copy()
        self._dtype = np.dtype([("head", self._heads.dtype), ("end", self._ends.dtype)])
        self._version = self._board.index_version


def _head(name: str) -> bytes:
    return b',{"Host":%b,"Score":' % msgspec.json.encode(name)
