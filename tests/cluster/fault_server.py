"""An API server on loopback that speaks as much as a reflector needs, and misbehaves as it is told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web
from msgspec import json

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]
END, HANG, CUT = "end", "hang", "cut"


def node(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "resourceVersion": str(version)}, **more}


def event(kind: str, name: str, version: int, **more: Any) -> bytes:
    return json.encode({"type": kind, "object": node(name, version, **more)}) + b"\n"


def bookmark(version: int) -> bytes:
    return json.encode({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}) + b"\n"


def error(code: int, message: str = "no") -> bytes:
    return json.encode({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": message}}) + b"\n"


def page(*items: dict[str, Any], version: int = 10, more: str = "", null: bool = False) -> Step:
    body = {
        "metadata": {"resourceVersion": str(version), "continue": more},
        "items": None if null else items,
    }
    return raw(json.encode(body))


def raw(body: bytes, status: int = 200, **headers: str) -> Step:
    async def step(request: web.Request) -> web.StreamResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.Response(body=body, status=status, headers=named, content_type="application/json")

    return step


def refusal(code: int, message: str = "no", **headers: str) -> Step:
    return raw(json.encode({"kind": "Status", "code": code, "message": message}), code, **headers)


def stream(*pieces: bytes, then: str = END, gap_s: float = 0.0) -> Step:
    async def step(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(gap_s)
        if then == HANG:
            await asyncio.sleep(3600)
        if then == CUT:
            assert request.transport is not None
            request.transport.abort()
        return response

    return step


def silence() -> Step:
    async def step(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    return step


class FaultServer:
    """Each list and each watch takes the next step of its script; when it runs out, the last list, and silence."""

    def __init__(self, lists: Sequence[Step] = (), watches: Sequence[Step] = ()) -> None:
        self.lists = deque(lists)
        self.watches = deque(watches)
        self.queries: list[dict[str, str]] = []  # of all requests, in order
        self.authorizations: list[str] = []
        self.url = ""
        self._last_list: Step = page(null=True)

    @property
    def watch_queries(self) -> list[dict[str, str]]:
        return [query for query in self.queries if "watch" in query]

    @property
    def list_queries(self) -> list[dict[str, str]]:
        return [query for query in self.queries if "watch" not in query]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        self.authorizations.append(request.headers.get("Authorization", ""))
        if "watch" in request.query:
            step = self.watches.popleft() if self.watches else stream(then=HANG)
        else:
            self._last_list = step = self.lists.popleft() if self.lists else self._last_list
        return await step(request)


@asynccontextmanager
async def serving(server: FaultServer, port: int = 0) -> AsyncIterator[FaultServer]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        with suppress(asyncio.CancelledError):
            await runner.cleanup()
