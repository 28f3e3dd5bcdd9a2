"""A client on one connection that does nothing but send and receive, so that what it measures is the server."""

from __future__ import annotations

import gc
import json
import math
import socket
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_TIMEOUT_S = 30.0


class Connection:
    """Keeps the connection and one buffer for all answers."""

    def __init__(self, port: int, largest: int = 1 << 20) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(largest)
        self._answer = slice(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def seconds(self, message: bytes) -> float:
        """From sending the request to the last byte of its answer, which must be a success."""
        view = memoryview(self._buffer)
        began_s = time.perf_counter()
        self._socket.sendall(message)
        filled, ends_at, head_at = 0, -1, -1
        while filled != ends_at:
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise ConnectionError(f"the connection ended after {filled} bytes")
            filled += received
            if head_at < 0 and (head_at := self._buffer.find(_HEAD_END, 0, filled)) >= 0:
                ends_at = head_at + len(_HEAD_END) + self._length(head_at)
        took_s = time.perf_counter() - began_s
        self._answer = slice(head_at + len(_HEAD_END), ends_at)
        if not self._buffer.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(f"no success: {bytes(view[:400])!r}")
        return took_s

    def answer(self) -> Any:
        """What the last request was answered."""
        return json.loads(self._buffer[self._answer])

    def _length(self, head_at: int) -> int:
        head = bytes(self._buffer[:head_at]).lower()
        return int(head[head.index(_LENGTH) + len(_LENGTH) :].split(b"\r\n", 1)[0])


class Times:
    """How long each of many equal requests took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    @property
    def p50_s(self) -> float:
        return self._at(0.5)

    @property
    def p99_s(self) -> float:
        return self._at(0.99)

    def _at(self, part: float) -> float:
        return sorted(self.seconds)[math.ceil(part * len(self.seconds)) - 1]


def in_turns(
    connections: Mapping[str, tuple[Connection, bytes]], rounds: int, loads: bytes | None = None, loads_every: int = 1
) -> tuple[dict[str, Times], Times]:
    """Each request in turns, and every few rounds `json.loads` of a body, the yardstick.

    Its garbage collector runs as in any program, but has nothing to look through except what `json.loads` makes.
    """
    times = {name: Times() for name in connections}
    yardstick = Times()
    for connection, message in connections.values():  # what is made at the first request is not measured
        connection.seconds(message)
    gc.collect()
    gc.freeze()
    try:
        for number in range(rounds):
            if loads is not None and number % loads_every == 0:
                began_s = time.perf_counter()
                read = json.loads(loads)
                yardstick.seconds.append(time.perf_counter() - began_s)
                del read
            for name, (connection, message) in connections.items():
                times[name].seconds.append(connection.seconds(message))
    finally:
        gc.unfreeze()
    return times, yardstick
