"""A cluster in memory, behind the same port and with the same reflector as the real one: for tests and the demo.

server = MemoryServer()
cluster = MemoryCluster(server)
cluster.put(NODES, {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "8"}}})
cluster.fail_next(3, verb="patch", status=429, retry_after_s=1)
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from joulie.cluster.memory.server import MemoryServer, Stored, Watcher, key_of
from joulie.cluster.port import (
    Change,
    ClusterError,
    ConflictError,
    Decode,
    MaySend,
    NotFoundError,
    Resource,
)
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.list_watch import Event, ListPage, Scope
from joulie.cluster.watch.observer import ClusterObserver
from joulie.cluster.watch.reflector import Reflector

T = TypeVar("T")

_ANSWERS = frozenset({200, 404, 409})  # statuses that prove that the server works


class Call(NamedTuple):
    """One call of the port: get, list, watch, create, replace, patch, patch_status or delete."""

    verb: str
    resource: Resource
    key: str = ""


class _Fault(NamedTuple):
    verb: str
    resource: Resource | None
    key: str
    error: ClusterError | None  # None: never answers
    applied: bool  # the write succeeds, but its response is lost

    def concerns(self, call: Call) -> bool:
        return self.verb in ("", call.verb) and self.resource in (None, call.resource) and self.key in ("", call.key)


class MemoryCluster:
    """One client of a MemoryServer; faults and latency are this client's alone."""

    def __init__(
        self,
        server: MemoryServer | None = None,
        *,
        field_manager: str = "memory",
        observer: ClusterObserver | None = None,
        latency_s: float = 0.0,
        page_size: int = 500,
        bookmark_interval_s: float = 60.0,
        backoff: Callable[[], Backoff] = Backoff,
        on_call: Callable[[Call], None] | None = None,
    ) -> None:
        self.server = server or MemoryServer()
        self.calls: Counter[tuple[str, str]] = Counter()  # by verb and plural
        self.latency_s = latency_s
        self.field_manager = field_manager
        self._observer = observer or ClusterObserver()
        self._page_size = page_size
        self._bookmark_interval_s = bookmark_interval_s
        self._backoff = backoff
        self._on_call = on_call
        self._faults: list[_Fault] = []
        self._cut_off: ClusterError | None = None
        self._closed = asyncio.Event()
        self._watchers: set[Watcher] = set()

    # The port

    def watch(
        self,
        resource: Resource,
        decode: Decode[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[Sequence[Change[T]], None]:
        scope = Scope(resource, label_selector, field_selector, namespace)
        return Reflector(
            self, scope, decode, closed=self._closed, observer=self._observer, backoff=self._backoff()
        ).batches()

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        key = _address(resource, namespace, name)
        return (await self._call(Call("get", resource, key), lambda: self.server.get(resource, key))).encoded

    async def create(
        self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "", may_send: MaySend | None = None
    ) -> bytes:
        namespace = _namespace(resource, namespace, body)
        key = key_of(namespace, (body.get("metadata") or {}).get("name", ""))
        call, manager = Call("create", resource, key), self.field_manager
        return (
            await self._call(call, lambda: self.server.create(resource, body, namespace, manager), may_send)
        ).encoded

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        metadata = body.get("metadata") or {}
        key = _address(resource, _namespace(resource, namespace, body), metadata.get("name", ""))
        if not metadata.get("resourceVersion"):
            raise ConflictError(f'{resource.plural} "{key}": metadata.resourceVersion: missing', status=409)
        call = Call("replace", resource, key)
        return (await self._call(call, lambda: self.server.replace(resource, key, body, self.field_manager))).encoded

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        status: bool = False,
        may_send: MaySend | None = None,
    ) -> bytes:
        key = _address(resource, namespace, name)
        call = Call("patch_status" if status else "patch", resource, key)
        manager = self.field_manager
        effect = self._call(call, lambda: self.server.patch(resource, key, patch, manager, status=status), may_send)
        return (await effect).encoded

    async def apply_status(
        self, resource: Resource, name: str, status: Mapping[str, Any], *, may_send: MaySend | None = None
    ) -> bytes:
        call, manager = Call("patch_status", resource, name), self.field_manager
        effect = self._call(call, lambda: self.server.apply_status(resource, name, status, manager), may_send)
        return (await effect).encoded

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str | None = None,
        may_send: MaySend | None = None,
    ) -> None:
        key = _address(resource, namespace, name)
        await self._call(Call("delete", resource, key), lambda: self.server.delete(resource, key, uid), may_send)

    async def close(self) -> None:
        self._closed.set()
        self.cut_watches()

    # What the reflector needs

    async def list_page(self, scope: Scope, continue_token: str) -> ListPage:
        call = Call("list", scope.resource)
        return await self._call(call, lambda: self.server.list_page(scope, continue_token, self._page_size))

    async def watch_from(self, scope: Scope, resource_version: str) -> AsyncGenerator[Sequence[Event], None]:
        call = Call("watch", scope.resource)
        watcher = await self._call(call, lambda: self.server.open_watch(scope, resource_version))
        self._watchers.add(watcher)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._bookmark_interval_s):
                        events = await watcher.fetch()
                except TimeoutError:
                    events = [self.server.bookmark(scope.resource)]
                if not events:
                    return
                yield events
        finally:
            self._watchers.discard(watcher)
            self.server.close_watch(watcher)

    # For tests

    def put(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        """Stores the object as it is, status included and unvalidated, as an older version might have."""
        return self.server.put(resource, body, _namespace(resource, namespace, body)).encoded

    def fail_next(
        self,
        count: int = 1,
        *,
        verb: str = "",
        resource: Resource | None = None,
        key: str = "",
        status: int = 500,
        retry_after_s: float | None = None,
        applied: bool = False,
    ) -> None:
        """The next matching calls fail; `applied`: the write succeeds, but its response is lost."""
        error_class = {404: NotFoundError, 409: ConflictError}.get(status, ClusterError)
        error = error_class("injected fault", status=status, retry_after_s=retry_after_s)
        self._faults += [_Fault(verb, resource, key, error, applied)] * count

    def hang_next(
        self, count: int = 1, *, verb: str = "", resource: Resource | None = None, applied: bool = False
    ) -> None:
        """The next matching calls never return."""
        self._faults += [_Fault(verb, resource, "", None, applied)] * count

    def cut_off(self) -> None:
        """Fails all calls and watches of this client until `reconnect`."""
        self._cut_off = ClusterError("the API server cannot be reached")
        self.cut_watches(self._cut_off)

    def reconnect(self) -> None:
        self._cut_off = None

    def cut_watches(self, error: ClusterError | None = None) -> None:
        for watcher in tuple(self._watchers):
            watcher.end(error)

    def expire_watches(self) -> None:
        """Ends the watches of all clients with 410."""
        self.server.expire_watches()

    async def _call(self, call: Call, effect: Callable[[], T], may_send: MaySend | None = None) -> T:
        """One call, reported to the observer."""
        self.calls[call.verb, call.resource.plural] += 1
        if self._on_call is not None:
            self._on_call(call)
        status, began_s = 0, time.monotonic()
        try:
            answer = await self._sent(call, effect, may_send)
            status = 200
        except ClusterError as error:
            status = error.status
            raise
        finally:
            if status in _ANSWERS:
                self._observer.contact(call.resource)
            if call.verb != "watch":
                self._observer.answered(call.verb, call.resource, status, time.monotonic() - began_s)
        return answer

    async def _sent(self, call: Call, effect: Callable[[], T], may_send: MaySend | None) -> T:
        """Behaves like a network: other tasks run meanwhile, the call may fail, and its response may get lost."""
        await asyncio.sleep(self.latency_s)
        if self._closed.is_set():
            raise ClusterError("the connection is closed")
        if self._cut_off is not None:
            raise self._cut_off
        if may_send is not None and not may_send():
            raise ClusterError("the permission to send it has ended")
        for fault in self._faults:
            if fault.concerns(call):
                self._faults.remove(fault)
                if fault.applied:
                    effect()
                if fault.error is None:
                    await asyncio.Event().wait()
                else:
                    raise fault.error
        return effect()


def _namespace(resource: Resource, namespace: str, body: Mapping[str, Any]) -> str:
    if not resource.namespaced:
        return ""
    own = (body.get("metadata") or {}).get("namespace") or ""
    if namespace and own and namespace != own:
        raise ClusterError("the namespace of the object does not match the namespace of the request", status=400)
    if not (namespace or own):
        raise ClusterError(f"{resource.plural}: a namespace is required", status=400)
    return namespace or own


def _address(resource: Resource, namespace: str, name: str) -> str:
    if resource.namespaced and not namespace:
        raise ClusterError(f"{resource.plural}: a namespace is required", status=400)
    return key_of(namespace if resource.namespaced else "", name)


__all__ = ["Call", "MemoryCluster", "MemoryServer", "Stored"]
