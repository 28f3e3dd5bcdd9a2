"""Reading a watch in tests: what it has told so far, and waiting until it has told enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeVar

from msgspec import json

from joulie.cluster.port import Change, Cluster, Deleted, Resource, Synced, Undecodable, Upserted
from joulie.cluster.watch.observer import ClusterObserver

T = TypeVar("T")
PATIENCE_S = 20.0


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """A scenario in an event loop of its own, which fails rather than hangs."""

    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await scenario

    return asyncio.run(bounded())


def plain(data: bytes) -> dict[str, Any]:
    """Decodes an object to plain data; one with the label `broken` is refused, as a decoder would."""
    body: dict[str, Any] = json.decode(data)
    if (body["metadata"].get("labels") or {}).get("broken"):
        raise ValueError("metadata.labels.broken: is there")
    return body


class Reader(Generic[T]):
    """Follows a watch and keeps what it told."""

    def __init__(self, batches: AsyncIterator[Sequence[Change[T]]]) -> None:
        self._batches = batches
        self.told: list[Change[T]] = []
        self.sizes: list[int] = []
        self.objects: dict[str, T] = {}
        self.broken: dict[str, str] = {}
        self.lists = 0
        self.ended = False

    async def follow(self) -> None:
        async with aclosing(self._batches) as batches:  # type: ignore[type-var]
            async for batch in batches:
                self.sizes.append(len(batch))
                for change in batch:
                    self._take(change)
        self.ended = True

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.005)

    async def synced(self, lists: int = 1) -> None:
        await self.until(lambda: self.lists >= lists)

    def _take(self, change: Change[T]) -> None:
        self.told.append(change)
        match change:
            case Upserted(key, object_):
                self.objects[key] = object_
                self.broken.pop(key, None)
            case Deleted(key):
                self.objects.pop(key, None)
                self.broken.pop(key, None)
            case Undecodable(key, reason):
                self.objects.pop(key, None)
                self.broken[key] = reason
            case Synced():
                self.lists += 1


class following(Generic[T]):  # noqa: N801 - used like a function
    """`async with following(cluster.watch(…)) as reader:`."""

    def __init__(self, batches: AsyncIterator[Sequence[Change[T]]]) -> None:
        self._reader = Reader(batches)

    async def __aenter__(self) -> Reader[T]:
        self._task = asyncio.create_task(self._reader.follow())
        return self._reader

    async def __aexit__(self, *_: object) -> None:
        if not self._task.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def watch(cluster: Cluster, resource: Resource, **selectors: str) -> following[dict[str, Any]]:
    return following(cluster.watch(resource, plain, **selectors))


class Notes(ClusterObserver):
    """Everything an observer is told, for a test to look at."""

    def __init__(self) -> None:
        self.contacts = 0
        self.lists: list[tuple[int, int]] = []
        self.reconnects: list[str] = []
        self.failures: list[tuple[str, float]] = []
        self.calls: list[tuple[str, int]] = []

    def contact(self, resource: Resource) -> None:
        self.contacts += 1

    def answered(self, verb: str, resource: Resource, status: int, duration_s: float) -> None:
        self.calls.append((verb, status))

    def listed(self, resource: Resource, total: int, pages: int) -> None:
        self.lists.append((total, pages))

    def reconnected(self, resource: Resource, reason: str) -> None:
        self.reconnects.append(reason)

    def failed(self, resource: Resource, reason: str, wait_s: float, status: int) -> None:
        self.failures.append((reason, wait_s))
