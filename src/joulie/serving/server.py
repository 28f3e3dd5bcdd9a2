"""`/metrics`, `/healthz` and `/readyz` over HTTP, as every process of Joulie serves them."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from joulie.errors import InputError
from joulie.serving.guard import ConnectionLimits, Guard
from joulie.serving.listener import Listener
from joulie.serving.page import Page

Check = Callable[[], str | None]  # the fault, or None
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

REQUESTS_PER_S = 1000.0  # more than any monitoring asks, and a small part of what the process can do
END_S = 2.0  # what is being sent may still arrive
FAULTS_A_MINUTE = 10


class _OurFaults(logging.Filter):
    """What is not HTTP is the sender's fault: answered, and no page of log a time. Ours are told, a few a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = self._told = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is None:
            return True
        if isinstance(record.exc_info[1], HttpProcessingError):
            return False
        minute = int(time.monotonic() / 60)
        self._told = self._told + 1 if minute == self._minute else 1
        self._minute = minute
        return self._told <= FAULTS_A_MINUTE


_LOG = logging.getLogger("joulie.http")
_LOG.addFilter(_OurFaults())


class HttpServer:
    """A runner's server behind a guard, at one address."""

    def __init__(self, guard: Guard, runner: web.BaseRunner) -> None:
        self._guard, self._runner = guard, runner
        self._listener = Listener(guard)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return self._listener.addresses

    @property
    def connections(self) -> int:
        return self._guard.connections

    async def start(self, address: str, variable: str, context: ssl.SSLContext | None = None) -> None:
        """An address that cannot be used is reported in one line."""
        await self._runner.setup()
        assert self._runner.server is not None
        self._guard.attach(self._runner.server)
        try:
            await self._listener.listen(address, variable, context)
        except InputError:
            await self._runner.cleanup()
            raise

    def stop_listening(self) -> None:
        self._listener.stop()

    async def cleanup(self) -> None:
        self._listener.stop()
        await self._runner.cleanup()
        await self._listener.close()


def app_server(routes: Iterable[web.RouteDef], limits: ConnectionLimits, largest_body: int = 64 << 10) -> HttpServer:
    """These routes and nothing else."""
    guard = Guard(limits)

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await guard.handle(request, handler)  # type: ignore[arg-type]

    app = web.Application(client_max_size=largest_body, middlewares=[guarded])
    app.router.add_routes(routes)
    return HttpServer(guard, web.AppRunner(app, shutdown_timeout=END_S, **options(_LOG)))


def options(logger: logging.Logger) -> dict[str, Any]:
    """Of aiohttp's connections; when one is idle for too long the guard knows."""
    return {
        "access_log": None,
        "logger": logger,
        "handler_cancellation": True,  # no work for clients that have gone
        "lingering_time": 1.0,
    }


def checked(check: Check) -> Handler:
    """A probe's answer."""

    async def handler(_: web.Request) -> web.StreamResponse:
        fault = check()
        return web.Response(text="ok\n") if fault is None else web.Response(status=503, text=f"{fault}\n")

    return handler


async def serve(
    address: str,
    page: Callable[[], Iterable[bytes]],
    healthy: Check,
    ready: Check,
    routes: Sequence[web.RouteDef] = (),
    *,
    variable: str = "METRICS_ADDR",
    connections: int = ConnectionLimits().connections,
) -> HttpServer:
    """Listen until it is cleaned up; an address that cannot be used is reported in one line."""
    shared = Page(page)

    async def metrics(_: web.Request) -> web.StreamResponse:
        return await shared.answer()

    own = [web.get("/metrics", metrics), web.get("/healthz", checked(healthy)), web.get("/readyz", checked(ready))]
    server = app_server([*own, *routes], ConnectionLimits(connections=connections, requests_per_s=REQUESTS_PER_S))
    await server.start(address, variable)
    return server
