"""A page of metrics that all clients share: rendered rarely, in pieces, and sent in pieces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable

from aiohttp import web

from joulie.serving.sharing import Share

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
FRESH_S = 1.0  # at most so long the same page is sent
MAX_SHARE = 0.05  # of the time may go into rendering; beyond it, and while it is fresh, the last page is sent again
TURN_S = 0.005  # others get their turn at least so often while it is rendered
PIECE_BYTES = 256 << 10


class Page:
    """`render` gives the page piece by piece; with a pause, others get that long after each."""

    def __init__(self, render: Callable[[], Iterable[bytes]], pause_s: float = 0.0) -> None:
        self._render, self._pause_s = render, pause_s
        self._body = b""
        self._share = Share(MAX_SHARE, FRESH_S)
        self._made_s = -FRESH_S
        self._rendering: asyncio.Task[None] | None = None

    async def answer(self) -> web.Response:
        now_s = time.monotonic()
        if self._rendering is None and (now_s - self._made_s >= FRESH_S or not self._share.is_used_up(now_s)):
            self._rendering = asyncio.create_task(self._make())
        if self._rendering is not None:
            await asyncio.shield(self._rendering)  # a client that goes away must not cancel it for others
        return in_pieces(self._body, PROMETHEUS)

    async def _make(self) -> None:
        try:
            worked_s, turn_s = 0.0, time.monotonic()
            pieces: list[bytes] = []
            for piece in self._render():
                pieces.append(piece)
                if self._pause_s or time.monotonic() - turn_s > TURN_S:
                    worked_s += time.monotonic() - turn_s
                    await asyncio.sleep(self._pause_s)
                    turn_s = time.monotonic()
            self._body = b"".join(pieces)
            self._made_s = time.monotonic()
            self._share.use(self._made_s, worked_s + self._made_s - turn_s)
        finally:
            self._rendering = None


def in_pieces(body: bytes, content_type: str, piece_bytes: int = PIECE_BYTES) -> web.Response:
    """What is large is handed over as it is read: otherwise each slow reader would keep a copy."""
    if len(body) <= piece_bytes:
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def pieces() -> AsyncIterator[memoryview]:
        for start in range(0, len(body), piece_bytes):
            yield memoryview(body)[start : start + piece_bytes]

    return web.Response(body=pieces(), headers={"Content-Type": content_type, "Content-Length": str(len(body))})
