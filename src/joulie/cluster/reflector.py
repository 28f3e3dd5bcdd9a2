"""Keeps telling what happens to a kind of object, through broken connections, expired versions and restarts.

List once, page by page, then follow a watch from the list's version. A watch that ends is resumed where it ended; one
that cannot be resumed (410) is preceded by a new list, of which only the differences are told.

A server whose data were restored from a backup begins again at an older version, and nobody says so: a watch from a
version that is yet to come is simply silent. So silence from the beginning of a watch leads to a new list, too, and
versions that go back make everything in it count as changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from joulie.cluster.backoff import Backoff
from joulie.cluster.ledger import Ledger, version_number
from joulie.cluster.list_watch import GONE, ListWatch, Scope
from joulie.cluster.observer import ClusterObserver
from joulie.cluster.port import Change, ClusterError, Decode, SilenceError

T = TypeVar("T")

STEADY_S = 5.0  # a watch that lasted this long shows that the trouble before it is over


class Reflector(Generic[T]):
    """One watch of the port. `closed` ends it; whoever sets it also ends the call that is under way."""

    def __init__(
        self,
        server: ListWatch,
        scope: Scope,
        decode: Decode[T],
        *,
        closed: asyncio.Event,
        observer: ClusterObserver | None = None,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._scope = scope
        self._closed = closed
        self._observer = observer or ClusterObserver()
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._ledger = Ledger(decode)
        self._version = ""  # "": to be listed
        self._latest = 0  # version that was ever heard of in this history
        self._heard = False  # anything on this watch

    async def batches(self) -> AsyncGenerator[Sequence[Change[T]], None]:
        """Changes for ever, as the port promises."""
        while not self._closed.is_set():
            began_s = self._clock()
            error: ClusterError | None = None
            try:
                if not self._version:
                    async with aclosing(self._list()) as pages:
                        async for batch in pages:
                            yield batch
                    began_s = self._clock()
                async with aclosing(self._follow()) as heard:
                    async for batch in heard:
                        yield batch
            except ClusterError as fault:
                error = fault
            if not self._closed.is_set():
                await self._before_next_try(error, lasted_s=self._clock() - began_s)

    async def _list(self) -> AsyncGenerator[Sequence[Change[T]], None]:
        self._ledger.begin_list()
        token, pages, total = "", 0, 0
        while True:
            page = await self._server.list_page(self._scope, token)
            self._observer.contact(self._scope.resource)
            if pages == 0 and self._has_gone_back(page.resource_version):
                self._doubt()
            pages, total, token = pages + 1, total + len(page.items), page.continue_token
            changes = self._ledger.take_page(page.items)
            if not token:
                changes += self._ledger.end_list()
                self._know(page.resource_version)
                self._observer.listed(self._scope.resource, total, pages)
            if changes:
                yield changes
            if not token:
                return

    async def _follow(self) -> AsyncGenerator[Sequence[Change[T]], None]:
        self._heard = False
        async with aclosing(self._server.watch_from(self._scope, self._version)) as watch:
            async for events in watch:
                self._heard = True
                self._observer.contact(self._scope.resource)
                changes, version, unread = self._ledger.take_events(events)
                fault = f"an event that cannot be read: {unread}" if unread else ""
                if self._has_gone_back(version):
                    fault = f"versions went back from {self._latest} to {version}: all is listed again"
                    self._doubt()
                self._know(version or self._version)
                if fault:
                    self._version = ""  # what was in that event, or before it, can only be had by listing
                if changes:
                    yield changes
                if fault:
                    raise ClusterError(fault)

    def _know(self, version: str) -> None:
        self._version, self._latest = version, max(self._latest, version_number(version))

    def _has_gone_back(self, version: str) -> bool:
        """Whether this is another history than the one that was heard so far."""
        return 0 < version_number(version) < self._latest

    def _doubt(self) -> None:
        """Another history begins."""
        self._ledger.doubt()
        self._latest = 0

    async def _before_next_try(self, error: ClusterError | None, lasted_s: float) -> None:
        """Waits after anything but a good long watch: a server that ends each at once must not be hammered."""
        if lasted_s >= STEADY_S:
            self._backoff.reset()
        if error is None and lasted_s >= STEADY_S:
            self._observer.reconnected(self._scope.resource, "ended by the server in good order")
            return
        wait_s = self._backoff.next_s(error.retry_after_s if error else None)
        if error is None:
            self._observer.reconnected(self._scope.resource, f"ended by the server after {lasted_s:.1f} s")
        else:
            if error.status == GONE or (isinstance(error, SilenceError) and not self._heard):
                self._version = ""
            self._observer.failed(self._scope.resource, str(error), wait_s, error.status)
        try:
            async with asyncio.timeout(wait_s):
                await self._closed.wait()
        except TimeoutError:
            return
