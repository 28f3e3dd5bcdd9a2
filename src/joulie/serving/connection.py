"""One connection as its server sees it: what it has sent, what it is being told, and since when nothing has moved."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from joulie.serving.guard import Guard

NEXT_REQUEST_S = 0.01  # of a pipeline
REQUEST_LINE_END = b" HTTP/1.1\r\n"  # JSON holds no bare line break, so bodies do not look like that
MAX_PIPELINED = 128  # requests that arrive in one segment; kube-scheduler, Prometheus and browsers send one at a time
STALLED_S = 1.0  # a client that reads nothing for so long may be dropped where there is no room


class Connection(asyncio.Protocol):
    """Stands between the transport and aiohttp's protocol, which reads requests and bounds their heads."""

    def __init__(self, guard: Guard, address: str) -> None:
        self._guard, self.address = guard, address
        self._inner: web.RequestHandler | None = None
        self.transport: asyncio.Transport | None = None
        self.welcome: asyncio.Task[None] | None = None  # while it is being set up: with TLS that takes the client
        self.request: web.BaseRequest | None = None  # being answered
        self.is_queued = False  # for its turn
        self.is_last = False  # no further request will come
        self.answered = 0
        self.since_s = self.moved_s = time.monotonic()  # of the present state; of the last sign that it reads
        self.head = 0  # bytes of a request that is not being answered yet
        self.held = 0  # bytes of its request and of its answer
        self._unsent = 0

    # What the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._inner = self._guard.entered(self, transport)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        assert self._inner is not None
        if self.request is None:
            if not self.head:
                self.since_s = time.monotonic()
            self.head += len(data)
        self._guard.hold(self, len(data))
        if data.count(REQUEST_LINE_END) > MAX_PIPELINED:  # they would all be parsed before any other client is heard
            self.head = self.head or len(data)
            self.refuse(400, f"more than {MAX_PIPELINED} requests at once; wait for answers")
            return
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """A client that has sent all is gone, unless it may still listen: then it gets its answer (not with TLS)."""
        assert self.transport is not None
        if not self._guard.limits.half_closed or (not self.head and self.request is None):
            return False
        self.is_last = True
        return self.transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        assert self._inner is not None
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        assert self._inner is not None
        self.moved_s = time.monotonic()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._inner is not None
        self._guard.left(self)
        self._inner.connection_lost(exc)

    # What the server says

    def begin(self, request: web.BaseRequest) -> None:
        self.request, self.since_s = request, time.monotonic()

    def end(self) -> None:
        self.request, self.head = None, 0
        self.answered += 1
        self.since_s = time.monotonic()
        if self.is_last:  # its place is for others, unless it has asked for more already
            asyncio.get_running_loop().call_later(NEXT_REQUEST_S, self._close_if_done)

    def _close_if_done(self) -> None:
        if self.request is None and self.transport is not None:
            self.transport.close()

    def waits(self, now_s: float) -> bool:
        """For its client, or for its turn: nothing is lost that we have worked for."""
        if self.request is None or self.is_queued:
            return True
        return not self.request.content.is_eof() or (self._looks_unsent(now_s) and now_s - self.moved_s > STALLED_S)

    def look(self, now_s: float) -> None:
        """Time out a stalled client."""
        limits, waits_s = self._guard.limits, now_s - self.since_s
        if self.transport is None:
            return  # the handshake has its own limit
        if self._looks_unsent(now_s):
            if now_s - self.moved_s > limits.unread_s:
                self.drop()
        elif self.request is not None:
            if not self.request.content.is_eof() and waits_s > limits.body_s:
                self.drop()
        elif self.is_last:
            self.drop()
        elif self.head or not self.answered:
            if waits_s > limits.head_s:
                self.refuse(408, "the request's head did not arrive in time")
        elif waits_s > limits.idle_s:
            self.transport.close()

    def refuse(self, status: int, reason: str) -> None:
        """One line, and the end."""
        assert self.transport is not None
        if self.head:
            self._guard.on_refused(status)
            self.transport.write(refusal(status, reason))
        self.transport.close()

    def drop(self) -> None:
        """At once, whatever it was about."""
        self._guard.left(self)
        if self.transport is not None:
            self.transport.abort()
        elif self.welcome is not None:
            self.welcome.cancel()

    def _looks_unsent(self, now_s: float) -> bool:
        assert self.transport is not None
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent or not unsent:
            self.moved_s = now_s
        self._unsent = unsent
        return unsent > 0


def refusal(status: int, reason: str) -> bytes:
    """A whole answer, for clients that are not to cost more."""
    line = reason.encode() + b"\n"
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    return f"{head}Content-Length: {len(line)}\r\n\r\n".encode() + line
