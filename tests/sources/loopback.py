"""Servers on loopback that answer as Prometheus or a node's telemetry endpoint would, or worse."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from joulie.settings import OperatorSettings, load
from joulie.sources.transport import RequestLimits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

IMPATIENT = RequestLimits(call_timeout_s=0.25, deadline_s=0.6, calls_at_once=8)
PATIENT = RequestLimits(call_timeout_s=10.0, deadline_s=20.0, calls_at_once=8)  # a busy machine is no fault of a source


class Clock:
    """A wall clock that moves when told to."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The address of a server that gives every request to `handler`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


def series(value: float | str, at_s: float | None = None, **labels: str) -> tuple[dict[str, str], str, float | None]:
    return labels, str(value), at_s


class FakePrometheus:
    """Answers from a table of queries; `now_s` is the time that it stamps on answers."""

    def __init__(self, clock: Clock, *, knows_lookback: bool = True, flags: Mapping[str, str] | None = None) -> None:
        self.clock = clock
        self.knows_lookback = knows_lookback
        self.flags = flags
        self.answers: dict[str, list[tuple[dict[str, str], str, float | None]]] = {}
        self.instead: Handler | None = None  # answers everything while it is set
        self.asked: list[dict[str, str]] = []
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.001)
            return await self._answer(request)
        finally:
            self.at_once -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.instead is not None:
            return await self.instead(request)
        if request.path.endswith("/api/v1/status/flags"):
            if self.flags is None:
                return web.Response(status=404, text="no flags here")
            return web.json_response({"status": "success", "data": dict(self.flags)})
        assert request.method == "GET"
        assert request.path.endswith("/api/v1/query")
        params = dict(request.query)
        if self.knows_lookback and params.get("lookback_delta") == "none":
            return web.json_response({"status": "error", "errorType": "bad_data", "error": "no duration"}, status=400)
        if params["query"] == "1":
            return success({"resultType": "scalar", "result": [self.clock.now_s, "1"]})
        self.asked.append(params)
        found = self.answers.get(params["query"], [])
        return vector(found, float(params.get("time", self.clock.now_s)))


def vector(found: list[tuple[dict[str, str], str, float | None]], now_s: float) -> web.Response:
    result = [{"metric": labels, "value": [now_s if at is None else at, value]} for labels, value, at in found]
    return success({"resultType": "vector", "result": result})


def success(data: Mapping[str, Any]) -> web.Response:
    return web.json_response({"status": "success", "data": dict(data)})


def answering(body: str | bytes, status: int = 200) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=io.BytesIO(body) if isinstance(body, bytes) else body, status=status)

    return answer


class FakeNodes:
    """`GET /telemetry/{node}`; a node without telemetry is unknown, a handler speaks for itself."""

    def __init__(self) -> None:
        self.telemetry: dict[str, Any] = {}
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.001)
            told = self.telemetry.get(request.path.removeprefix("/telemetry/"))
            if told is None:
                return web.Response(status=404, text="no such node")
            if callable(told):
                answer: web.StreamResponse = await told(request)
                return answer
            return web.Response(text=json.dumps(told), content_type="application/json")
        finally:
            self.at_once -= 1


def settings(**variables: str) -> OperatorSettings:
    return load(OperatorSettings, variables)
