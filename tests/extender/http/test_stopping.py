"""The end of a process: what has begun is answered, the port is free, the exit code is 0."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import time
from pathlib import Path

import pytest
from aiohttp import web

from joulie.serving import ConnectionLimits, bare_server
from testbed.processes import free_port
from tests.extender.api_objects import pod
from tests.extender.file_process import FromFiles
from tests.extender.harness import request, scenario, until
from tests.extender.http.bad_clients import read_answer

BODY = json.dumps({"Pod": pod(performance=True), "NodeNames": [f"n{number}" for number in range(20)]}).encode()
PATIENT = {"EXTENDER_REQUEST_TIMEOUT": "20s"}


def _ended(extender: FromFiles, within_s: float = 30.0) -> None:
    assert extender.process.wait(within_s) == 0
    assert "Traceback" not in extender.log
    assert [line for line in extender.log.splitlines() if json.loads(line)["level"] != "info"] == []
    for port in (extender.port, extender.metrics_port):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended may linger
            probe.bind(("127.0.0.1", port))
            probe.listen()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_that_have_begun_are_answered(tmp_path: Path, number: signal.Signals) -> None:
    whole = request("/prioritize", BODY)
    with FromFiles(tmp_path, **PATIENT) as extender:

        async def story() -> None:
            connections = [await asyncio.open_connection("127.0.0.1", extender.port) for _ in range(40)]
            idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", extender.port)
            for at, (_, writer) in enumerate(connections):
                writer.write(whole[: -len(BODY) + 20 * at])  # some bodies have hardly begun
            await asyncio.sleep(0.3)
            extender.process.send_signal(number)
            await _until_refused(extender.port)
            assert extender.process.poll() is None
            for at, (_, writer) in enumerate(connections):
                writer.write(whole[-len(BODY) + 20 * at :])
                await asyncio.sleep(0.005)
            answers = [await read_answer(reader) for reader, _ in connections]
            assert {answer.status for answer in answers} == {200}
            assert len({answer.line for answer in answers}) == 1
            assert len(json.loads(answers[0].line)) == 20
            for reader, writer in connections:
                assert await reader.read() == b""
                writer.close()
            assert await idle_reader.read() == b""
            idle_writer.close()

        scenario(story())
        _ended(extender)


MUCH = json.dumps({"Pod": pod(), "NodeNames": [f"unknown-{number:060}" for number in range(200_000)]}).encode()


def _ask_and_read_nothing(client: socket.socket, port: int) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(request("/filter", MUCH))


def test_a_client_that_reads_nothing_of_its_answer_is_given_up() -> None:
    """Else the answer would be kept for as long as it likes; one that reads it slowly gets it."""

    async def much(_: web.BaseRequest) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    async def story() -> None:
        server = bare_server(much, ConnectionLimits(unread_s=4.0), lambda _: None, logging.getLogger())
        await server.start("127.0.0.1:0", "EXTENDER_ADDR")
        try:
            for reads in (False, True):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.addresses[0][1])
                writer.write(request("/", b"", method="GET"))
                await reader.readuntil(b"\r\n\r\n")
                for _ in range(16 if reads else 0):
                    await reader.readexactly(4 << 20)
                    await asyncio.sleep(0.05)
                if not reads:
                    await until(lambda: not server.connections)
                writer.close()
        finally:
            await server.cleanup()

    scenario(story())


def test_a_client_that_reads_nothing_does_not_hold_it_up(tmp_path: Path) -> None:
    with FromFiles(tmp_path, **PATIENT) as extender, socket.socket() as mute:
        _ask_and_read_nothing(mute, extender.port)
        time.sleep(0.3)
        extender.terminate()
        _ended(extender)


def test_a_client_that_never_finishes_does_not_hold_it_up(tmp_path: Path) -> None:
    with FromFiles(tmp_path) as extender:

        async def story() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", extender.port)
            writer.write(request("/filter", b"{", length=1000))
            other, half = await asyncio.open_connection("127.0.0.1", extender.port)
            half.write(b"POST /fil")
            await asyncio.sleep(0.1)
            extender.terminate()
            assert (await read_answer(reader)).status == 408
            assert await other.read() == b""
            writer.close()
            half.close()

        scenario(story())
        _ended(extender, within_s=20.0)


def test_under_load_every_answer_is_whole_or_none_at_all(tmp_path: Path) -> None:
    with FromFiles(tmp_path) as extender:
        question = request("/prioritize", BODY).replace(b"Connection: close", b"Connection: keep-alive")

        async def ask_on() -> int:
            reader, writer = await asyncio.open_connection("127.0.0.1", extender.port)
            answered = 0
            try:
                while True:
                    writer.write(question)
                    try:
                        answer = await read_answer(reader)
                    except asyncio.IncompleteReadError as error:
                        assert error.partial == b""  # noqa: PT017 - it ended between two answers
                        return answered
                    except ConnectionError:
                        return answered
                    assert answer.status == 200
                    assert len(json.loads(answer.line)) == 20
                    answered += 1
            finally:
                writer.close()

        async def story() -> None:
            asking = [asyncio.create_task(ask_on()) for _ in range(16)]
            await asyncio.sleep(0.5)
            extender.terminate()
            assert min(await asyncio.gather(*asking)) > 0

        scenario(story())
        _ended(extender)


def test_a_client_with_a_kept_connection_is_told_to_go_elsewhere(tmp_path: Path) -> None:
    question = request("/prioritize", BODY).replace(b"Connection: close", b"Connection: keep-alive")
    with FromFiles(tmp_path) as extender:

        async def last_words(pause_s: float) -> bytes:
            """The head of the last answer on a connection that is asked again and again."""
            reader, writer = await asyncio.open_connection("127.0.0.1", extender.port)
            while True:
                writer.write(question)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                assert len(json.loads(await reader.readexactly(length))) == 20
                if b"connection: close" in head:
                    assert await reader.read() == b""
                    writer.close()
                    return head
                await asyncio.sleep(pause_s)

        async def story() -> None:
            asking = [asyncio.create_task(last_words(pause_s)) for pause_s in (0.0, 0.05, 0.2)]
            await asyncio.sleep(0.5)
            extender.terminate()
            assert len(await asyncio.gather(*asking)) == 3

        scenario(story())
        _ended(extender)


@pytest.mark.parametrize("variable", ["EXTENDER_ADDR", "METRICS_ADDR"])
def test_an_address_in_use_is_one_line_and_exit_code_2(tmp_path: Path, variable: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = FromFiles(tmp_path, **{variable: address}).run_to_its_end()
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line == f"joulie: {variable}='{address}' cannot be listened on: {_in_use(address)}"


def _in_use(address: str) -> str:
    host, port = address.split(":")
    return f"error while attempting to bind on address ('{host}', {port}): address already in use"


def test_one_address_for_both_is_served_once(tmp_path: Path) -> None:
    extender = FromFiles(tmp_path)
    port = free_port()
    extender.port = extender.metrics_port = port
    extender._env |= {"EXTENDER_ADDR": f"127.0.0.1:{port}", "METRICS_ADDR": f"127.0.0.1:{port}"}
    with extender:
        assert extender.ask("GET", "/metrics")[0] == 200
        assert extender.ask("POST", "/filter", json.loads(BODY))[0] == 200
        extender.terminate()
        assert extender.process.wait(30) == 0


async def _until_refused(port: int) -> None:
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except (ConnectionRefusedError, ConnectionResetError):  # reset: it closed before it took this one
            return
        writer.close()
        await asyncio.sleep(0.02)
    raise AssertionError("it still listens")
