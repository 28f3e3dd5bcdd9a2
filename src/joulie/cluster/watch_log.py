"""What happens to watches, counted and said."""

from __future__ import annotations

from collections.abc import Callable

from joulie.cluster.observer import ClusterObserver, ContactClock
from joulie.cluster.port import Resource
from joulie.logs import Log


def _nobody(_kind: str) -> None:
    """Nobody counts."""


class WatchLog(ClusterObserver):
    """Counts what happens to watches and says it when it changes, so that an outage is a handful of lines."""

    def __init__(self, component: str) -> None:
        self.on_relist: Callable[[str], None] = _nobody
        self.on_error: Callable[[str], None] = _nobody
        self._log = Log(component)
        self._listed: set[Resource] = set()
        self._down: set[Resource] = set()

    def listed(self, resource: Resource, total: int, pages: int) -> None:
        if resource in self._listed:
            self.on_relist(resource.kind)
        self._listed.add(resource)

    def contact(self, resource: Resource) -> None:
        if resource in self._down:
            self._down.discard(resource)
            if not self._down:
                self._log.info("all watches are back")

    def failed(self, resource: Resource, reason: str, wait_s: float) -> None:
        self.on_error(resource.kind)
        if not self._down:
            self._log.warning("watch failed, it is tried again", kind=resource.kind, reason=reason)
        self._down.add(resource)


class ContactLog(WatchLog):
    """Remembers besides when the API server last spoke."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        self.clock = ContactClock()

    def contact(self, resource: Resource) -> None:
        super().contact(resource)
        self.clock.contact(resource)
