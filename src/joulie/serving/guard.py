"""What one server allows all of its clients together: connections, time, memory, and requests a second.

A new connection that finds no room takes the place of an idle one: a probe gets its answer also while
thousands of silent connections are opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from joulie.serving.connection import Connection

OnRefused = Callable[[int], None]  # told the status
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
URGENT = frozenset({"/healthz", "/readyz"})  # probes, which are answered first
BURST_S = 0.1  # of requests that come at once
REPLACED_PER_S, REPLACED_S = 200.0, 1.0  # connections of an address that holds most places, and for how long at once
MEGABYTE = 1 << 20
SMALL_BYTES = 64 << 10  # such an answer is given also when there is no memory for others, a probe's above all


class ConnectionLimits(NamedTuple):
    """How much, how long. `requests_per_s` 0: as many as come."""

    connections: int = 256
    head_s: float = 10.0  # from the first byte, or from the beginning of a connection, to a whole head
    idle_s: float = 120.0  # clients keep idle connections for 90 s or less: they part first, and no request is lost
    body_s: float = 30.0
    unread_s: float = 10.0  # an answer of which nothing is read
    held_bytes: int = 64 * MEGABYTE  # of requests and answers at a time
    requests_per_s: float = 0.0
    half_closed: bool = False  # answer clients that have closed their side: only where no handler waits for long


class Guard:
    """Knows every connection of one server."""

    def __init__(self, limits: ConnectionLimits, on_refused: OnRefused = lambda _status: None) -> None:
        self.limits, self.on_refused = limits, on_refused
        self._make: Callable[[], web.RequestHandler] | None = None
        self._all: dict[Connection, None] = {}  # in the order of their coming
        self._places: Counter[str] = Counter()  # by address
        self._next_replacement_s = 0.0
        self._by_transport: dict[asyncio.BaseTransport | None, Connection] = {}
        self._held = 0
        self._next_turn_s = 0.0

    def attach(self, make: Callable[[], web.RequestHandler]) -> None:
        """The server whose protocol each connection gets."""
        self._make = make

    @property
    def connections(self) -> int:
        return len(self._all)

    def admit(self, address: str, most: int) -> Connection | None:
        """A place for a new connection, if need be that of another.

        None where an address that holds most of the places comes again too quickly: to turn a client away at the door
        costs a tenth of what it costs to let it in and another out.
        """
        if len(self._all) >= most:
            now_s = time.monotonic()
            if self._places[address] > most // 2:
                if self._next_replacement_s > now_s:
                    return None
                self._next_replacement_s = max(self._next_replacement_s, now_s - REPLACED_S) + 1 / REPLACED_PER_S
            while len(self._all) >= most:
                self.make_room()
        connection = Connection(self, address)
        self._all[connection] = None
        self._places[address] += 1
        return connection

    def make_room(self) -> None:
        """Drop one connection of the address that has most: the longest idle, and first those that never had an answer.

        Where none is idle it is the newest, so that the others come to an end.
        """
        now_s = time.monotonic()

        def worth(each: Connection) -> tuple[int, bool, bool, float]:
            waits = each.waits(now_s)
            return -self._places[each.address], not waits, each.answered > 0, each.since_s if waits else -each.since_s

        if self._all:
            min(self._all, key=worth).drop()

    def entered(self, connection: Connection, transport: asyncio.Transport) -> web.RequestHandler:
        assert self._make is not None
        self._by_transport[transport] = connection
        return self._make()

    def left(self, connection: Connection) -> None:
        if connection in self._all:
            del self._all[connection]
            self._places[connection.address] -= 1
            if not self._places[connection.address]:
                del self._places[connection.address]
        self._by_transport.pop(connection.transport, None)
        self._release(connection)

    def look(self) -> None:
        """Time out stalled connections; called once in a while."""
        now_s = time.monotonic()
        for connection in list(self._all):
            connection.look(now_s)

    def drop_all(self) -> None:
        for connection in list(self._all):
            connection.drop()

    async def handle(self, request: web.BaseRequest, handler: Handler) -> web.StreamResponse:
        """Answer one request, all of the sending included."""
        connection = self._by_transport.get(request.transport)
        if connection is None:
            return too_much()  # its connection was dropped meanwhile: this goes nowhere
        connection.begin(request)
        try:
            if request.path not in URGENT:
                await self._turn(connection)
            response = await handler(request)
            size = 0 if response.prepared else response.content_length or 0
            if size > SMALL_BYTES and not self.hold(connection, size):
                self.on_refused(503)
                response = too_much()
            if connection.is_last:
                response.force_close()
            with contextlib.suppress(ConnectionError):  # it went away, which is its right: aiohttp finds out by itself
                await response.prepare(request)
                await response.write_eof()
            return response
        finally:
            self._release(connection)
            connection.end()

    def hold(self, connection: Connection, size: int) -> bool:
        """More memory for a request or its answer, taken from idle connections; False where there is none."""
        connection.held += size
        self._held += size
        now_s = time.monotonic()
        while self._held > self.limits.held_bytes:
            idle = [each for each in self._all if each.held and each.waits(now_s) and each is not connection]
            if not idle:
                return connection.held == self._held  # alone it may have what its own limit allows
            max(idle, key=lambda each: (each.held, -each.since_s)).drop()
        return True

    def _release(self, connection: Connection) -> None:
        self._held -= connection.held
        connection.held = 0

    async def _turn(self, connection: Connection) -> None:
        """Other work on the same event loop must not wait for clients that ask without end."""
        rate = self.limits.requests_per_s
        if rate:
            now_s = time.monotonic()
            self._next_turn_s = max(self._next_turn_s, now_s - BURST_S) + 1 / rate
            if self._next_turn_s > now_s:
                connection.is_queued = True
                await asyncio.sleep(self._next_turn_s - now_s)
                connection.is_queued = False


def too_much() -> web.Response:
    return web.Response(status=503, text="too many requests at once\n", headers={"Retry-After": "1"})
