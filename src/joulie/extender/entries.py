"""Entries of responses as arrays of equal length, so that numpy gathers and copies them without an object per node.

JSON allows blanks around a value, so each entry is padded to the longest: `{"Host":"n7","Score":   50}`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.char  # otherwise numpy loads it on first use, and a request must not depend on a file
from numpy.typing import NDArray

from joulie.control.placement.board import ScoreBoard

_SCORED, _TOLD = b',{"Host":%b,"Score":', b",%b:"


class _Rendered:
    """The start of each row's entry in one format, padded with blanks."""

    def __init__(self, form: bytes, ends: Sequence[bytes]) -> None:
        self._form = form
        longest = max(map(len, ends))
        self._ends = np.array([end.rjust(longest) for end in ends])
        self._heads: NDArray[np.bytes_] = np.empty(0, dtype="S1")

    def render(self, names: Sequence[str], new: list[int]) -> None:
        heads = [self._form % msgspec.json.encode(names[row]) for row in new]
        grown = np.zeros(len(names) - len(self._heads), self._heads.dtype)
        self._heads = np.append(self._heads, grown)
        longest = max(map(len, heads), default=0)
        if longest > self._heads.dtype.itemsize:
            self._heads = np.char.ljust(self._heads, longest)
        self._heads[new] = [head.ljust(self._heads.dtype.itemsize) for head in heads]
        self._dtype = np.dtype([("head", self._heads.dtype), ("end", self._ends.dtype)])

    def of(self, rows: NDArray[np.intp], ends: NDArray[np.integer]) -> memoryview:
        entries = np.empty(len(rows), self._dtype)
        entries["head"] = self._heads[rows]
        entries["end"] = self._ends[ends]
        return entries.view(np.uint8).data


class Entries:
    """The entry of each row; rows are rendered when a name was added or removed."""

    def __init__(self, board: ScoreBoard, score_max: int, reasons: Sequence[str] = ("",)) -> None:
        self._board = board
        self._version = -1
        self._rendered: list[str] = []  # the rendered name by row
        self._scored = _Rendered(_SCORED, [b"%d}" % points for points in range(score_max + 1)])
        self._told = _Rendered(_TOLD, [msgspec.json.encode(reason) for reason in reasons])

    def of(self, rows: NDArray[np.intp], points: NDArray[np.int64]) -> memoryview:
        """A score entry for each row, each with a leading comma."""
        self._render()
        return self._scored.of(rows, points)

    def reasons_of(self, rows: NDArray[np.intp], reasons: NDArray[np.int8]) -> memoryview:
        """A key with its reason (by number) for each row, each with a leading comma."""
        self._render()
        return self._told.of(rows, reasons)

    def of_unknown(self, names: Sequence[bytes], points: int) -> bytes:
        """Entries for nodes without a row; names as they are between the quotes."""
        if not names:
            return b""
        end = b'","Score":%d}' % points
        return b',{"Host":"' + (end + b',{"Host":"').join(names) + end

    def _render(self) -> None:
        """Renders the rows whose name has changed."""
        if self._version == self._board.index_version:
            return
        names, known = self._board.names, self._rendered
        known += [""] * (len(names) - len(known))
        new = [row for row, name in enumerate(names) if name != known[row]]
        for rendered in (self._scored, self._told):
            rendered.render(names, new)
        self._rendered = names.copy()
        self._version = self._board.index_version
