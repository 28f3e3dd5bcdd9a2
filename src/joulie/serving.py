"""`/metrics`, `/healthz` and `/readyz` over HTTP, as every process of Joulie serves them."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from joulie.errors import InputError

Check = Callable[[], str | None]  # the fault, or None


class _OurFaults(logging.Filter):
    """What is not HTTP is the sender's fault: it is answered, and not a page of log a time."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_LOG = logging.getLogger("joulie.http")
_LOG.addFilter(_OurFaults())


def quiet_runner(app: web.Application, shutdown_timeout_s: float = 60.0) -> web.AppRunner:
    """Logs our own faults and nothing else."""
    return web.AppRunner(app, access_log=None, logger=_LOG, shutdown_timeout=shutdown_timeout_s)


async def serve(
    address: str,
    page: Callable[[], bytes],
    healthy: Check,
    ready: Check,
    routes: Sequence[web.RouteDef] = (),
    *,
    variable: str = "METRICS_ADDR",
) -> web.AppRunner:
    """Listen until the runner is cleaned up; an address that cannot be had is said in one line."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=page(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def answer(check: Check) -> Callable[[web.Request], object]:
        async def handler(_: web.Request) -> web.Response:
            fault = check()
            return web.Response(text="ok\n") if fault is None else web.Response(status=503, text=f"{fault}\n")

        return handler

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", answer(healthy))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answer(ready))  # type: ignore[arg-type]
    app.router.add_routes(routes)
    runner = quiet_runner(app)
    await runner.setup()
    try:
        await listen(runner, address, variable)
    except InputError:
        await runner.cleanup()
        raise
    return runner


async def listen(
    runner: web.BaseRunner, address: str, variable: str, ssl_context: ssl.SSLContext | None = None
) -> None:
    """Take the address that a setting names, or say in one line why not."""
    host, _, port = address.rpartition(":")
    try:
        await web.TCPSite(runner, host.strip("[]") or None, int(port), ssl_context=ssl_context).start()
    except OSError as error:
        raise InputError(f"{variable}={address!r} cannot be listened on: {error.strerror or error}") from None
