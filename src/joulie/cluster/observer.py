"""What a process may want to know about its conversation with the API server: for metrics, logs and health.

The cluster code logs nothing itself. It tells an observer, which by default does not listen.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from joulie.cluster.port import Resource


class ClusterObserver:
    """Told what happens; override what is of interest. Called in the event loop, so it must be quick."""

    def contact(self, resource: Resource) -> None:
        """The server spoke: a successful answer, an event or a bookmark."""

    def answered(self, verb: str, resource: Resource, status: int, duration_s: float) -> None:
        """A call other than a watch ended; status 0: no answer."""

    def listed(self, resource: Resource, total: int, pages: int) -> None:
        """A list was read to its end. The first is normal; each later one closed a gap in what was seen."""

    def reconnected(self, resource: Resource, reason: str) -> None:
        """A watch ended in good order and is taken up where it ended."""

    def failed(self, resource: Resource, reason: str, wait_s: float, status: int) -> None:
        """A list or watch failed, and is tried again after this wait; status 0: no answer."""


class ContactClock(ClusterObserver):
    """Remembers when the server last spoke, overall and about each kind."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s: float | None = None
        self._last_s_of: dict[Resource, float] = {}

    def contact(self, resource: Resource) -> None:
        self._last_s = self._last_s_of[resource] = self._clock()

    def age_s(self, resource: Resource | None = None) -> float | None:
        """Seconds since the last contact, about one kind or at all; None before the first."""
        last_s = self._last_s if resource is None else self._last_s_of.get(resource)
        return None if last_s is None else max(0.0, self._clock() - last_s)
