"""Scores as the bytes of an answer, without an object for each: entries of equal length, gathered and copied at once.

JSON allows blanks between a key and its value, so each entry is as long as the longest: `{"Host":"n7","Score":   50}`.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard


class Entries:
    """What an answer says of each row; a row is rendered when it is first asked for."""

    def __init__(self, board: ScoreBoard, score_max: int) -> None:
        self._board = board
        self._heads: NDArray[np.bytes_] = np.empty(0, dtype="S1")  # by row, filled up with blanks
        self._rendered: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        width = len(str(score_max))
        self._ends = np.array([b"%*d}" % (width, points) for points in range(score_max + 1)])

    def of(self, rows: NDArray[np.intp], points: NDArray[np.int64]) -> bytes:
        """One entry a row, each with a comma before it."""
        self._render(rows)
        entries = np.empty(len(rows), [("head", self._heads.dtype), ("end", self._ends.dtype)])
        entries["head"] = self._heads[rows]
        entries["end"] = self._ends[points]
        return entries.tobytes()

    def of_unknown(self, name: str, points: int) -> bytes:
        """An entry for a node that has no row."""
        return _head(name) + bytes(self._ends[points])

    def forget(self, row: int) -> None:
        """The row is another node's from now on."""
        self._rendered[row : row + 1] = False

    def _render(self, rows: NDArray[np.intp]) -> None:
        missing = len(self._board.updated_s) - len(self._heads)
        if missing > 0:
            self._heads = np.append(self._heads, np.zeros(missing, self._heads.dtype))
            self._rendered = np.append(self._rendered, np.zeros(missing, np.bool_))
        if self._rendered[rows].all():
            return
        new = rows[~self._rendered[rows]]
        heads = [_head(self._board.names[row]) for row in new.tolist()]
        longest = max(map(len, heads))
        if longest > self._heads.dtype.itemsize:
            self._heads = np.char.ljust(self._heads, longest)
        self._heads[new] = [head.ljust(self._heads.dtype.itemsize) for head in heads]
        self._rendered[new] = True


def _head(name: str) -> bytes:
    return b',{"Host":%b,"Score":' % msgspec.json.encode(name)
