"""A server of one handler for every path, without router and middleware; what is not HTTP gets one line."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from joulie.errors import one_line
from joulie.serving.guard import ConnectionLimits, Guard, Handler, OnRefused
from joulie.serving.server import END_S, HttpServer, options


def bare_server(
    handler: Handler, limits: ConnectionLimits, on_refused: OnRefused, logger: logging.Logger, **further: object
) -> HttpServer:
    """`further` are aiohttp's own options of a connection."""
    guard = Guard(limits, on_refused)

    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        return await guard.handle(request, handler)

    server = _OneLineServer(guarded, on_refused, {**options(logger), **further})
    return HttpServer(guard, web.ServerRunner(server, shutdown_timeout=END_S))


class _OneLineServer(web.Server):
    def __init__(self, handler: Handler, on_refused: OnRefused, options: dict[str, object]) -> None:
        super().__init__(handler, **options)  # type: ignore[arg-type]
        self._on_refused = on_refused
        self._options = {name: value for name, value in options.items() if name != "handler_cancellation"}

    def __call__(self) -> web.RequestHandler:
        return _OneLineHandler(self, self._on_refused, self._options)


class _OneLineHandler(web.RequestHandler):
    def __init__(self, server: web.Server, on_refused: OnRefused, options: dict[str, object]) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)  # type: ignore[arg-type]
        self._on_refused = on_refused

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        self._on_refused(status)
        response = web.Response(status=status, text=one_line(message or str(exc or "not understood"), 200) + "\n")
        response.force_close()
        return response
