"""An endless encrypted answer arrives whole, however the network cuts it and however slowly it is read."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from joulie.cluster.api.credentials import Credentials
from joulie.cluster.api.transport import Transport
from tests.cluster.api.tls_contexts import contexts
from tests.cluster.watching import run

CONTENT = random.Random(1).randbytes(1_000_000)


@contextlib.asynccontextmanager
async def streaming(folder: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A server that sends the content in writes of all sizes; its port and whom a client trusts."""
    ours, theirs = contexts(folder)

    async def stream(request: web.Request) -> web.StreamResponse:
        response, chance, sent = web.StreamResponse(), random.Random(2), 0
        await response.prepare(request)
        while sent < len(CONTENT):
            size = chance.choice([1, 300, 2_000, 40_000])
            await response.write(CONTENT[sent : sent + size])
            sent += size
        return response

    app = web.Application()
    app.router.add_get("/stream", stream)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=theirs).start()
    try:
        yield runner.addresses[0][1], ours
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def cutting(port: int, largest: int) -> AsyncIterator[int]:
    """A wire that hands on pieces of odd sizes, so that encrypted records come in parts."""
    chance = random.Random(largest)

    async def relay(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(chance.randrange(1, largest)):
                target.write(piece)
                await target.drain()
                await asyncio.sleep(0)
        target.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(relay(reader, far_writer), relay(far_reader, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("largest", [700, 20_000, 300_000])
def test_every_byte_arrives_in_order_whatever_the_records_are_cut_into(tmp_path: Path, largest: int) -> None:
    async def story() -> None:
        async with streaming(tmp_path) as (port, trusted), cutting(port, largest) as wire:
            transport = Transport(Credentials(f"https://127.0.0.1:{wire}", ssl_context=trusted))
            received, pieces = bytearray(), 0
            try:
                async with transport.stream("/stream", {}, idle_s=10) as stream:
                    async for piece in stream:
                        received += piece
                        pieces += 1
                        if pieces % 10 == 0:
                            await asyncio.sleep(0.005)  # the handler takes a while
            finally:
                await transport.close()
            assert received == CONTENT

    run(story())
