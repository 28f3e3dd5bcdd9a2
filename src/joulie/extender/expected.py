"""Pods that were just asked about and that no watch shows bound yet.

kube-scheduler binds faster than news of it come back: on a busy machine, hundreds of pods later. Until then the nodes
that looked best go on looking best, and the whole burst would go there. So each pod's power is expected where it will
most likely go: in equal parts on the candidates that scored highest. The expectation ends when the watch tells where
the pod went, or after a few seconds.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard
from joulie.control.survey import NANOWATTS
from joulie.extender.answers import Scored

EXPECTED_FOR_S = 5.0  # longer than any binding takes; a pod that is still not bound is asked about again
MOST_PODS = 10_000  # far more than a scheduler binds in that time; whoever asks for more is no scheduler
MOST_TIES = 64  # among more equal nodes the scheduler's own dice spread well enough


class _Expectation(NamedTuple):
    until_s: float
    rows: NDArray[np.intp]
    watts: NDArray[np.float64]


class ExpectedPods:
    """Adds to the board's `expected_w`, and takes away exactly what it added: watts are whole nanowatts."""

    def __init__(self, board: ScoreBoard) -> None:
        self._board = board
        self._of: dict[str, _Expectation] = {}
        self._ends: deque[tuple[float, str]] = deque()

    def expect(self, key: str, scored: Scored, now_s: float) -> None:
        """The scheduler will most likely take one of the best."""
        self.settle(key)
        if not len(scored.rows) or len(self._of) >= MOST_PODS:
            return
        best = scored.rows[scored.points == scored.points.max()]
        if len(best) > MOST_TIES:
            return
        cooling = np.maximum(1.0, self._board.columns.pue[best])  # part of the pod's cost, not of the node's power
        watts = np.rint(scored.marginal_w[best] / cooling / len(best) * NANOWATTS) / NANOWATTS
        self._of[key] = _Expectation(now_s + EXPECTED_FOR_S, best, watts)
        self._ends.append((now_s + EXPECTED_FOR_S, key))
        self._board.expect(best, watts)

    def settle(self, key: str) -> None:
        """The watch tells where the pod went, or that it is gone; or it is asked about again."""
        expectation = self._of.pop(key, None)
        if expectation is not None:
            self._board.expect(expectation.rows, -expectation.watts)

    def expire(self, now_s: float) -> None:
        """End what has been expected for too long; also where the clock was set back."""
        while self._ends and not now_s <= self._ends[0][0] <= now_s + EXPECTED_FOR_S:
            until_s, key = self._ends.popleft()
            expectation = self._of.get(key)
            if expectation is not None and expectation.until_s == until_s:
                self.settle(key)

    def forget_rows(self) -> None:
        """Rows are about to belong to other nodes: expect nothing any more."""
        for key in list(self._of):
            self.settle(key)
