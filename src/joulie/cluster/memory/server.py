"""An API server in memory: objects with versions, a bounded history, lists in pages, watches that can expire.

Synchronous throughout; `MemoryCluster` is how a process talks to it. Several clients may share one server.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
from msgspec import Raw

from joulie.cluster.memory import field_ownership as ownership
from joulie.cluster.memory import write_rules as rules
from joulie.cluster.memory.selectors import matcher
from joulie.cluster.port import ClusterError, ConflictError, NotFoundError, Resource
from joulie.cluster.watch.list_watch import ADDED, BOOKMARK, DELETED, GONE, MODIFIED, Event, ListPage, Scope
from joulie.model.rfc3339 import format_time


class Stored(NamedTuple):
    """One immutable version of an object."""

    body: rules.Body
    encoded: bytes
    owners: ownership.Owners  # field owners of a custom resource; other kinds are never applied


class _Happened(NamedTuple):
    version: int
    resource: Resource
    before: Stored | None
    after: Stored | None
    last_words: Stored  # the object in the event; of a deletion, the last state at the new version


class Watcher:
    """One open watch: events wait here until they are fetched."""

    def __init__(self, scope: Scope) -> None:
        self.resource = scope.resource
        self._matches = matcher(scope)
        self._pending: list[Event] = []
        self._wake = asyncio.Event()
        self._end: ClusterError | None = None
        self._ended = False

    def offer(self, happened: _Happened) -> None:
        """An object that starts or stops matching is ADDED or DELETED for this watch."""
        if happened.resource != self.resource:
            return
        was = happened.before is not None and self._matches(happened.before.body)
        is_ = happened.after is not None and self._matches(happened.after.body)
        if was or is_:
            kind = MODIFIED if was and is_ else ADDED if is_ else DELETED
            self.add(Event(kind, Raw(happened.last_words.encoded)))

    def add(self, event: Event) -> None:
        self._pending.append(event)
        self._wake.set()

    def end(self, error: ClusterError | None = None) -> None:
        """Ends the watch, normally or with an error, after the pending events."""
        self._ended, self._end = True, error
        self._wake.set()

    async def fetch(self) -> list[Event]:
        """The events since the last call, at least one; empty when the watch has ended."""
        await self._wake.wait()
        events, self._pending = self._pending, []
        if not self._ended:
            self._wake.clear()
        elif not events and self._end is not None:
            raise self._end
        return events


class MemoryServer:
    """The objects. `history` is the number of changes that a watch may lag behind before it expires."""

    def __init__(
        self,
        *,
        history: int = 10_000,
        clock: Callable[[], float] = time.time,
        new_uid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._clock = clock
        self._new_uid = new_uid
        self._objects: dict[Resource, dict[str, Stored]] = {}
        self._version = 1
        self._history: deque[_Happened] = deque(maxlen=history)
        self._oldest = 1  # the oldest version that a watch can start from
        self._watchers: set[Watcher] = set()
        self._continuations: dict[str, tuple[str, list[Stored]]] = {}

    def get(self, resource: Resource, key: str) -> Stored:
        stored = self._objects.get(resource, {}).get(key)
        if stored is None:
            raise NotFoundError(f'{resource.plural} "{key}" not found', status=404)
        return stored

    def all(self, resource: Resource) -> list[rules.Body]:
        """Every object of a kind, by key, for inspection."""
        return [stored.body for _, stored in sorted(self._objects.get(resource, {}).items())]

    def create(self, resource: Resource, body: Mapping[str, Any], namespace: str, manager: str = "") -> Stored:
        prepared = rules.prepared(resource, rules.plain(body), namespace)
        key = key_of(namespace, prepared["metadata"]["name"])
        if key in self._objects.get(resource, {}):
            raise ConflictError(f'{resource.plural} "{key}" already exists', status=409)
        return self._write(resource, key, None, self._born(resource, prepared), manager)

    def put(self, resource: Resource, body: Mapping[str, Any], namespace: str) -> Stored:
        """Stores the object as it is, status included, regardless of owners and schema."""
        plain = rules.plain(body)
        key = key_of(namespace, plain["metadata"]["name"])
        old = self._objects.get(resource, {}).get(key)
        if old is None:
            new = self._born(resource, {**rules.prepared(resource, plain, namespace), **_own_parts(plain)})
        else:
            new = rules.updated(resource, old.body, plain, status=False) | _own_parts(plain)
        if deleted_at := plain["metadata"].get("deletionTimestamp"):
            new["metadata"]["deletionTimestamp"] = deleted_at
        return self._write(resource, key, old, new, "", check=False)

    def replace(self, resource: Resource, key: str, body: Mapping[str, Any], manager: str = "") -> Stored:
        old, wanted = self.get(resource, key), rules.plain(body)
        rules.check_preconditions(resource, old.body, wanted)
        return self._update(resource, key, old, rules.updated(resource, old.body, wanted, status=False), manager)

    def patch(
        self, resource: Resource, key: str, patch: Mapping[str, Any], manager: str = "", *, status: bool
    ) -> Stored:
        if status and not rules.has_status(resource):
            raise NotFoundError(f"{resource.plural} have no status subresource", status=404)
        old, plain = self.get(resource, key), rules.plain(patch)
        rules.check_preconditions(resource, old.body, plain)
        wanted = rules.merged(old.body, plain)
        return self._update(resource, key, old, rules.updated(resource, old.body, wanted, status=status), manager)

    def apply_status(self, resource: Resource, key: str, status: Mapping[str, Any], manager: str) -> Stored:
        if not rules.is_custom(resource):
            raise ClusterError(f"{resource.plural}: only statuses of Joulie's kinds can be applied here", status=415)
        old, config = self.get(resource, key), rules.plain({"status": status})
        merged, owners = ownership.applied(old.owners, manager, {"status": old.body.get("status") or {}}, config)
        new = old.body | {"status": merged["status"]}
        if new == old.body and owners == old.owners:
            return old
        return self._write(resource, key, old, new, manager, owners=owners)

    def delete(self, resource: Resource, key: str, uid: str | None) -> None:
        """Deletes at once unless there are finalizers; a Pod's grace period is not imitated."""
        old = self.get(resource, key)
        if uid is not None and uid != old.body["metadata"]["uid"]:
            raise ConflictError(f'{resource.plural} "{key}": its uid is {old.body["metadata"]["uid"]}', status=409)
        if old.body["metadata"].get("finalizers"):
            gone_at = {"deletionTimestamp": format_time(self._clock())}
            self._update(resource, key, old, old.body | {"metadata": gone_at | old.body["metadata"]}, "")
        else:
            self._remove(resource, key, old)

    def list_page(self, scope: Scope, continue_token: str, limit: int) -> ListPage:
        """All pages of a list show the state at its first page, as on a real server."""
        if continue_token:
            if continue_token not in self._continuations:
                raise ClusterError("the provided continue parameter is too old", status=GONE)
            version, rest = self._continuations.pop(continue_token)
        else:
            matches, kept = matcher(scope), self._objects.get(scope.resource, {})
            version = str(self._version)
            rest = [kept[key] for key in sorted(kept) if matches(kept[key].body)]
        page, rest = rest[:limit], rest[limit:]
        token = f"{version}-{len(rest)}-{uuid4().hex[:8]}" if rest else ""
        if rest:
            self._continuations[token] = (version, rest)
        return ListPage([Raw(stored.encoded) for stored in page], version, token)

    def open_watch(self, scope: Scope, resource_version: str) -> Watcher:
        since = int(resource_version)
        if since < self._oldest:
            raise ClusterError(f"too old resource version: {since} ({self._oldest})", status=GONE)
        watcher = Watcher(scope)
        if since < self._version:
            for happened in self._history:
                if happened.version > since:
                    watcher.offer(happened)
        self._watchers.add(watcher)
        return watcher

    def close_watch(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    def send_bookmarks(self) -> None:
        """Sends a bookmark to every watch."""
        for watcher in self._watchers:
            watcher.add(self.bookmark(watcher.resource))

    def bookmark(self, resource: Resource) -> Event:
        body = {"kind": resource.kind, "metadata": {"resourceVersion": str(self._version)}}
        return Event(BOOKMARK, Raw(msgspec.json.encode(body)))

    def compact(self) -> None:
        """Drops the history: lagging watches and unfinished lists expire."""
        self._history.clear()
        self._continuations.clear()
        self._oldest = self._version

    def expire_watches(self) -> None:
        """Ends every watch with 410; none can be resumed."""
        self._version += 1
        self.compact()
        self.cut_watches(ClusterError("too old resource version", status=GONE))

    def cut_watches(self, error: ClusterError | None = None) -> None:
        """Ends every watch, by default normally."""
        for watcher in tuple(self._watchers):
            watcher.end(error)
        self._watchers.clear()

    def _born(self, resource: Resource, prepared: rules.Body) -> rules.Body:
        return rules.created(resource, prepared, self._new_uid(), format_time(self._clock()))

    def _update(self, resource: Resource, key: str, old: Stored, new: rules.Body, manager: str) -> Stored:
        """A write without changes creates no version and no event."""
        if new == old.body:
            return old
        was_held = old.body["metadata"].get("finalizers") and new["metadata"].get("deletionTimestamp")
        if was_held and not new["metadata"].get("finalizers"):
            return self._remove(resource, key, old)
        return self._write(resource, key, old, new, manager)

    def _write(
        self,
        resource: Resource,
        key: str,
        old: Stored | None,
        new: rules.Body,
        manager: str,
        *,
        owners: ownership.Owners | None = None,  # None: as after an update
        check: bool = True,
    ) -> Stored:
        if owners is None and rules.is_custom(resource):
            before = {"status": old.body.get("status") or {}} if old else {}
            after = {"status": new.get("status") or {}}
            owners = ownership.after_update(old.owners if old else {}, manager, before, after)
        stored = self._stored(new, owners or {})
        if check:
            rules.check_schema(resource, stored.encoded)
        self._objects.setdefault(resource, {})[key] = stored
        self._happened(resource, old, stored, stored)
        return stored

    def _remove(self, resource: Resource, key: str, old: Stored) -> Stored:
        last_words = self._stored(old.body, {})
        del self._objects[resource][key]
        self._happened(resource, old, None, last_words)
        return last_words

    def _stored(self, body: rules.Body, owners: ownership.Owners) -> Stored:
        """The object at the next version, which becomes the server's once the write is done."""
        versioned = body | {"metadata": body["metadata"] | {"resourceVersion": str(self._version + 1)}}
        return Stored(versioned, msgspec.json.encode(versioned), owners)

    def _happened(self, resource: Resource, before: Stored | None, after: Stored | None, last_words: Stored) -> None:
        self._version += 1
        if len(self._history) == self._history.maxlen:
            self._oldest = self._history[0].version if self._history else self._version
        happened = _Happened(self._version, resource, before, after, last_words)
        self._history.append(happened)
        for watcher in self._watchers:
            watcher.offer(happened)


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _own_parts(body: rules.Body) -> rules.Body:
    return {part: body[part] for part in ("status",) if part in body}
