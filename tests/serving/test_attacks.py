"""What a server does about clients that mean harm, each limit small, so that it is reached soon."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from joulie.serving import ConnectionLimits, HttpServer, app_server
from testbed.credentials import write_certificates

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LARGE = bytes(8 << 20)  # more than sockets hold


async def sent(port: int, data: bytes, *, half_close: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    if half_close:
        writer.write_eof()
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


async def until(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)


def port_of(server: HttpServer) -> int:
    return server.addresses[0][1]


@asynccontextmanager
async def serving(limits: ConnectionLimits, context: ssl.SSLContext | None = None) -> AsyncIterator[HttpServer]:
    async def answered(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def large(_: web.Request) -> web.Response:
        return web.Response(body=LARGE)

    async def posted(request: web.Request) -> web.Response:
        return web.Response(text=f"{len(await request.read())}\n")

    routes = [
        web.get("/healthz", answered),
        web.get("/metrics", answered),
        web.get("/large", large),
        web.post("/", posted),
    ]
    server = app_server(routes, limits)
    await server.start("127.0.0.1:0", "ADDR", context)
    try:
        yield server
    finally:
        await server.cleanup()


async def connected(port: int, count: int, data: bytes = b"") -> list[socket.socket]:
    """Connections that say this and then nothing, and read nothing."""
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        if data:
            await asyncio.get_running_loop().sock_sendall(client, data)
        clients.append(client)
    return clients


def close(clients: list[socket.socket]) -> None:
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
        (b"GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n", b"200"),
        (b"OPTIONS /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"405"),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\nConnection: close\r\n\r\n", b"200"),
        (
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            b"200",
        ),
    ],
    ids=["head", "1.0 keep-alive", "options", "range", "websocket"],
)
def test_unusual_requests_get_an_answer_and_an_end(request_bytes: bytes, status: bytes) -> None:
    async def story() -> None:
        async with serving(ConnectionLimits(idle_s=0.5)) as server:
            answer = await sent(port_of(server), request_bytes)
            assert answer.split(b" ", 2)[1] == status

    asyncio.run(story())


def test_who_has_said_all_is_still_answered() -> None:
    async def story() -> None:
        async with serving(ConnectionLimits(half_closed=True)) as server:
            kept = HEALTHZ.replace(b"Connection: close\r\n", b"")
            assert (await sent(port_of(server), kept, half_close=True)).startswith(b"HTTP/1.1 200")
            assert await sent(port_of(server), b"GET /hea", half_close=True) == b""
            await until(lambda: not server.connections)

    asyncio.run(story())


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["silent", "blank lines", "half a head", "no body", "half a chunk", "answered and idle", "reads nothing"],
)
def test_a_newcomer_is_answered_however_many_wait(said: bytes) -> None:
    async def story() -> None:
        async with serving(ConnectionLimits(connections=16, held_bytes=1 << 30)) as server:
            clients = await connected(port_of(server), 50, said)
            await until(lambda: server.connections == 16)
            for _ in range(5):
                assert (await sent(port_of(server), HEALTHZ)).startswith(b"HTTP/1.1 200")
                assert server.connections <= 16
            close(clients)

    asyncio.run(story())


def test_an_address_that_floods_is_turned_away_and_others_are_let_in() -> None:
    async def story() -> None:
        async with serving(ConnectionLimits(connections=16)) as server:
            port = port_of(server)
            flood = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(1000)]
            await until(lambda: server.connections == 16)
            turned_away = [reader for reader, _ in flood if reader.at_eof()]
            assert turned_away
            for _ in range(300):
                assert (await sent(port, HEALTHZ)).startswith(b"HTTP/1.1 200")
            for _, writer in flood:
                writer.transport.abort()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", b""),
        (b"GET /metrics HTTP/1.1\r\nHost", b" 408 "),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b""),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", b""),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b" 200 "),
        (b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", b" 200 "),
    ],
    ids=["silent", "half a head", "no body", "half a chunk", "answered and idle", "reads nothing"],
)
def test_who_takes_too_long_is_parted_with(said: bytes, told: bytes) -> None:
    async def story() -> None:
        async with serving(ConnectionLimits(head_s=0.3, idle_s=0.3, body_s=0.3, unread_s=0.3)) as server:
            (client,) = await connected(port_of(server), 1, said)
            await until(lambda: server.connections == 1)
            await until(lambda: not server.connections)
            answer = b""
            with suppress(ConnectionResetError):
                answer = await asyncio.get_running_loop().sock_recv(client, 1000)
            assert told in answer
            close([client])

    asyncio.run(story())


def test_a_tls_handshake_that_never_ends_holds_nothing(tmp_path: Path) -> None:
    certificates = write_certificates(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server, certificates.server_key)

    async def story() -> None:
        async with serving(ConnectionLimits(connections=16, head_s=60), context) as server:
            clients = await connected(port_of(server), 50, b"\x16\x03\x01")
            await until(lambda: server.connections == 16)
            trusting = ssl.create_default_context(cafile=str(certificates.ca))
            reader, writer = await asyncio.open_connection(
                "localhost", port_of(server), ssl=trusting, family=socket.AF_INET
            )
            writer.write(HEALTHZ)
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
            close(clients)
        async with serving(ConnectionLimits(head_s=0.3), context) as server:
            clients = await connected(port_of(server), 3, b"\x16\x03\x01")
            await until(lambda: server.connections == 3)
            await until(lambda: not server.connections)
            close(clients)

    asyncio.run(story())


def test_answers_that_are_not_read_take_no_more_memory_than_they_may() -> None:
    """Who reads is served: the memory is taken from those who do not."""

    async def story() -> None:
        async with serving(ConnectionLimits(held_bytes=3 * len(LARGE))) as server:
            ask = b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            clients = await connected(port_of(server), 20, ask)
            answer = b""
            async with asyncio.timeout(30):
                while not answer.endswith(LARGE):
                    assert (await sent(port_of(server), HEALTHZ)).startswith(b"HTTP/1.1 200")
                    answer = await sent(port_of(server), ask)
                    assert b" 200 " in answer[:20] or b" 503 " in answer[:20]
                    assert b" 200 " in answer[:20] or b"Retry-After: 1" in answer
            await until(lambda: server.connections <= 3)
            close(clients)

    asyncio.run(story())


def test_out_of_files_it_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story() -> None:
        async with serving(ConnectionLimits()) as server:
            clients = await connected(port_of(server), 5)
            await until(lambda: server.connections == 5)
            taken = [socket.socket()]
            newcomer = socket.socket()
            newcomer.setblocking(False)
            resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0].fileno() + 30, hard))
            try:
                while True:
                    taken.append(socket.socket())
            except OSError:
                pass
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_connect(newcomer, ("127.0.0.1", port_of(server)))
                await loop.sock_sendall(newcomer, HEALTHZ)
                answer = await asyncio.wait_for(loop.sock_recv(newcomer, 1000), 30)
                assert answer.startswith(b"HTTP/1.1 200")  # in the place of one that was silent
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                close([*clients, *taken, newcomer])

    asyncio.run(story())
    assert [record.getMessage() for record in caplog.records] == ["connections cannot be accepted"]


def test_all_files_that_may_be_had_are_had() -> None:
    async def story() -> None:
        async with serving(ConnectionLimits()):
            pass

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200), hard))
    try:
        asyncio.run(story())
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_those_who_ask_without_end_leave_time_for_others() -> None:
    """So many requests a second are answered and no more; probes need not wait for their turn."""

    async def story() -> None:
        async with serving(ConnectionLimits(requests_per_s=50)) as server:
            ended = False
            answered = 0

            async def ask_on() -> None:
                nonlocal answered
                reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
                while not ended:
                    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    await reader.readuntil(b"ok\n")
                    answered += 1
                writer.close()

            began_s = time.monotonic()
            asking: list[Awaitable[None]] = [asyncio.create_task(ask_on()) for _ in range(20)]
            await until(lambda: answered > 20)
            before = answered
            assert (await sent(port_of(server), HEALTHZ)).startswith(b"HTTP/1.1 200")
            assert answered <= before + 20
            await until(lambda: answered > 60)
            assert answered <= 50 * (time.monotonic() - began_s) + 10
            ended = True
            await asyncio.gather(*asking)

    asyncio.run(story())


def test_a_few_pipelined_requests_are_answered_and_a_flood_of_them_is_refused() -> None:
    ask = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    async def story() -> None:
        async with serving(ConnectionLimits()) as server:
            answers = await sent(port_of(server), ask * 15 + last)
            assert answers.count(b"HTTP/1.1 200") == 16
            answer = await sent(port_of(server), ask * 129)
            assert answer.startswith(b"HTTP/1.1 400")
            assert answer.endswith(b"more than 128 requests at once; wait for answers\n")
            assert answer.count(b"HTTP/1.1 ") == 1

    asyncio.run(story())


def test_a_handler_ends_when_its_client_has_gone() -> None:
    """Otherwise a client that asks and goes away leaves a task behind each time."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return web.Response()

    async def story() -> None:
        server = app_server([web.get("/slow", slow)], ConnectionLimits())
        await server.start("127.0.0.1:0", "ADDR")
        clients = await connected(port_of(server), 1, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(begun.wait(), 30)
        close(clients)
        await asyncio.wait_for(ended.wait(), 30)
        await server.cleanup()

    asyncio.run(story())
