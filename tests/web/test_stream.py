"""The stream: in order, each message encoded once, and a viewer that falls behind gets the latest state."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from joulie.web import stream
from joulie.web.stream import BACKLOG, GZIP_HEADER, Feed, Frame, pack
from tests.web.showing import served
from tests.web.world import World

NOW_S = 1_793_534_400.0


class Numbers:
    """A state that counts: what a viewer has after applying messages is easy to check."""

    def __init__(self) -> None:
        self.value = 0
        self.asked = 0
        self.feed = Feed(self.everything)

    def everything(self) -> dict[str, int]:
        self.asked += 1
        return {"value": self.value}

    def count(self) -> None:
        self.value += 1
        self.feed.publish({"value": self.value})


def messages(raw: bytes) -> list[tuple[str, str, Any]]:
    """Event, id and data of each message."""
    found = []
    for block in raw.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            found.append((lines["event"], lines.get("id", ""), json.loads(lines["data"])))
    return found


def seen(frames: list[Frame]) -> list[tuple[str, int]]:
    return [(event, data["value"]) for event, _, data in messages(b"".join(frame.plain for frame in frames))]


def in_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def test_who_is_new_gets_everything_and_then_only_what_changed() -> None:
    async def scenario() -> None:
        numbers = Numbers()
        numbers.count()
        assert seen(numbers.feed.missing(None)) == [("full", 1)]
        numbers.count()
        numbers.count()
        assert seen(numbers.feed.missing(1)) == [("delta", 2), ("delta", 3)]
        assert numbers.feed.missing(3) == []

    in_a_loop(scenario)


def test_who_fell_behind_gets_the_latest_state_and_memory_stays_bounded() -> None:
    async def scenario() -> None:
        numbers = Numbers()
        for _ in range(10 * BACKLOG):
            numbers.count()
        assert len(seen(numbers.feed.missing(9 * BACKLOG))) == BACKLOG
        assert seen(numbers.feed.missing(9 * BACKLOG - 1)) == [("full", 10 * BACKLOG)]
        assert seen(numbers.feed.missing(10 * BACKLOG + 5)) == [("full", 10 * BACKLOG)]

    in_a_loop(scenario)


def test_everything_is_encoded_once_for_all_who_need_it() -> None:
    async def scenario() -> None:
        numbers = Numbers()
        frames = {id(numbers.feed.missing(None)[0]) for _ in range(20)}
        assert (len(frames), numbers.asked) == (1, 1)
        numbers.feed.restart()
        assert seen(numbers.feed.missing(0)) == [("full", 0)]
        assert numbers.asked == 2

    in_a_loop(scenario)


def test_a_place_of_another_process_is_not_known() -> None:
    async def scenario() -> None:
        feed, other = Numbers().feed, Numbers()
        other.count()
        place = messages(other.feed.missing(None)[0].plain)[0][1]
        assert other.feed.place(place) == 1
        for unknown in (place, "", "-", "nonsense", f"{feed._epoch}--1", f"{feed._epoch}-{'9' * 30}"):
            assert feed.place(unknown) is None

    in_a_loop(scenario)


@pytest.mark.parametrize("parts", [(b"a" * 5000,), (b"one\n\n", b"two\n\n", b"\x00" * 70_000, b"")])
def test_packed_messages_of_any_order_make_one_valid_gzip_stream(parts: tuple[bytes, ...]) -> None:
    inflate = zlib.decompressobj(31)
    assert inflate.decompress(GZIP_HEADER) == b""
    for part in (*parts, *reversed(parts)):
        assert inflate.decompress(pack(part)) == part  # nothing is held back


def test_a_viewer_ends_where_the_cluster_is_and_a_stranger_starts_anew() -> None:
    async def scenario() -> None:
        world = World(30, NOW_S)
        async with served(world) as (address, _), ClientSession() as session:
            state: dict[str, Any] = {}
            places: list[int] = []
            async with session.get(f"{address}/api/v1/stream") as answer:
                assert answer.headers["Content-Encoding"] == "gzip"
                following = asyncio.create_task(_follow(answer, state, places))
                for _ in range(5):
                    await asyncio.sleep(0.3)
                    world.step(20)
                world.turn("node-05", "draining")
                async with asyncio.timeout(20):
                    while len(places) < 3 or state["nodes"]["state"][5] != "draining":
                        await asyncio.sleep(0.05)
                following.cancel()
            async with session.get(f"{address}/api/v1/nodes") as answer:
                assert state["nodes"] == await answer.json()
            assert places == sorted(set(places))
            async with session.get(f"{address}/api/v1/stream", headers={"Last-Event-ID": "other-3"}) as answer:
                await asyncio.wait_for(answer.content.readuntil(b"event: full"), 10)

    in_a_loop(scenario)


async def _follow(answer: ClientResponse, state: dict[str, Any], places: list[int]) -> None:
    buffer = b""
    async for piece in answer.content.iter_any():
        whole, separator, buffer = (buffer + piece).rpartition(b"\n\n")
        for event, place, data in messages(whole + separator):
            if event != "heartbeat":
                places.append(int(place.partition("-")[2]))
                _apply(state, event, data)


def _apply(state: dict[str, Any], event: str, data: Any) -> None:
    """As the page does it."""
    if event == "full":
        state.clear()
        state.update(data)
        return
    state["cluster"].update(data["cluster"])
    for column, (rows, values) in data.get("nodes", {}).items():
        for row, value in zip(rows, values, strict=True):
            state["nodes"][column][row] = value


def test_what_viewers_have_after_deltas_is_what_a_newcomer_gets() -> None:
    async def scenario() -> None:
        world = World(50, NOW_S)
        async with served(world) as (_, dashboard):
            dashboard.look()
            state: dict[str, Any] = {}
            at: int | None = None
            for step in range(12):
                for event, _, data in messages(b"".join(frame.plain for frame in dashboard.feed.missing(at))):
                    _apply(state, event, data)
                at = dashboard.feed._sequence
                newcomer = messages(_fresh(dashboard.feed))[0][2]
                assert state["nodes"] == newcomer["nodes"]
                assert {**state["cluster"], "nowS": 0} == {**newcomer["cluster"], "nowS": 0}
                world.step(20, share=0.3)
                if step == 4:
                    world.add_node("node-99", "rack-9", 3)
                if step == 7:
                    world.blocked.add("node-10")
                    world.write_twin("node-10", 10)
                if step == 9:
                    del world.nodes["node-20"], world.twins["node-20"]
                dashboard._looked_at_s = float("-inf")
                dashboard.look()

    in_a_loop(scenario)


def _fresh(feed: Feed) -> bytes:
    return feed.missing(None)[0].plain


def test_a_viewer_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "STUCK_S", 0.3)

    async def scenario() -> None:
        world = World(5, NOW_S)
        async with served(world) as (address, dashboard):
            host, _, port = address.removeprefix("http://").rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
            writer.write(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readline()
            until = asyncio.get_running_loop().time() + 30
            seen = False
            while asyncio.get_running_loop().time() < until:
                seen = seen or dashboard.feed.viewers == 1
                if seen and dashboard.feed.viewers == 0:
                    break
                dashboard.feed.publish({"cluster": {"large": "x" * 4_000_000}})  # more than sockets hold
                await asyncio.sleep(0.1)
            assert seen
            assert dashboard.feed.viewers == 0
            writer.close()

    in_a_loop(scenario)


def test_two_hundred_viewers_that_do_not_read_keep_no_other_from_watching() -> None:
    """A small cluster's news fit into the kernel's memory for long, so they look like any other viewer."""

    async def scenario() -> None:
        world = World(5, NOW_S)
        async with served(world) as (address, dashboard), AsyncExitStack() as ends:
            host, _, port = address.removeprefix("http://").rpartition(":")

            async def viewer() -> asyncio.StreamReader:
                reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
                ends.callback(writer.close)
                writer.write(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return reader

            for _ in range(200):
                await viewer()
            async with asyncio.timeout(30):
                while dashboard.feed.viewers < stream.MAX_VIEWERS:
                    await asyncio.sleep(0.01)
                reads = await viewer()
                await reads.readuntil(b"event: full")
                dashboard.feed.publish({"cluster": {"news": "fresh"}})
                while b"fresh" not in await reads.read(1000):
                    pass
            assert dashboard.feed.viewers == stream.MAX_VIEWERS
            async with ClientSession() as session, session.get(f"{address}/api/v1/cluster") as answer:
                assert answer.status == 200

    in_a_loop(scenario)
