"""What happens to watches, counted and said."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from joulie.cluster.observer import ClusterObserver, ContactClock
from joulie.cluster.port import Resource
from joulie.logs import Log

# What an API server says that has no such kind or forbids it; one that has just started may do so for a moment.
NOT_CURED_BY_WAITING, PERSISTENT = (401, 403, 404), 5
SETTLED_S = 5.0  # watches that fall silent together are noticed one by one, as each had its last news


def _nobody(_kind: str) -> None:
    """Nobody counts."""


class WatchLog(ClusterObserver):
    """Counts what happens to watches, and says of an outage how it began, what it turned out to be, and its end."""

    def __init__(self, component: str, settled_s: float = SETTLED_S) -> None:
        self.on_relist: Callable[[str], None] = _nobody
        self.on_error: Callable[[str], None] = _nobody
        self._log = Log(component)
        self._listed: set[Resource] = set()
        self._down: set[Resource] = set()
        self._refused = Counter[tuple[Resource, int]]()
        self._settled_s = settled_s
        self._settling: asyncio.TimerHandle | None = None  # all are back, but not yet for long

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
            self._log.warning("watch failed, it is tried again", kind=resource.kind, reason=reason)
            self._refused[resource, status] = PERSISTENT + 1  # said
        self._down.add(resource)

    def _settle(self) -> None:
        self._settling = None
        self._refused.clear()
        self._log.info("all watches are back")


class ContactLog(WatchLog):
    """Remembers besides when the API server last spoke."""

    def __init__(self, component: str, settled_s: float = SETTLED_S) -> None:
        super().__init__(component, settled_s)
        self.clock = ContactClock()

    def contact(self, resource: Resource) -> None:
        super().contact(resource)
        self.clock.contact(resource)
