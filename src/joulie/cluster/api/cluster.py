"""The port, implemented by a Kubernetes API server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Raw, Struct, field, json

from joulie.cluster.api.credentials import Credentials
from joulie.cluster.api.transport import APPLY_PATCH, MERGE_PATCH, Transport
from joulie.cluster.api.watch_lines import LineSplitter, read_events
from joulie.cluster.port import Change, ClusterError, ConflictError, Decode, MaySend, NotFoundError, Resource
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.list_watch import Event, ListPage, Scope
from joulie.cluster.watch.observer import ClusterObserver
from joulie.cluster.watch.reflector import Reflector

T = TypeVar("T")

PAGE_SIZE = 500
LIST_TIMEOUT_S = 60.0  # for one page, including from a server that is just starting
# The server closes a watch after a random time between these, so that not all watches reconnect at once.
WATCH_S = (300.0, 600.0)
# Bookmarks arrive once a minute; for a kind without any change the first takes two minutes (measured). Without one for
# this long the connection counts as dead, whatever TCP says.
WATCH_IDLE_S = 150.0
_ANSWERS = frozenset({404, 409})  # errors that prove that the server works


class _ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class _List(Struct):
    metadata: _ListMetadata
    items: list[Raw] | None = None  # an empty list may come as null


_LIST = json.Decoder(_List)


class KubernetesCluster:
    """The port on a real API server.

    A leader election should have its own instance (they are cheap), so that many writes cannot delay its calls.
    """

    def __init__(  # noqa: PLR0913 - each is a bound or a part that somewhere is another
        self,
        credentials: Credentials,
        *,
        field_manager: str = "joulie",
        observer: ClusterObserver | None = None,
        timeout_s: float = 10.0,
        connections: int = 100,
        page_size: int = PAGE_SIZE,
        watch_idle_s: float = WATCH_IDLE_S,
        backoff: Callable[[], Backoff] = Backoff,
        unknown_kinds_are_empty: bool = False,
    ) -> None:
        """`unknown_kinds_are_empty`: for a look at a cluster where nothing of Joulie is installed."""
        self._transport = Transport(credentials, timeout_s=timeout_s, connections=connections)
        # The deadline holds on the server, too: a write that is not answered by then is dead, not late.
        self._as_manager = {"fieldManager": field_manager, "timeout": f"{timeout_s:g}s"}
        self._observer = observer or ClusterObserver()
        self._page_size = page_size
        self._watch_idle_s = watch_idle_s
        self._backoff = backoff
        self._unknown_kinds_are_empty = unknown_kinds_are_empty
        self._closed = asyncio.Event()

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
        return await self._call("get", resource, "GET", _path(resource, namespace, name))

    async def create(
        self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "", may_send: MaySend | None = None
    ) -> bytes:
        path = _path(resource, namespace or _metadata(body, "namespace"))
        return await self._call(
            "create", resource, "POST", path, body=_body(resource, body), query=self._as_manager, may_send=may_send
        )

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        path = _path(resource, namespace or _metadata(body, "namespace"), _metadata(body, "name"))
        if not _metadata(body, "resourceVersion"):  # the server would overwrite some kinds unconditionally
            raise ConflictError(f"PUT {path}: metadata.resourceVersion: missing", status=409)
        return await self._call("replace", resource, "PUT", path, body=_body(resource, body), query=self._as_manager)

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
        path = _path(resource, namespace, name, status=status)
        verb = "patch_status" if status else "patch"
        return await self._patch(verb, resource, path, json.encode(patch), MERGE_PATCH, self._as_manager, may_send)

    async def apply_status(
        self, resource: Resource, name: str, status: Mapping[str, Any], *, may_send: MaySend | None = None
    ) -> bytes:
        body = _body(resource, {"metadata": {"name": name}, "status": status})
        query = {**self._as_manager, "force": "true"}
        path = _path(resource, "", name, status=True)
        return await self._patch("patch_status", resource, path, body, APPLY_PATCH, query, may_send)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str | None = None,
        may_send: MaySend | None = None,
    ) -> None:
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        path = _path(resource, namespace, name)
        await self._call("delete", resource, "DELETE", path, body=json.encode(options), may_send=may_send)

    async def close(self) -> None:
        self._closed.set()
        await self._transport.close()

    # What the reflector needs

    async def list_page(self, scope: Scope, continue_token: str) -> ListPage:
        """Without a resourceVersion, so that the list is current.

        Version 0 would be answered from a server's cache, which may be older than what was already delivered, and
        caches ignore the limit: 5,000 nodes would arrive in one response.
        """
        query = {"limit": str(self._page_size), **_selectors(scope)}
        if continue_token:
            query["continue"] = continue_token
        path = scope.resource.path(scope.namespace)
        try:
            data = await self._call("list", scope.resource, "GET", path, query=query, timeout_s=LIST_TIMEOUT_S)
        except NotFoundError as error:
            if self._unknown_kinds_are_empty:
                return ListPage([], "1")
            unknown = f"the cluster has no kind {scope.resource.kind}: joulie crds | kubectl apply -f -"
            raise ClusterError(f"{error}; {unknown}", status=error.status) from None
        try:
            return read_page(data)
        except ValueError as error:
            raise ClusterError(f"GET {path}: the response is not a list: {error}") from None

    async def watch_from(self, scope: Scope, resource_version: str) -> AsyncGenerator[Sequence[Event], None]:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(random.uniform(*WATCH_S))),
            **_selectors(scope),
        }
        splitter = LineSplitter()
        path = scope.resource.path(scope.namespace)
        async with self._transport.stream(path, query, idle_s=self._watch_idle_s) as pieces:
            self._observer.contact(scope.resource)
            async for piece in pieces:
                events, error = read_events(splitter.feed(piece))
                if events:
                    yield events
                if error is not None:
                    raise error

    async def _patch(
        self,
        verb: str,
        resource: Resource,
        path: str,
        body: bytes,
        content_type: str,
        query: Mapping[str, str],
        may_send: MaySend | None,
    ) -> bytes:
        return await self._call(
            verb, resource, "PATCH", path, body=body, content_type=content_type, query=query, may_send=may_send
        )

    async def _call(self, verb: str, resource: Resource, method: str, path: str, **options: Any) -> bytes:
        began_s = time.monotonic()
        status = 0
        try:
            data = await self._transport.call(method, path, **options)
            status = 200
        except ClusterError as error:
            status = error.status
            raise
        finally:
            if status == 200 or status in _ANSWERS:
                self._observer.contact(resource)
            self._observer.answered(verb, resource, status, time.monotonic() - began_s)
        return data


def read_page(data: bytes) -> ListPage:
    """A list response with its items still encoded; ValueError for anything else."""
    answer = _LIST.decode(data)
    return ListPage(answer.items or (), answer.metadata.resource_version, answer.metadata.continue_)


def _path(resource: Resource, namespace: str, name: str = "", *, status: bool = False) -> str:
    if resource.namespaced and not namespace:
        raise ClusterError(f"{resource.plural}: a namespace is required", status=400)
    return resource.path(namespace, name, status=status)


def _metadata(body: Mapping[str, Any], key: str) -> str:
    return (body.get("metadata") or {}).get(key) or ""


def _body(resource: Resource, body: Mapping[str, Any]) -> bytes:
    return json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **body})


def _selectors(scope: Scope) -> dict[str, str]:
    both = {"labelSelector": scope.label_selector, "fieldSelector": scope.field_selector}
    return {key: text for key, text in both.items() if text}
