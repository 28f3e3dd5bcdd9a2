"""Server-sent events: every message is encoded once for all viewers, and a slow viewer gets the latest state instead.

There is no queue per viewer: each has a place in one short backlog. Who falls behind it, or comes back with a place
that is not known, gets everything anew. So memory does not depend on how many watch, or how slowly.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

BACKLOG = 30  # messages: half a minute
HEARTBEAT_S = 5.0
STUCK_S = 30.0  # a viewer that takes nothing for so long is gone
MOST_VIEWERS = 200
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"


class Frame:
    """One message as it goes over the wire, plain or as a piece of a gzip stream that needs no other piece."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._packed: bytes | None = None

    def bytes(self, packed: bool) -> bytes:
        if not packed:
            return self.plain
        if self._packed is None:
            self._packed = pack(self.plain)
        return self._packed


def pack(plain: bytes) -> bytes:
    """Ends at a byte and refers to nothing before it, so that one piece serves all streams at any place."""
    deflate = zlib.compressobj(3, zlib.DEFLATED, -15)
    return deflate.compress(plain) + deflate.flush(zlib.Z_FULL_FLUSH)


class Feed:
    """What happens, for whoever watches. `everything` is asked for the whole state when somebody needs it."""

    def __init__(self, everything: Callable[[], Any]) -> None:
        self._everything = everything
        self._epoch = secrets.token_hex(4)  # places of another process mean nothing here
        self._sequence = 0
        self._backlog: deque[Frame] = deque(maxlen=BACKLOG)
        self._whole: Frame | None = None
        self._news = asyncio.Event()
        self._closed = False
        self.viewers = 0
        self.arrived = asyncio.Event()  # somebody came to watch

    def publish(self, document: Any) -> None:
        """A change, to be applied to what came before."""
        self._sequence += 1
        self._backlog.append(self._frame("delta", document))
        self._tell()

    def restart(self) -> None:
        """So much changed that everybody needs everything."""
        self._sequence += 1
        self._backlog.clear()
        self._tell()

    def close(self) -> None:
        """Lets all viewers go, so that the server can end."""
        self._closed = True
        self._tell()

    def missing(self, at: int | None) -> list[Frame]:
        """What somebody needs who has seen everything up to a place; None: nothing."""
        behind = self._sequence - (-1 if at is None else at)
        if at is not None and 0 <= behind <= len(self._backlog):
            return list(self._backlog)[len(self._backlog) - behind :]
        if self._whole is None:
            self._whole = self._frame("full", self._everything())
        return [self._whole]

    def place(self, last_event_id: str) -> int | None:
        """Where a viewer left off; None where that is not known."""
        epoch, _, number = last_event_id.partition("-")
        return int(number) if epoch == self._epoch and number.isdecimal() and len(number) < 18 else None

    async def serve(self, request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
        if self.viewers >= MOST_VIEWERS or self._closed:
            return web.Response(status=503, text="too many viewers\n", headers={"Retry-After": "10", **headers})
        headers = {**headers, "Content-Type": "text/event-stream"}
        if request.method == "HEAD":  # there is no end of it to wait for
            return web.Response(headers=headers)
        packed = "gzip" in request.headers.get("Accept-Encoding", "")
        response = web.StreamResponse(headers=headers)
        if packed:
            response.headers["Content-Encoding"] = "gzip"
        self.viewers += 1
        self.arrived.set()
        try:
            await response.prepare(request)
            await response.write((GZIP_HEADER if packed else b"") + Frame(b"retry: 1000\n\n").bytes(packed))
            await self._follow(response, self.place(request.headers.get("Last-Event-ID", "")), packed)
        except (ConnectionError, TimeoutError):
            pass  # it went away, or takes nothing
        finally:
            self.viewers -= 1
        return response

    async def _follow(self, response: web.StreamResponse, at: int | None, packed: bool) -> None:
        while not self._closed:
            frames = self.missing(at)
            at, news = self._sequence, self._news
            if frames:
                async with asyncio.timeout(STUCK_S):
                    await response.write(b"".join(frame.bytes(packed) for frame in frames))
                continue
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await news.wait()
            except TimeoutError:
                await response.write(_HEARTBEAT.bytes(packed))

    def _frame(self, kind: str, document: Any) -> Frame:
        head = f"id: {self._epoch}-{self._sequence}\nevent: {kind}\ndata: ".encode()
        return Frame(head + msgspec.json.encode(document) + b"\n\n")

    def _tell(self) -> None:
        self._whole = None
        news, self._news = self._news, asyncio.Event()
        news.set()


_HEARTBEAT = Frame(b"event: heartbeat\ndata: {}\n\n")
