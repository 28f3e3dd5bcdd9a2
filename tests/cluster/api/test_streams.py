"""Small pieces of a watch are collected, so that the reader is woken once for many, in the clear and with TLS."""

from __future__ import annotations

import asyncio
import random
import selectors
import socket
import ssl
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from joulie.cluster.api.credentials import Credentials
from joulie.cluster.api.transport import Transport
from joulie.cluster.port import ClusterError
from tests.cluster.api.cutting_server import cutting_server
from tests.cluster.api.tls_contexts import contexts

LINES = 200
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


class CountingSelector(selectors.DefaultSelector):
    """Counts how often something was there to be read or written."""

    def __init__(self) -> None:
        super().__init__()
        self.woken = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        self.woken += bool(ready)
        return ready


def send_lines(listener: socket.socket, tls: ssl.SSLContext | None) -> None:
    """One client gets lines, each in a packet of its own."""
    plain, _ = listener.accept()
    with tls.wrap_socket(plain, server_side=True) if tls else plain as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.recv(65536)
        client.sendall(HEAD)
        for number in range(LINES):
            client.sendall(b"%d\n" % number)
            time.sleep(0.002)


async def read_slowly(url: str, tls: ssl.SSLContext | None, selector: CountingSelector) -> bytes:
    transport = Transport(Credentials(url, ssl_context=tls))
    heard = b""
    try:
        async with transport.stream("/watch", {}, idle_s=10.0) as pieces:
            async for piece in pieces:
                heard += piece
                await asyncio.sleep(0.1)
                if len(heard) == len(piece):
                    selector.woken = 0
    finally:
        await transport.close()
    return heard


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_once_a_piece_has_taken_long_what_comes_meanwhile_wakes_no_reader(scheme: str, tmp_path: Path) -> None:
    ours, theirs = contexts(tmp_path) if scheme == "https" else (None, None)
    selector = CountingSelector()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=send_lines, args=(listener, theirs))
        server.start()
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
            heard = runner.run(read_slowly(url, ours, selector))
        server.join()
    assert heard.split() == [b"%d" % number for number in range(LINES)]
    assert selector.woken < LINES / 4  # since the first piece was dealt with


@pytest.mark.slow
def test_a_stream_that_is_cut_in_any_way_ends_for_slow_readers(tmp_path: Path) -> None:
    ours, theirs = contexts(tmp_path)
    luck, ends = random.Random(2), Counter[str]()

    async def follow(transport: Transport) -> None:
        for _ in range(50):
            try:
                async with asyncio.timeout(20), transport.stream("/watch", {}, idle_s=60.0) as pieces:
                    async for _ in pieces:
                        await asyncio.sleep(luck.choice([0.0, 0.001, 0.02]))
                ends["whole"] += 1
            except ClusterError:
                ends["cut"] += 1

    async def many(port: int) -> None:
        transport = Transport(Credentials(f"https://127.0.0.1:{port}", ssl_context=ours))
        try:
            await asyncio.gather(*(follow(transport) for _ in range(8)))
        finally:
            await transport.close()

    with cutting_server(theirs, seed=1) as port:
        asyncio.run(many(port))
    assert ends.total() == 400
    assert min(ends["whole"], ends["cut"]) > 40
