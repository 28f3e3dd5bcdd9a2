"""What every process serves over HTTP, and what it does about those who do not speak it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from joulie.serving import serve


async def sent(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


def played(routes: list[web.RouteDef], *requests: bytes) -> list[bytes]:
    async def story() -> list[bytes]:
        runner = await serve("127.0.0.1:0", lambda: b"", lambda: None, lambda: None, routes)
        try:
            return [await sent(runner.addresses[0][1], request) for request in requests]
        finally:
            await runner.cleanup()

    return asyncio.run(story())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"G" * 20_000 + b"\r\n\r\n",
    ],
    ids=["tls", "bytes", "version", "length"],
)
def test_what_is_not_http_is_refused_without_a_line_in_the_log(
    nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    refused, healthy = played([], nonsense, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b" 400 " in refused.splitlines()[0]
    assert healthy.startswith(b"HTTP/1.1 200")
    assert caplog.records == []


def test_a_fault_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: web.Request) -> web.Response:
        raise ValueError("ours")

    (answer,) = played([web.get("/broken", broken)], b"GET /broken HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
