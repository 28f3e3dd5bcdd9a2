"""Clients that mean harm, as a process of their own: `python -m bench.attack.attacks ATTACK PORT PATH COUNT SECONDS`.

Each attack keeps up its number of connections until its time is over: who is thrown out comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sys
from collections.abc import Awaitable, Callable

PIECE = bytes(64 << 10)
SOURCE = "127.0.0.2"  # another address than the kubelet, kube-scheduler and our own processes have
NAMES = b'{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":[' + b",".join([b'"a"'] * 2_000_000) + b"]}"
AGAIN_S = 1.0  # between being thrown out and coming again

Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]


async def _idle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _path: str) -> None:
    await reader.read(1)


async def _nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _path: str) -> None:
    """The yardstick: what the machine does without an attack."""
    await asyncio.sleep(3600)


async def _slow_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    for byte in f"GET {path} HTTP/1.1\r\nHost: localhost\r\n" + "X: y\r\n" * 1000:
        writer.write(byte.encode())
        await writer.drain()
        if reader.at_eof():
            return
        await asyncio.sleep(0.5)


async def _slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 50)
    await writer.drain()
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    while not writer.is_closing():
        await asyncio.sleep(0.5)
        writer.write(b"\r\n")  # otherwise a closed connection would go unnoticed
        await writer.drain()


async def _huge_body(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    while True:
        writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
        await writer.drain()
        await asyncio.sleep(0)


async def _many_names(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(NAMES)}\r\n\r\n"
    writer.write(head.encode())
    writer.write(NAMES)
    await writer.drain()
    await reader.read(1 << 20)


async def _scrape(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    while True:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        while length:
            length -= len(await reader.readexactly(min(length, 1 << 16)))


async def _pipelined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    many = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 1000
    while not reader.at_eof():
        writer.write(many)
        await writer.drain()
        await reader.read(1 << 16)


ATTACKS: dict[str, Attack] = {
    "nothing": _nothing,
    "idle connections": _idle,
    "slow heads": _slow_head,
    "slow readers": _slow_reader,
    "huge bodies": _huge_body,
    "many names": _many_names,
    "scrapes": _scrape,
    "pipelined requests": _pipelined,
}


async def attack(name: str, port: int, path: str, count: int, seconds: float) -> None:
    """So many connections at a time, for so long."""

    async def again_and_again() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await _once(ATTACKS[name], port, path)
            await asyncio.sleep(AGAIN_S)

    clients = [asyncio.create_task(again_and_again()) for _ in range(count)]
    await asyncio.sleep(seconds)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)


async def _once(how: Attack, port: int, path: str) -> None:
    client = socket.socket()
    client.setblocking(False)
    client.bind((SOURCE, 0))
    if how is _slow_reader:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=client)
    except BaseException:
        client.close()
        raise
    try:
        await how(reader, writer, path)
    finally:
        writer.transport.abort()


if __name__ == "__main__":
    os.nice(5)  # who is attacked has the processor first, as on a machine of its own
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(attack(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
