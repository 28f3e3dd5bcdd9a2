"""Server-sent events: every message is encoded once for all viewers, and a slow viewer gets the latest state instead.

There is no queue per viewer: each has a place in one short backlog. A viewer that falls behind it, or comes back with
a place that is not known, gets everything anew. So memory does not depend on how many watch, or how slowly.

A viewer that reads nothing looks like one that does for as long as the kernel has room. So no viewer is turned away
because there are many: the newcomer takes the place of another, which reconnects if it is alive.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

BACKLOG = 30  # messages: half a minute
HEARTBEAT_S = 5.0
STUCK_S = 10.0  # a viewer that takes nothing for so long is gone
MAX_VIEWERS = 100
PLACE_EVERY_S = 0.02
PIECE_BYTES = 64 << 10  # more than that is not kept for a viewer that reads slowly
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
    """Changes, for all viewers. `everything` is asked for the whole state when a viewer needs it."""

    def __init__(self, everything: Callable[[], Any]) -> None:
        self._everything = everything
        self._epoch = secrets.token_hex(4)  # places of another process mean nothing here
        self._sequence = 0
        self._backlog: deque[Frame] = deque(maxlen=BACKLOG)
        self._whole: Frame | None = None
        self._news = asyncio.Event()
        self._closed = False
        self._next_place_s = 0.0
        self._viewers: dict[asyncio.Transport, str] = {}  # and their addresses, in the order of their coming
        self.arrived = asyncio.Event()  # a viewer has connected

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    def publish(self, document: Any) -> None:
        """A change, to be applied to what came before."""
        self._sequence += 1
        self._backlog.append(self._frame("delta", document))
        self._tell()

    def restart(self) -> None:
        """So much changed that all viewers need everything."""
        self._sequence += 1
        self._backlog.clear()
        self._tell()

    def close(self) -> None:
        """Lets all viewers go, so that the server can end."""
        self._closed = True
        self._tell()

    def missing(self, at: int | None) -> list[Frame]:
        """What a viewer lacks that has seen everything up to a place; None: nothing."""
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
        transport = request.transport
        if self._closed or transport is None:
            return web.Response(status=503, text="about to end\n", headers={"Retry-After": "10", **headers})
        headers = {**headers, "Content-Type": "text/event-stream"}
        if request.method == "HEAD":  # there is no end of it to wait for
            return web.Response(headers=headers)
        packed = "gzip" in request.headers.get("Accept-Encoding", "")
        response = web.StreamResponse(headers=headers)
        if packed:
            response.headers["Content-Encoding"] = "gzip"
        await self._wait_for_place()
        while self.viewers >= MAX_VIEWERS:
            self._make_room()
        self._viewers[transport] = request.remote or ""
        self.arrived.set()
        try:
            await response.prepare(request)
            await response.write((GZIP_HEADER if packed else b"") + Frame(b"retry: 1000\n\n").bytes(packed))
            await self._follow(transport, response, self.place(request.headers.get("Last-Event-ID", "")), packed)
        except (ConnectionError, TimeoutError):
            pass  # it went away, or takes nothing
        finally:
            self._viewers.pop(transport, None)
        return response

    async def _wait_for_place(self) -> None:
        """Each newcomer is sent everything: where all places are taken they change hands only so often."""
        if self.viewers >= MAX_VIEWERS:
            now_s = time.monotonic()
            self._next_place_s = max(self._next_place_s, now_s) + PLACE_EVERY_S
            await asyncio.sleep(self._next_place_s - now_s)

    def _make_room(self) -> None:
        """Drop the oldest viewer of the address from which most watch."""
        by_address = Counter(self._viewers.values())
        leaves = max(self._viewers, key=lambda each: by_address[self._viewers[each]])
        del self._viewers[leaves]
        leaves.abort()

    async def _follow(
        self, viewer: asyncio.Transport, response: web.StreamResponse, at: int | None, packed: bool
    ) -> None:
        while not self._closed and viewer in self._viewers:
            frames = self.missing(at)
            at, news = self._sequence, self._news
            if frames:
                for frame in frames:
                    await _send(response, frame.bytes(packed))
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


async def _send(response: web.StreamResponse, data: bytes) -> None:
    for start in range(0, len(data), PIECE_BYTES):
        async with asyncio.timeout(STUCK_S):
            await response.write(memoryview(data)[start : start + PIECE_BYTES])


_HEARTBEAT = Frame(b"event: heartbeat\ndata: {}\n\n")
