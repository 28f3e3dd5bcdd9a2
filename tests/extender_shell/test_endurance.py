"""What wears a long-lived process out: clients that do not read, files that run out, names that never repeat."""

from __future__ import annotations

import asyncio
import json
import resource
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from joulie.cluster.memory import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES
from tests.extender_shell.asking import following, made, request, scenario, serving
from tests.extender_shell.from_files import FromFiles
from tests.extender_shell.wire_objects import node, pod, twin

NAMES = [f"n{number}" for number in range(20)]
QUESTION = {"Pod": pod(performance=True), "Nodes": None, "NodeNames": NAMES}


async def _answers(extender: FromFiles) -> bool:
    status, body = await asyncio.to_thread(extender.ask, "POST", "/prioritize", QUESTION)
    return status == 200 and len(json.loads(body)) == len(NAMES)


def test_clients_that_ask_and_never_read_cost_little_and_hold_nothing_up(tmp_path: Path) -> None:
    with FromFiles(tmp_path) as extender:
        one = request("/prioritize", json.dumps(QUESTION).encode()).replace(b"Connection: close\r\n", b"")

        async def story() -> None:
            assert await _answers(extender)
            before_kb = extender.resident_kb()
            writers = []
            for _ in range(10):
                reader, writer = await asyncio.open_connection("127.0.0.1", extender.port, limit=1)
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(one * 5_000)  # some megabytes of questions, and more of answers
                writers.append(writer)
            for _ in range(20):
                assert await _answers(extender)
                await asyncio.sleep(0.05)
            assert extender.resident_kb() < before_kb + 60_000
            extender.terminate()
            assert await asyncio.to_thread(extender.process.wait, 40) == 0
            for writer in writers:
                writer.transport.abort()

        scenario(story(), within_s=120)
        assert "Traceback" not in extender.log


@pytest.mark.slow
def test_when_files_run_out_it_waits_and_goes_on_when_there_are_some_again(tmp_path: Path) -> None:
    with FromFiles(tmp_path) as extender:
        allowed = extender.open_files() + 20
        resource.prlimit(extender.process.pid, resource.RLIMIT_NOFILE, (allowed, allowed))

        async def story() -> None:
            crowd = [await asyncio.open_connection("127.0.0.1", extender.port) for _ in range(60)]
            await asyncio.sleep(1.0)
            assert extender.process.poll() is None
            for _, writer in crowd:
                writer.transport.abort()
            assert await _answers(extender)
            extender.terminate()
            assert await asyncio.to_thread(extender.process.wait, 30) == 0

        scenario(story())


@pytest.mark.slow
def test_names_that_nobody_knows_and_whole_nodes_are_not_kept(tmp_path: Path) -> None:
    """A million names and half a gigabyte of nodes pass through; nothing of them stays."""
    with FromFiles(tmp_path) as extender:

        async def story() -> None:
            big = {"annotations": {"a": "x" * 2_500}}
            async with aiohttp.ClientSession() as session:

                async def passed(count: int) -> int:
                    for number in range(count):
                        names = [f"never-{count}-{number}-{each}" for each in range(5_000)]
                        items = [{"metadata": {"name": name, **big}} for name in names]
                        for body in ({"NodeNames": names}, {"Nodes": {"items": items}}):
                            data = json.dumps({"Pod": pod(performance=True), **body}).encode()
                            for verb in ("filter", "prioritize"):
                                url = f"http://127.0.0.1:{extender.port}/{verb}"
                                async with session.post(url, data=BytesIO(data)) as answer:
                                    assert answer.status == 200
                                    await answer.read()
                    return extender.resident_kb()

                before_kb = await passed(5)
                assert await passed(20) < before_kb * 1.15 + 10_000

        scenario(story(), within_s=180)


def test_two_extenders_of_one_cluster_say_the_same() -> None:
    async def story() -> None:
        server = MemoryServer()
        for at, name in enumerate(NAMES):
            server.put(NODES, node(name), "")
            server.put(NODE_TWINS, twin(name, ("eco", "performance")[at % 2], measured_w=at * 20), "")
        one, two = made(), made()
        async with (
            following(one, MemoryCluster(server)),
            following(two, MemoryCluster(server)),
            serving(one) as first,
            serving(two) as second,
        ):
            for path in ("/filter", "/prioritize"):
                assert (await first.post(path, QUESTION)).body == (await second.post(path, QUESTION)).body
            assert (await first.get("/debug/scoring")).body == (await second.get("/debug/scoring")).body

    scenario(story())
