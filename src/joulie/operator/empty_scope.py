"""Delays the removal of all twins: a typo in a selector must not uncap a whole cluster at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from joulie.model.api import NodeTwin
from joulie.model.snapshot import Node
from joulie.operator.writes import LEFT_SCOPE, Job

SEVERAL = 2  # with a single node, a mistake looks the same as an intended removal


class EmptyScope:
    """Measures how long no node has been in scope while nodes with twins exist.

    Kept in memory only: a restarted operator waits the full time again, which is the safe choice.
    """

    def __init__(self, grace_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grace_s = grace_s
        self._clock = clock
        self._since_s: float | None = None

    def left_s(self, in_scope: int, nodes: Mapping[str, Node], twins: Mapping[str, NodeTwin]) -> float:
        """How much longer removals must wait; 0: not at all."""
        if in_scope or sum(name in nodes for name in twins) < SEVERAL:
            self._since_s = None
            return 0.0
        now_s = self._clock()
        self._since_s = now_s if self._since_s is None else self._since_s
        return max(0.0, self._since_s + self._grace_s - now_s)

    @staticmethod
    def without_removals(jobs: Iterable[Job], nodes: Mapping[str, Node]) -> list[Job]:
        """The jobs without delayed removals; twins of deleted nodes are removed at once."""
        return [job for job in jobs if job.reason != LEFT_SCOPE or job.node not in nodes]
