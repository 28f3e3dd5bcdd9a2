"""Which objects of a kind are known at which version, and what a page or an event changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from joulie.cluster.port import Change, Decode, Deleted, Synced, Undecodable, Upserted
from joulie.cluster.watch.list_watch import BOOKMARK, DELETED, Event

T = TypeVar("T")


class _Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    resource_version: str = ""


class _Head(Struct):
    metadata: _Metadata


class EventDeltas(NamedTuple, Generic[T]):
    """The changes in a batch of events, the version to resume at ("" where they named none), and a fault.

    A fault is an event without a usable object: the changes before it are valid, but the watch cannot be resumed.
    """

    changes: list[Change[T]]
    version: str
    fault: str = ""


_HEAD = msgspec.json.Decoder(_Head)


class DeltaTracker(Generic[T]):
    """Remembers the version of every object, so that a new list yields differences only."""

    def __init__(self, decode: Decode[T]) -> None:
        self._decode = decode
        self._versions: dict[str, str] = {}
        self._listed: set[str] = set()

    def begin_list(self) -> None:
        """Starts a list, or starts over: an interrupted list does not show what was deleted."""
        self._listed = set()

    def distrust_versions(self) -> None:
        """Treats everything in the next list as changed, because versions may have started over."""
        self._versions = dict.fromkeys(self._versions, "")

    def take_page(self, items: Sequence[Raw]) -> list[Change[T]]:
        """The new and changed objects of a page."""
        changes: list[Change[T]] = []
        for item in items:
            try:
                metadata = _HEAD.decode(item).metadata
            except ValueError as error:
                changes.append(Undecodable("", f"metadata: {error}"))
                continue
            key = _key(metadata)
            self._listed.add(key)
            if self._versions.get(key) != metadata.resource_version:
                changes.append(self._decoded(key, metadata.resource_version, item))
        return changes

    def end_list(self) -> list[Change[T]]:
        """Deletions since the last list, and `Synced`."""
        gone = sorted(self._versions.keys() - self._listed)
        for key in gone:
            del self._versions[key]
        self._listed = set()
        return [*map(Deleted, gone), Synced(len(self._versions))]

    def take_events(self, events: Sequence[Event]) -> EventDeltas[T]:
        """The changes in order, up to the first event that cannot be decoded."""
        changes: list[Change[T]] = []
        version = ""
        for event in events:
            try:
                metadata = _HEAD.decode(event.object).metadata
            except ValueError as error:
                return EventDeltas(changes, version, f"metadata: {error}")
            if not metadata.name and event.type != BOOKMARK:
                return EventDeltas(changes, version, "metadata.name: missing")
            version = metadata.resource_version or version
            key = _key(metadata)
            if event.type == DELETED:
                if self._versions.pop(key, None) is not None:
                    changes.append(Deleted(key))
            elif event.type != BOOKMARK and self._versions.get(key) != metadata.resource_version:
                changes.append(self._decoded(key, metadata.resource_version, event.object))
        return EventDeltas(changes, version)

    def _decoded(self, key: str, version: str, item: Raw) -> Change[T]:
        self._versions[key] = version
        try:
            return Upserted(key, self._decode(bytes(item)), version_number(version))
        except ValueError as error:
            return Undecodable(key, str(error))


def version_of(data: bytes) -> int:
    """The version of an encoded object as a number, as in `Upserted`."""
    return version_number(_HEAD.decode(data).metadata.resource_version)


def version_number(version: str) -> int:
    """0 unless decimal. Kubernetes guarantees increasing numbers since 1.35, and etcd has always used them."""
    return int(version) if version.isdecimal() else 0


def _key(metadata: _Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
