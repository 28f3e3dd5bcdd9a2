"""Callbacks about the exchange with the API server, for metrics, logs and health checks.

The cluster code itself logs nothing; the default observer ignores everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from joulie.cluster.port import Resource


class ClusterObserver:
    """Override what is of interest. Called in the event loop, so methods must return quickly."""

    def contact(self, resource: Resource) -> None:
        """The server sent something: a successful response, an event or a bookmark."""

    def watched(self, resource: Resource) -> None:
        """A watch is alive: it delivered a page of its list, an event or a bookmark; `contact` is called, too."""

    def answered(self, verb: str, resource: Resource, status: int, duration_s: float) -> None:
        """A call other than a watch ended; status 0: no response."""

    def listed(self, resource: Resource, total: int, pages: int) -> None:
        """A list is complete. The first is normal; each later one follows a gap."""

    def reconnected(self, resource: Resource, reason: str) -> None:
        """A watch was closed normally and is resumed where it ended."""

    def failed(self, resource: Resource, reason: str, wait_s: float, status: int) -> None:
        """A list or watch failed and is retried after this wait; status 0: no response."""


class ContactClock(ClusterObserver):
    """Remembers when the server was last heard from, overall and about each kind."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s: float | None = None
        self._last_s_of: dict[Resource, float] = {}
        self._watched_s_of: dict[Resource, float] = {}

    def contact(self, resource: Resource) -> None:
        self._last_s = self._last_s_of[resource] = self._clock()

    def watched(self, resource: Resource) -> None:
        self._watched_s_of[resource] = self._clock()

    def watch_age_s(self, resource: Resource) -> float | None:
        """Seconds since the watch of a kind last delivered anything; None before the first time."""
        last_s = self._watched_s_of.get(resource)
        return None if last_s is None else max(0.0, self._clock() - last_s)

    def age_s(self, resource: Resource | None = None) -> float | None:
        """Seconds since the last contact, about one kind or any; None before the first."""
        last_s = self._last_s if resource is None else self._last_s_of.get(resource)
        return None if last_s is None else max(0.0, self._clock() - last_s)
