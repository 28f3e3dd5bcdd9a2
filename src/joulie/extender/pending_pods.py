"""Pods that were just scored and that the watch does not show bound yet.

kube-scheduler binds faster than the watch reports it: on a busy machine, hundreds of pods faster. Until then the best
nodes would stay the best, and a whole burst would go there. So each pod's power is expected where it will most likely
go: in equal parts on the candidates with the highest score. The expectation ends when the watch shows where the pod
went, or after a few seconds.

Any client that reaches the port can ask about pods that do not exist. So a pod counts only while the watch shows it
pending with the same requests; one that kube-scheduler sees first counts as soon as the watch shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.control.placement.board import ScoreBoard
from joulie.control.survey import NANOWATTS
from joulie.extender.answers import Scored
from joulie.model.snapshot import Pod

PENDING_FOR_S = 5.0  # longer than any binding takes; a pod that is still pending is scored again
MAX_PODS = 10_000  # far more than a scheduler binds in that time
MAX_TIES = 64  # among more ties the scheduler's own random choice spreads pods well enough


class _PendingPod(NamedTuple):
    until_s: float
    pod: Pod
    rows: NDArray[np.intp]
    watts: NDArray[np.float64]


class PendingPods:
    """Adds to the board's `expected_w` and later subtracts exactly that: watts are multiples of nanowatts."""

    def __init__(self, board: ScoreBoard, waiting: Callable[[str], Pod | None]) -> None:
        self._board, self._waiting = board, waiting  # the pending pod with this key in the watch
        self._of: dict[str, _PendingPod] = {}
        self._unconfirmed: dict[str, _PendingPod] = {}
        self._ends: deque[tuple[float, str]] = deque()
        self.on_unconfirmed: Callable[[], None] = _ignore

    def expect(self, key: str, pod: Pod, scored: Scored, now_s: float) -> None:
        """Expects the pod on its best candidates."""
        self.settle(key)
        if not len(scored.rows) or len(self._of) + len(self._unconfirmed) >= MAX_PODS:
            return
        best = scored.rows[scored.points == scored.points.max()]
        if len(best) > MAX_TIES:
            return
        cooling = np.maximum(1.0, self._board.columns.pue[best])  # part of the pod's cost, not of the node's power
        watts = np.rint(scored.marginal_w[best] / cooling / len(best) * NANOWATTS) / NANOWATTS
        self._unconfirmed[key] = _PendingPod(now_s + PENDING_FOR_S, pod, best, watts)
        self._ends.append((now_s + PENDING_FOR_S, key))
        if not self.confirm(key):
            self.on_unconfirmed()

    def confirm(self, key: str) -> bool:
        """Counts the pod if the watch shows the same one; False if it shows none yet."""
        if key not in self._unconfirmed:
            return True
        shown = self._waiting(key)
        if shown is None:
            return False
        expectation = self._unconfirmed.pop(key)
        if _demand(shown) == _demand(expectation.pod):
            self._of[key] = expectation
            self._board.expect(expectation.rows, expectation.watts)
        return True

    def settle(self, key: str) -> None:
        """Ends the expectation: the pod was bound or deleted, or is scored again."""
        self._unconfirmed.pop(key, None)
        expectation = self._of.pop(key, None)
        if expectation is not None:
            self._board.expect(expectation.rows, -expectation.watts)

    def expire(self, now_s: float) -> None:
        """Ends expectations that have lasted too long, also after the clock was set back."""
        while self._ends and not now_s <= self._ends[0][0] <= now_s + PENDING_FOR_S:
            until_s, key = self._ends.popleft()
            expectation = self._of.get(key) or self._unconfirmed.get(key)
            if expectation is not None and expectation.until_s == until_s:
                self.settle(key)

    def forget_rows(self) -> None:
        """Ends all expectations, because rows will belong to other nodes."""
        for key in [*self._of, *self._unconfirmed]:
            self.settle(key)


def _demand(pod: Pod) -> tuple[float, float, str]:
    return pod.cpu_cores, pod.gpus, pod.workload_class


def _ignore() -> None:
    """The default: nothing is informed."""
