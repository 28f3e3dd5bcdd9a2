"""Counts and logs what happens to watches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from joulie.cluster.port import Resource
from joulie.cluster.watch.observer import ClusterObserver, ContactClock
from joulie.logs import Log

# Sent by an API server that lacks the kind or forbids it; one that has just started may do so for a moment.
NOT_CURED_BY_WAITING, PERSISTENT = (401, 403, 404), 5
SETTLED_S = 5.0  # watches that stall together are noticed one by one


def _ignore(_kind: str) -> None:
    """The default: nothing is counted."""


class WatchLog(ClusterObserver):
    """Counts watch failures, and logs the start, a lasting cause and the end of an outage."""

    def __init__(self, component: str, settled_s: float = SETTLED_S) -> None:
        self.on_relist: Callable[[str], None] = _ignore
        self.on_error: Callable[[str], None] = _ignore
        self._log = Log(component)
        self._listed: set[Resource] = set()
        self._down: set[Resource] = set()
        self._refused = Counter[tuple[Resource, int]]()
        self._settled_s = settled_s
        self._settling: asyncio.TimerHandle | None = None  # all watches have recovered, but only just

    def listed(self, resource: Resource, total: int, pages: int) -> None:
        if resource in self._listed:
            self.on_relist(resource.kind)
        self._listed.add(resource)

    def contact(self, resource: Resource) -> None:
        if resource in self._down:
            self._down.discard(resource)
            if not self._down:
                self._settling = asyncio.get_running_loop().call_later(self._settled_s, self._settle)

    def failed(self, resource: Resource, reason: str, wait_s: float, status: int) -> None:
        self.on_error(resource.kind)
        begins = not self._down and self._settling is None
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if status in NOT_CURED_BY_WAITING:
            self._refused[resource, status] += 1
        if begins or self._refused[resource, status] == PERSISTENT:
            self._log.warning("watch failed; retrying", kind=resource.kind, reason=reason)
            self._refused[resource, status] = PERSISTENT + 1  # logged
        self._down.add(resource)

    def _settle(self) -> None:
        self._settling = None
        self._refused.clear()
        self._log.info("all watches are back")


class ContactLog(WatchLog):
    """Also remembers when the API server was last heard from."""

    def __init__(self, component: str, settled_s: float = SETTLED_S) -> None:
        super().__init__(component, settled_s)
        self.clock = ContactClock()

    def contact(self, resource: Resource) -> None:
        super().contact(resource)
        self.clock.contact(resource)

    def watched(self, resource: Resource) -> None:
        self.clock.watched(resource)
