"""Connections of the extender's server: those that never come to a request end, and what is not HTTP gets one line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from joulie.extender.requests import one_line

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
OnRefused = Callable[[int], None]  # told the status

_SLOW_LINE = b"the request's head did not arrive in time\n"
_SLOW_HEAD = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_SLOW_LINE),
    _SLOW_LINE,
)


class PunctualServer(web.Server):
    """A server whose connections must begin with a request before long."""

    def __init__(self, handler: Handler, on_refused: OnRefused, *, head_timeout_s: float, **options: object) -> None:
        super().__init__(handler, **options)  # type: ignore[arg-type]
        self._on_refused, self._head_timeout_s, self._options = on_refused, head_timeout_s, options

    def __call__(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        return _Connection(self, self._on_refused, self._head_timeout_s, loop=loop, **self._options)


class _Connection(web.RequestHandler):
    """One line for what is not HTTP, and an end to those that send a request's head byte by byte."""

    def __init__(self, server: web.Server, on_refused: OnRefused, head_timeout_s: float, **options: object) -> None:
        super().__init__(server, **options)  # type: ignore[arg-type]
        self._on_refused = on_refused
        self._head_timeout_s = head_timeout_s
        self._head_due: asyncio.TimerHandle | None = None
        self._read_due: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._request_count:
            if self._head_due is not None:
                self._head_due.cancel()
                self._head_due = None
        elif self._head_due is None:
            self._head_due = self._loop.call_later(self._head_timeout_s, self._too_slow)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Who has said all may still listen: the answer to what has begun is the last one (not so with TLS)."""
        waits = self._waiter is not None and not self._waiter.done()
        if waits or not self._request_count or self.ssl_context is not None:
            return None
        self.close()
        return True

    def pause_writing(self) -> None:
        """Who reads nothing of its answer would have it kept for ever."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_due is not None:
            self._read_due.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        for due in (self._head_due, self._read_due):
            if due is not None:
                due.cancel()

    def _look_later(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            unsent = self.transport.get_write_buffer_size()
            self._read_due = self._loop.call_later(self._head_timeout_s, self._give_up, self.transport, unsent)

    def _give_up(self, transport: asyncio.WriteTransport, unsent: int) -> None:
        """Unless something was read meanwhile."""
        if transport.get_write_buffer_size() < unsent:
            self._look_later()
        else:
            transport.abort()

    def _too_slow(self) -> None:
        self._on_refused(408)
        if self.transport is not None:
            self.transport.write(_SLOW_HEAD)
        self.force_close()

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
