"""A cluster in memory, behind the same port and with the same reflector as the real one: for tests, demo and lab.

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

from joulie.cluster.backoff import Backoff
from joulie.cluster.list_watch import Event, Page, Scope
from joulie.cluster.memory_server import MemoryServer, Stored, Watcher, key_of
from joulie.cluster.observer import ClusterObserver
from joulie.cluster.port import (
    Change,
    ClusterError,
    ConflictError,
    Decode,
    MaySend,
    NotFoundError,
    Resource,
)
from joulie.cluster.reflector import Reflector

T = TypeVar("T")

_ANSWERS = frozenset({200, 404, 409})  # the server was there and looked


class Call(NamedTuple):
    """One call of the port: get, list, watch, create, replace, patch, patch_status or delete."""

    verb: str
    resource: Resource
    key: str = ""


class _Fault(NamedTuple):
    verb: str
    resource: Resource | None
    key: str
    error: ClusterError | None  # None: hangs until the caller gives up
    applied: bool  # the write happens all the same, only its answer is lost

    def concerns(self, call: Call) -> bool:
        return self.verb in ("", call.verb) and self.resource in (None, call.resource) and self.key in ("", call.key)


class MemoryCluster:
    """One client of a MemoryServer; faults and latency are this client's alone."""

    def __init__(
        self,
        server: MemoryServer | None = None,
        *,
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
        self, resource: Resource, decode: Decode[T], *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncGenerator[Sequence[Change[T]], None]:
        scope = Scope(resource, label_selector, field_selector)
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
        call = Call("create", resource, key)
        return (await self._call(call, lambda: self.server.create(resource, body, namespace), may_send)).encoded

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        metadata = body.get("metadata") or {}
        key = _address(resource, _namespace(resource, namespace, body), metadata.get("name", ""))
        if not metadata.get("resourceVersion"):
            raise ConflictError(f'{resource.plural} "{key}": metadata.resourceVersion: missing', status=409)
        call = Call("replace", resource, key)
        return (await self._call(call, lambda: self.server.replace(resource, key, body))).encoded

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
        effect = self._call(call, lambda: self.server.patch(resource, key, patch, status=status), may_send)
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

    # What the reflector stands on

    async def list_page(self, scope: Scope, continue_token: str) -> Page:
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

    # What tests do to it

    def put(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        """The object exactly so, status included and unchecked: what its owner, or an older version, left there."""
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
        """The next calls of that kind fail; `applied`: the write happens, but its answer is lost."""
        error_class = {404: NotFoundError, 409: ConflictError}.get(status, ClusterError)
        error = error_class("a fault was injected", status=status, retry_after_s=retry_after_s)
        self._faults += [_Fault(verb, resource, key, error, applied)] * count

    def hang_next(
        self, count: int = 1, *, verb: str = "", resource: Resource | None = None, applied: bool = False
    ) -> None:
        """The next calls of that kind never answer."""
        self._faults += [_Fault(verb, resource, "", None, applied)] * count

    def cut_off(self) -> None:
        """No call of this client arrives any more, and its watches break, until `reconnect`."""
        self._cut_off = ClusterError("the API server cannot be reached")
        self.cut_watches(self._cut_off)

    def reconnect(self) -> None:
        self._cut_off = None

    def cut_watches(self, error: ClusterError | None = None) -> None:
        for watcher in tuple(self._watchers):
            watcher.end(error)

    def expire_watches(self) -> None:
        """Every watch, of all clients, ends with 410 and has to list again."""
        self.server.expire_watches()

    async def _call(self, call: Call, effect: Callable[[], T], may_send: MaySend | None = None) -> T:
        """One call, and what the observer is told of it."""
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
        """As a network has it: others run in the meantime, it may fail, and its answer may get lost."""
        await asyncio.sleep(self.latency_s)
        if self._closed.is_set():
            raise ClusterError("the connection is closed")
        if self._cut_off is not None:
            raise self._cut_off
        if may_send is not None and not may_send():
            raise ClusterError("it may no longer be sent")
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
        raise ClusterError(f"{resource.plural}: a namespace is needed", status=400)
    return namespace or own


def _address(resource: Resource, namespace: str, name: str) -> str:
    if resource.namespaced and not namespace:
        raise ClusterError(f"{resource.plural}: a namespace is needed", status=400)
    return key_of(namespace if resource.namespaced else "", name)


__all__ = ["Call", "MemoryCluster", "MemoryServer", "Stored"]
