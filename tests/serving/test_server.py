"""What every process serves over HTTP, and what it does about those who do not speak it, or mean harm."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest
from aiohttp import web

from joulie.serving import Page, serve
from tests.serving.test_attacks import HEALTHZ, sent


def played(routes: list[web.RouteDef], *requests: bytes) -> list[bytes]:
    async def story() -> list[bytes]:
        runner = await serve("127.0.0.1:0", lambda: [b""], lambda: None, lambda: None, routes)
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
        b"GET /?" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000 + b"\r\n",
    ],
    ids=["tls", "bytes", "version", "length", "query", "headers"],
)
def test_what_is_not_http_is_refused_without_a_line_in_the_log(
    nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    refused, healthy = played([], nonsense, HEALTHZ)
    assert b" 400 " in refused.splitlines()[0]
    assert healthy.startswith(b"HTTP/1.1 200")
    assert caplog.records == []


async def _broken(_: web.Request) -> web.Response:
    raise ValueError("ours")


BROKEN = b"GET /broken HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_a_fault_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = played([web.get("/broken", _broken)], BROKEN)
    assert answer.startswith(b"HTTP/1.1 500")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_fault_that_any_client_can_cause_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answers = played([web.get("/broken", _broken)], *[BROKEN] * 50)
    assert all(answer.startswith(b"HTTP/1.1 500") for answer in answers)
    assert 1 <= len(caplog.records) <= 20  # ten a minute, and a minute may end meanwhile


def test_a_page_is_rendered_once_for_all_who_ask_and_others_get_their_turn() -> None:
    """A renderer that takes as long as it likes would stop the event loop, and with it the renewal of a lease."""
    rendered = turns = 0

    def render() -> Iterator[bytes]:
        nonlocal rendered
        rendered += 1
        for _ in range(20):
            time.sleep(0.01)
            yield b"x"

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def story() -> None:
        page = Page(render)
        others = asyncio.create_task(take_turns())
        began_s = time.monotonic()
        answers = [answer for _ in range(3) for answer in await asyncio.gather(*(page.answer() for _ in range(150)))]
        assert {answer.body for answer in answers} == {b"x" * 20}
        assert rendered <= 1 + (time.monotonic() - began_s)  # a second is the least between two
        assert turns >= 19 * rendered
        others.cancel()

    asyncio.run(story())


def test_who_goes_away_does_not_take_the_page_from_the_others() -> None:
    def render() -> Iterator[bytes]:
        for _ in range(5):
            time.sleep(0.01)
            yield b"x"

    async def story() -> None:
        page = Page(render)
        first = asyncio.create_task(page.answer())
        await asyncio.sleep(0)
        second = asyncio.create_task(page.answer())
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).body == b"xxxxx"

    asyncio.run(story())


def test_a_page_that_cannot_be_rendered_is_tried_again() -> None:
    broken = True

    def render() -> list[bytes]:
        if broken:
            raise ValueError("ours")
        return [b"whole"]

    async def story() -> None:
        nonlocal broken
        page = Page(render)
        with pytest.raises(ValueError, match="ours"):
            await page.answer()
        broken = False
        assert (await page.answer()).body == b"whole"

    asyncio.run(story())
