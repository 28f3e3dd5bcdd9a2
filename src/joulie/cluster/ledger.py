"""What has been told about a kind so far, and what of a page or an event is news. Pure: no clock, no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from joulie.cluster.list_watch import BOOKMARK, DELETED, Event
from joulie.cluster.port import Broken, Change, Decode, Deleted, Synced, Upserted

T = TypeVar("T")


class _Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    resource_version: str = ""


class _Head(Struct):
    metadata: _Metadata


class Heard(NamedTuple, Generic[T]):
    """What events brought: changes to tell, the version to resume at ("" where they named none), and a fault.

    A fault is an event about no object: the changes before it hold, but nothing can be resumed after it.
    """

    changes: list[Change[T]]
    version: str
    fault: str = ""


_HEAD = msgspec.json.Decoder(_Head)


class Ledger(Generic[T]):
    """Remembers the version of every object that was told, so that a new list tells differences only."""

    def __init__(self, decode: Decode[T]) -> None:
        self._decode = decode
        self._versions: dict[str, str] = {}
        self._listed: set[str] = set()

    def begin_list(self) -> None:
        """A list starts, perhaps again: a list that broke off proves nothing about what is gone."""
        self._listed = set()

    def doubt(self) -> None:
        """Versions may mean something else from now on: whatever is listed next counts as changed."""
        self._versions = dict.fromkeys(self._versions, "")

    def take_page(self, items: Sequence[Raw]) -> list[Change[T]]:
        """New and changed objects of a page."""
        changes: list[Change[T]] = []
        for item in items:
            try:
                metadata = _HEAD.decode(item).metadata
            except ValueError as error:
                changes.append(Broken("", f"metadata: {error}"))
                continue
            key = _key(metadata)
            self._listed.add(key)
            if self._versions.get(key) != metadata.resource_version:
                changes.append(self._told(key, metadata.resource_version, item))
        return changes

    def end_list(self) -> list[Change[T]]:
        """What is gone since the last time, and that the list is complete."""
        gone = sorted(self._versions.keys() - self._listed)
        for key in gone:
            del self._versions[key]
        self._listed = set()
        return [*map(Deleted, gone), Synced(len(self._versions))]

    def take_events(self, events: Sequence[Event]) -> Heard[T]:
        """Changes that are news, in their order, up to the first event that cannot be read."""
        changes: list[Change[T]] = []
        version = ""
        for event in events:
            try:
                metadata = _HEAD.decode(event.object).metadata
            except ValueError as error:
                return Heard(changes, version, f"metadata: {error}")
            if not metadata.name and event.type != BOOKMARK:
                return Heard(changes, version, "metadata.name: missing")
            version = metadata.resource_version or version
            key = _key(metadata)
            if event.type == DELETED:
                if self._versions.pop(key, None) is not None:
                    changes.append(Deleted(key))
            elif event.type != BOOKMARK and self._versions.get(key) != metadata.resource_version:
                changes.append(self._told(key, metadata.resource_version, event.object))
        return Heard(changes, version)

    def _told(self, key: str, version: str, item: Raw) -> Change[T]:
        self._versions[key] = version
        try:
            return Upserted(key, self._decode(bytes(item)), version_number(version))
        except ValueError as error:
            return Broken(key, str(error))


def version_of(data: bytes) -> int:
    """The version of one object as a number, as `Upserted` tells it."""
    return version_number(_HEAD.decode(data).metadata.resource_version)


def version_number(version: str) -> int:
    """Kubernetes promises since 1.35 that versions are numbers that grow, and etcd always made them so."""
    return int(version) if version.isdecimal() else 0


def _key(metadata: _Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
