"""Follows the changes of one kind through broken connections, expired versions and server restarts.

Lists once, page by page, then watches from the list's version. A watch that ends is resumed where it ended; if it
cannot be resumed (410), a new list yields the differences.

A server restored from a backup continues at an older version without notice: a watch from a version in its future
stays silent. So a watch that is silent from its start leads to a new list too, and if versions have gone back,
everything in that list counts as changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from joulie.cluster.port import Change, ClusterError, Decode, IdleTimeoutError
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.deltas import DeltaTracker, version_number
from joulie.cluster.watch.list_watch import GONE, ListWatch, Scope
from joulie.cluster.watch.observer import ClusterObserver

T = TypeVar("T")

STEADY_S = 5.0  # a watch that lasted this long proves that the outage before it is over


class Reflector(Generic[T]):
    """One watch of the port. `closed` ends it; setting it must also abort the call in progress."""

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
        self._deltas = DeltaTracker(decode)
        self._version = ""  # "": list next
        self._latest = 0  # highest version seen in this history
        self._heard = False  # whether this watch has delivered anything

    async def batches(self) -> AsyncGenerator[Sequence[Change[T]], None]:
        """Batches of changes, as the port promises."""
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
        self._deltas.begin_list()
        token, pages, total = "", 0, 0
        while True:
            page = await self._server.list_page(self._scope, token)
            self._observer.contact(self._scope.resource)
            self._observer.watched(self._scope.resource)
            if pages == 0 and self._has_gone_back(page.resource_version):
                self._start_new_history()
            pages, total, token = pages + 1, total + len(page.items), page.continue_token
            changes = self._deltas.take_page(page.items)
            if not token:
                changes += self._deltas.end_list()
                self._advance_to(page.resource_version)
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
                self._observer.watched(self._scope.resource)
                changes, version, unread = self._deltas.take_events(events)
                fault = f"an event that cannot be decoded: {unread}" if unread else ""
                if self._has_gone_back(version):
                    fault = f"versions went back from {self._latest} to {version}: listing everything again"
                    self._start_new_history()
                self._advance_to(version or self._version)
                if fault:
                    self._version = ""  # only a list can recover what that event said
                if changes:
                    yield changes
                if fault:
                    raise ClusterError(fault)

    def _advance_to(self, version: str) -> None:
        self._version, self._latest = version, max(self._latest, version_number(version))

    def _has_gone_back(self, version: str) -> bool:
        """Whether this version belongs to another history than the one seen so far."""
        return 0 < version_number(version) < self._latest

    def _start_new_history(self) -> None:
        self._deltas.distrust_versions()
        self._latest = 0

    async def _before_next_try(self, error: ClusterError | None, lasted_s: float) -> None:
        """Waits unless the watch was long and ended normally: a server that closes each at once is not hammered."""
        if lasted_s >= STEADY_S:
            self._backoff.reset()
        if error is None and lasted_s >= STEADY_S:
            self._observer.reconnected(self._scope.resource, "closed by the server")
            return
        wait_s = self._backoff.next_s(error.retry_after_s if error else None)
        if error is None:
            self._observer.reconnected(self._scope.resource, f"closed by the server after {lasted_s:.1f} s")
        else:
            if error.status == GONE or (isinstance(error, IdleTimeoutError) and not self._heard):
                self._version = ""
            self._observer.failed(self._scope.resource, str(error), wait_s, error.status)
        try:
            async with asyncio.timeout(wait_s):
                await self._closed.wait()
        except TimeoutError:
            return
