"""A process that gets what no scheduler sends: each is refused, nothing grows, and good questions are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.extender.api_objects import pod
from tests.extender.file_process import FromFiles
from tests.extender.harness import scenario
from tests.extender.http import bad_clients as bad

LIMIT = 1 << 20
NAMES = [f"n{number}" for number in range(20)]


class Good:
    """Questions that go on meanwhile; every answer must be the same as before all this."""

    def __init__(self) -> None:
        self.answered = 0

    async def ask(self, session: aiohttp.ClientSession, port: int) -> tuple[bytes, bytes]:
        question = {"Pod": pod(performance=self.answered % 2 == 0), "Nodes": None, "NodeNames": NAMES}
        answers = []
        for verb in ("filter", "prioritize"):
            async with session.post(f"http://127.0.0.1:{port}/{verb}", data=json.dumps(question)) as answer:
                assert answer.status == 200
                answers.append(await answer.read())
        self.answered += 1
        return answers[0], answers[1]


@asynccontextmanager
async def good_questions(port: int) -> AsyncIterator[Good]:
    good = Good()

    async def go_on(session: aiohttp.ClientSession) -> None:
        expected = [await good.ask(session, port), await good.ask(session, port)]
        while True:
            at = good.answered % 2
            assert await good.ask(session, port) == expected[at]
            await asyncio.sleep(0.02)

    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(go_on(session))
        try:
            yield good
            assert not asking.done() or asking.result() is None
        finally:
            asking.cancel()
            results = await asyncio.gather(asking, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError), results


async def attack(port: int, count: int, seed: int) -> bad.Tally:
    """So many, most of them on kept connections, the others on one each."""
    tally = bad.Tally()
    streams = 8
    await asyncio.gather(
        *(bad.pipelined(port, seed + number, count * 89 // 100 // streams, tally) for number in range(streams)),
        *(bad.hostile(port, seed + 100 + number, count * 8 // 100 // 4, tally) for number in range(4)),
        bad.broken_off(port, seed + 200, count * 3 // 100, tally),
        bad.slow(port, seed + 300, min(150, count // 50), tally),
        bad.oversized(port, seed + 400, min(60, count // 50), LIMIT, tally),
    )
    return tally


async def settled(extender: FromFiles, files: int) -> bool:
    """All connections are gone."""
    for _ in range(100):
        if extender.open_files() <= files:
            return True
        await asyncio.sleep(0.1)
    return False


def hammer(folder: Path, warm_up: int, count: int) -> None:
    env = {"EXTENDER_MAX_REQUEST_BYTES": str(LIMIT), "EXTENDER_REQUEST_TIMEOUT": "150ms", "MAX_CONNECTIONS": "1024"}
    with FromFiles(folder, **env) as extender:

        async def story() -> None:
            files = extender.open_files()
            await attack(extender.port, warm_up, seed=1)
            assert await settled(extender, files)
            before_kb = extender.resident_kb()
            async with good_questions(extender.port) as good:
                tally = await attack(extender.port, count, seed=1000)
            assert tally.faults == []
            assert tally.total >= count
            assert tally.answers.keys() >= {400, 404, 405, 408, 413}
            assert tally.answers[200] < tally.total // 10  # a flipped byte in a name is harmless
            assert good.answered >= 3  # each of them checked
            assert await settled(extender, files), extender.open_files()
            assert extender.resident_kb() < before_kb * 1.2 + 20_000, (before_kb, extender.resident_kb())

        scenario(story(), within_s=300)
        assert extender.process.poll() is None
        assert [line for line in extender.log.splitlines() if json.loads(line)["level"] != "info"] == []
        extender.terminate()
        assert extender.process.wait(30) == 0


def test_a_thousand_bad_requests_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    hammer(tmp_path, warm_up=300, count=1_000)


@pytest.mark.slow
def test_a_hundred_thousand_bad_requests_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    hammer(tmp_path, warm_up=10_000, count=100_000)
