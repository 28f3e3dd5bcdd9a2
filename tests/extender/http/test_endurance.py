"""What wears a process out: clients that do not read or want too much, files that run out, names that never repeat."""

from __future__ import annotations

import asyncio
import json
import resource
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES
from tests.extender.api_objects import node, pod, twin
from tests.extender.file_process import FromFiles
from tests.extender.harness import Asker, following, load_objects, made, request, scenario, serving

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
def test_unknown_names_and_whole_nodes_are_not_kept(tmp_path: Path) -> None:
    """Hundreds of thousands of names and half a gigabyte of nodes pass through; nothing of them stays."""
    with FromFiles(tmp_path) as extender:

        async def story() -> None:
            big = {"annotations": {"a": "x" * 2_500}}
            async with aiohttp.ClientSession() as session:

                async def passed(count: int) -> int:
                    for number in range(count):
                        names = [f"never-{count}-{number}-{each}" for each in range(1_000)]
                        items = [{"metadata": {"name": name, **big}} for name in names]
                        for body in ({"NodeNames": names}, {"Nodes": {"items": items}}):
                            data = json.dumps({"Pod": pod(performance=True), **body}).encode()
                            for verb in ("filter", "prioritize"):
                                url = f"http://127.0.0.1:{extender.port}/{verb}"
                                async with session.post(url, data=BytesIO(data)) as answer:
                                    assert answer.status == 200
                                    await answer.read()
                    return extender.resident_kb()

                before_kb = await passed(25)
                assert await passed(100) < before_kb * 1.15 + 10_000

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


LARGE = [f"node-{number:04}" for number in range(2_000)]
MANY_BYTES = 6_000_000  # few enough for a cluster of this size, if they were whole nodes


def _many(form: bytes, what: bytes, distinct: bool = False) -> bytes:
    """A request of so many bytes that holds the same thing again and again."""
    count = MANY_BYTES // (len(what) + 1)
    things = [what % number for number in range(count)] if distinct else [what] * count
    return b'{"Pod":%b,%b}' % (json.dumps(pod(performance=True)).encode(), form % b",".join(things))


@asynccontextmanager
async def _large_cluster() -> AsyncIterator[Asker]:
    extender = made()
    load_objects(extender, nodes=list(map(node, LARGE)), twins=list(map(twin, LARGE)))
    async with serving(extender) as asker:
        yield asker


@pytest.mark.parametrize(
    ("paths", "body"),
    [
        pytest.param(("/filter", "/prioritize"), _many(b'"NodeNames":[%b]', b'"a"'), id="short names"),
        pytest.param(("/filter", "/prioritize"), _many(b'"NodeNames":[%b]', b'"n%d"', distinct=True), id="names"),
        pytest.param(("/filter", "/prioritize"), _many(b'"NodeNames":[%b]', b'"\\u0061"'), id="escaped names"),
        pytest.param(("/filter", "/prioritize"), _many(b'"NodeNames":["%b"]', b"long"), id="one endless name"),
        pytest.param(("/filter", "/prioritize"), _many(b'"NodeNames":[%b]', b"[]"), id="lists instead of names"),
        pytest.param(
            ("/filter", "/prioritize"), _many(b'"Nodes":{"items":[%b]}', b'{"metadata":{"name":"a"}}'), id="whole nodes"
        ),
        pytest.param(("/filter", "/prioritize"), _many(b'"Nodes":{"items":[%b]}', b"{}"), id="nodes without a name"),
        pytest.param(("/filter", "/prioritize"), _many(b'"Nodes":{"items":[%b]}', b"0"), id="numbers instead of nodes"),
        pytest.param(("/preempt",), _many(b'"NodeNameToMetaVictims":{%b}', b'"a%d":{}', distinct=True), id="victims"),
        pytest.param(("/preempt",), _many(b'"NodeNameToMetaVictims":{%b}', b'"a%d":0', distinct=True), id="no victims"),
        pytest.param(("/preempt",), _many(b'"NodeNameToVictims":{%b}', b'"a%d":{}', distinct=True), id="whole victims"),
        pytest.param(
            ("/filter", "/preempt"),
            _many(b'"pod":{"spec":{"containers":[%b]}}', b"{}").replace(b'"Pod"', b'"x"'),
            id="pod",
        ),
        pytest.param(("/debug/scoring",), _many(b'"spec":{"containers":[%b]}', b"{}"), id="a posted pod"),
    ],
)
def test_more_than_the_cluster_can_need_is_refused_before_it_costs_memory(paths: tuple[str, ...], body: bytes) -> None:
    async def story() -> None:
        async with _large_cluster() as asker:
            for path in paths:
                await asker.prioritize(pod(), LARGE)
                tracemalloc.start()
                answer = await asker.post(path, body)
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert answer.status in (400, 413), path
                assert len(answer.line) < 400
                assert peak < 4 * len(body), path  # client and server hold it, and nothing is made of it
                assert len(await asker.prioritize(pod(), LARGE)) == len(LARGE)

    scenario(story(), within_s=180)


def test_a_few_nodes_that_only_the_scheduler_knows_yet_are_answered() -> None:
    async def story() -> None:
        async with _large_cluster() as asker:
            new = [f"new-{number}" for number in range(500)]
            assert len((await asker.filter(pod(performance=True), LARGE + new))["NodeNames"]) == 2_500
            assert (await asker.prioritize(pod(), new + LARGE))["new-7"] == 50

    scenario(story())


def test_twenty_clients_that_want_every_score_hold_no_scheduler_up() -> None:
    """The same page is made once, of others a few at a time, and questions are answered between their pieces."""

    async def story() -> None:
        async with _large_cluster() as scheduler, aiohttp.ClientSession() as session:
            url = scheduler.url + "/debug/scoring"

            async def wants(body: bytes | None) -> tuple[int, str | None, int]:
                async with session.request("POST" if body else "GET", url, data=body) as answer:
                    return answer.status, answer.headers.get("Retry-After"), hash(await answer.read())

            same = [asyncio.create_task(wants(None)) for _ in range(20)]
            answered_first = 0
            for _ in range(10):
                await scheduler.prioritize(pod(), LARGE)
                answered_first += not any(task.done() for task in same)
            assert answered_first > 0
            assert {(status, again) for status, again, _ in await asyncio.gather(*same)} == {(200, None)}
            assert len({page for *_, page in await asyncio.gather(*same)}) == 1
            others = [asyncio.create_task(wants(json.dumps(pod(f"p{number}")).encode())) for number in range(20)]
            told = [(status, again) for status, again, _ in await asyncio.gather(*others)]
            assert set(told) == {(200, None), (503, "1")}
            assert (await scheduler.get("/metrics")).status == 200

    scenario(story(), within_s=180)
