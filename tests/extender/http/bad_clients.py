"""Clients that send bad requests in great numbers, and judge every answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from tests.extender.http.bad_requests import good_body, head_of, not_http, on_a_kept_connection

MAX_LINE = 700


class Refused(NamedTuple):
    status: int
    line: str


class Tally:
    """What came back, and what should not have."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        self.closed = 0
        self.faults: list[str] = []

    def take(self, refused: Refused, sent: bytes, may_pass: bool = False) -> None:
        self.answers[refused.status] += 1
        if refused.status == 200 and may_pass:
            return
        if refused.status == 503 and sent.startswith(b"POST /debug/scoring"):
            return  # a harmless byte, or more of these pages at once than are made
        line = refused.line
        one_line = line.endswith("\n") and line[:-1].isprintable() and 0 < len(line.strip()) <= MAX_LINE
        if not 400 <= refused.status < 500 or not one_line:
            self.faults.append(f"{sent[:300]!r} -> {refused.status} {line[:300]!r}")

    @property
    def total(self) -> int:
        return self.answers.total() + self.closed


async def read_answer(reader: asyncio.StreamReader) -> Refused:
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(_length(head))
    return Refused(int(head.split()[1]), body.decode())


def _length(head: bytes) -> int:
    fields = head.lower().split(b"\r\n")
    return next(int(each.split(b":")[1]) for each in fields if each.startswith(b"content-length:"))


async def pipelined(port: int, seed: int, count: int, tally: Tally, batch: int = 16) -> None:
    """Many on one connection, several at a time without waiting for answers."""
    rng = Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for start in range(0, count, batch):
            sent = [on_a_kept_connection(rng) for _ in range(min(batch, count - start))]
            writer.write(b"".join(bad.data for bad in sent))
            for bad in sent:
                tally.take(await read_answer(reader), bad.data, bad.may_pass)
    finally:
        writer.close()


async def hostile(port: int, seed: int, count: int, tally: Tally) -> None:
    """A connection each: not HTTP, or HTTP that breaks off."""
    rng = Random(seed)
    for _ in range(count):
        data = not_http(rng)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            if rng.random() < 0.3:
                writer.write_eof()
            answer = b""
            with contextlib.suppress(ConnectionError):
                answer = await reader.read()
        finally:
            writer.close()
        _judge(tally, answer, data)


def _judge(tally: Tally, answer: bytes, data: bytes) -> None:
    """Of possibly several answers, the last is a refusal; none at all is a closed connection."""
    if not answer:
        tally.closed += 1
        return
    refused = Refused(0, "")
    while answer:
        head, _, answer = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status != 100:
            length = _length(head)
            refused, answer = Refused(status, answer[:length].decode()), answer[length:]
    tally.take(refused, data)


async def broken_off(port: int, seed: int, count: int, tally: Tally) -> None:
    """The client goes away in the middle, in good order or not."""
    rng = Random(seed)
    for _ in range(count):
        body = json.dumps(good_body("/filter")).encode()
        data = (head_of("/filter", len(body)) + body)[: rng.randrange(1, 400)]
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        await writer.drain()
        if rng.random() < 0.5:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        writer.close()
        tally.closed += 1


async def slow(port: int, seed: int, count: int, tally: Tally) -> None:
    """All at once, a few bytes at a time, heads and bodies that never end."""
    rng = Random(seed)

    async def one(pieces: Sequence[bytes], then: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.05)
                for _ in range(400):
                    if reader.at_eof() or reader._buffer:  # type: ignore[attr-defined]
                        break
                    writer.write(then)
                    await asyncio.sleep(0.05)
            answer = b""
            with contextlib.suppress(ConnectionError):
                answer = await reader.read()
        finally:
            writer.close()
        _judge(tally, answer, b"".join(pieces))

    shapes: tuple[tuple[Sequence[bytes], bytes], ...] = (
        ([b"P", b"O", b"S", b"T"], b""),
        ([b"POST /filter HTTP/1.1\r\nHost: e\r\n"], b"A: b\r\n"),
        ([head_of("/filter", 1000)], b" "),
        ([head_of("/prioritize", 1000), b'{"Pod":'], b""),
        ([b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n"], b"1\r\n \r\n"),
        ([b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n", b"FFFFFFFFFFFFFFFF\r\n"], b"x"),
        ([head_of("/preempt", 1000, "Expect: 100-continue")], b""),
    )
    await asyncio.gather(*(one(*rng.choice(shapes)) for _ in range(count)))


async def oversized(port: int, seed: int, count: int, limit: int, tally: Tally) -> None:
    """More than is taken, said beforehand or not."""
    rng = Random(seed)
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            with contextlib.suppress(ConnectionError):
                if rng.random() < 0.5:
                    writer.write(head_of("/filter", limit + 1) + b" " * rng.choice([0, 1000, limit]))
                else:
                    writer.write(b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for _ in range(limit // 65_536 + 1):
                        writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
                        await writer.drain()
            tally.take(await read_answer(reader), b"(oversized)")
        finally:
            writer.close()
