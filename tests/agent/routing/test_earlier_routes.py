"""What was capped is put back at the very device, wherever the node is routed by then, however long it takes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from joulie.agent.shards import fnv1a_32
from joulie.cluster.memory.cluster import MemoryServer
from joulie.cluster.port import EVENTS, NODE_HARDWARE, NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.logs import start_logging
from joulie.overview.findings import EARLIER_ROUTE
from tests.agent.routing.original_simulator import MAX_W, OriginalNode, original_node
from tests.agent.world import Running, agent, node, put_twin, scenario, twin, until

ECO_W = 480  # 60 % of what the catalogue gives two EPYC 9654
PASSWORD = "open-sesame"


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.devices.http.client.FRESH_S", 0.0)
    monkeypatch.setattr("joulie.agent.enforcement.attempts.MAX_RESTORE_PAUSE_S", 0.5)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, in lines of JSON."""
    logger, stream = logging.getLogger("joulie"), io.StringIO()
    before = list(logger.handlers), logger.level, logger.propagate
    start_logging("debug", stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before


class Place:
    """A cluster with one node `a`, and endpoints that it can be routed to."""

    def __init__(self, state_dir: Path, endpoints: list[OriginalNode]) -> None:
        self.server = MemoryServer()
        self.state_dir = state_dir
        self.endpoints = endpoints
        self.server.put(NODES, node("a"), "")
        put_twin(self.server, twin("a", 60))

    def env(self, **more: str) -> dict[str, str]:
        return {
            "AGENT_MODE": "pool",
            "RECONCILE_INTERVAL": "100ms",
            "STATE_DIR": str(self.state_dir),
            "TELEMETRY_CPU_CONTROL": "none",
            "TELEMETRY_GPU_CONTROL": "none",
            **more,
        }

    def route(self, url: str | None) -> None:
        """To an endpoint; None: to nowhere."""
        control = {"type": "http", "http": {"endpoint": f"{url}/control/{{node}}"}} if url else {"type": "none"}
        spec = {"target": {"scope": "node", "nodeName": "a"}, "controls": {"cpu": control}}
        self.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "route"}, "spec": spec}, "")

    def journal(self, name: str = "a") -> list[dict[str, Any]]:
        path = self.state_dir / "restore" / f"{name}.json"
        entries: list[dict[str, Any]] = json.loads(path.read_bytes())["entries"] if path.exists() else []
        return entries

    def reasons(self) -> set[str]:
        return {event["reason"] for event in self.server.all(EVENTS)}

    def everything_said(self) -> str:
        resources = (EVENTS, NODE_TWINS, NODE_HARDWARE)
        return json.dumps([body for resource in resources for body in self.server.all(resource)])


@asynccontextmanager
async def place(tmp_path: Path, endpoints: int = 2) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(original_node()) for _ in range(endpoints)]
        yield Place(tmp_path / "state", nodes)


def test_killed_while_a_is_capped_and_routed_to_b_then_both_end_as_found(tmp_path: Path) -> None:
    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                await running.kill()
            at.route(b.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: b.cap_w == ECO_W, "B is capped")
                await until(lambda: a.cap_w == MAX_W, "A is put back while B is held")
                assert b.cap_w == ECO_W
                assert await running.end() == 0
            assert (a.cap_w, b.cap_w, at.journal()) == (MAX_W, MAX_W, [])

    scenario(play())


def test_stopped_at_once_after_the_restart_a_is_put_back_as_well(tmp_path: Path) -> None:
    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                await running.kill()
            at.route(b.url)
            async with agent(at.server, at.env()) as running:
                assert await running.end() == 0
            assert (a.cap_w, b.cap_w, at.journal()) == (MAX_W, MAX_W, [])

    scenario(play())


@pytest.mark.parametrize("to", ["another", "none"])
def test_a_that_is_down_at_the_switch_is_put_back_when_it_returns(tmp_path: Path, to: str) -> None:
    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                a.down = True
                at.route(b.url if to == "another" else None)
                await until(lambda: "RestoreIncomplete" in at.reasons(), "an event tells that A is left")
                if to == "another":
                    await until(lambda: b.cap_w == ECO_W, "B is held meanwhile")
                unrestored, failures = (
                    ("joulie_agent_unrestored", 'node="a"'),
                    ("joulie_agent_restore_failures_total", 'node="a"'),
                )

                async def often() -> bool:
                    return (await running.metrics(failures))[failures] > 6

                await until(often, "it is tried again and again")
                assert (await running.metrics(unrestored))[unrestored] == 1
                a.down = False
                await until(lambda: a.cap_w == MAX_W, "A is put back when it is there again")
                assert b.cap_w == (ECO_W if to == "another" else MAX_W)
                await until(lambda: "CapsRestored" in at.reasons(), "the event is taken back")
                pending = [one["message"] for one in at.server.all(EVENTS) if one["reason"] == "RestoreIncomplete"]
                assert any(message.startswith(EARLIER_ROUTE) for message in pending)
                assert await running.end() == 0
            assert (b.cap_w, at.journal()) == (MAX_W, [])

    scenario(play())


def test_several_old_endpoints_are_put_back_each(tmp_path: Path) -> None:
    async def play() -> None:
        async with place(tmp_path, endpoints=3) as at:
            *old, last = at.endpoints
            async with agent(at.server, at.env()) as running:
                for endpoint in old:
                    at.route(endpoint.url)
                    await until(lambda one=endpoint: one.cap_w == ECO_W, "it is capped")  # type: ignore[misc]
                    endpoint.down = True
                at.route(last.url)
                await until(lambda: last.cap_w == ECO_W, "the last is capped")
                assert {entry["device"] for entry in at.journal()} == {f"{one.url}/control/a" for one in at.endpoints}
                await running.kill()
            for endpoint in old:
                endpoint.down = False
            async with agent(at.server, at.env()):
                await until(lambda: [one.cap_w for one in old] == [MAX_W, MAX_W], "both are put back")
                assert last.cap_w == ECO_W

    scenario(play())


def test_an_end_with_something_left_is_not_0_and_the_last_lines_name_it_and_the_next_step(
    tmp_path: Path, log: io.StringIO
) -> None:
    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                a.down = True
                at.route(b.url)
                await until(lambda: b.cap_w == ECO_W, "B is capped")
                assert await running.end() == 1
            assert (b.cap_w, len(at.journal())) == (MAX_W, 1)
            *_, named, last = log.getvalue().splitlines()
            assert f"{a.url}/control/a" in named
            assert "joulie agent restore" in last
            assert "every device is as it was found" not in last

    scenario(play())


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["label", "node"])
def test_a_node_that_left_scope_while_its_endpoint_was_down_ends_as_found_also_after_a_restart(
    tmp_path: Path, gone: str
) -> None:
    async def play() -> None:
        async with place(tmp_path, endpoints=1) as at:
            (a,) = at.endpoints
            at.route(a.url)

            def leave() -> None:
                if gone == "node":
                    at.server.delete(NODES, "a", None)
                    at.server.delete(NODE_TWINS, "a", None)
                else:
                    at.server.put(NODES, node("a", managed="false"), "")

            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "it is capped")
                a.down = True
                leave()
                await until(lambda: failures_of(running, 8), "it is tried far more often than five times")
                assert await running.end() == 1  # in the middle of its back-off
            assert len(at.journal()) == 1
            async with agent(at.server, at.env()) as running:
                await until(lambda: failures_of(running, 1), "the next agent takes it up")
                a.down = False
                await until(lambda: a.cap_w == MAX_W, "it ends as found")
                await until(lambda: at.journal() == [], "and is forgotten")
                assert await running.end() == 0

    async def failures_of(running: Running, more_than: int) -> bool:
        failures = ("joulie_agent_restore_failures_total", 'node="a"')
        return (await running.metrics(failures))[failures] > more_than

    scenario(play())


def test_a_journal_of_another_shards_node_stays_and_that_of_a_node_of_no_shard_is_put_back(tmp_path: Path) -> None:
    async def play() -> None:
        async with place(tmp_path, endpoints=1) as at:
            (a,) = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "it is capped")
                await running.kill()
            other = str(1 - fnv1a_32("a") % 2)
            sharded = at.env(POOL_SHARDS="2", POOL_SHARD_ID=other)
            async with agent(at.server, sharded) as running:
                ready = ("joulie_agent_nodes", "")
                assert (await running.metrics(ready))[ready] == 0
                await asyncio.sleep(0.5)  # nothing is to happen
                assert a.cap_w == ECO_W
                assert await running.end() == 0
            assert len(at.journal()) == 1
            at.server.delete(NODES, "a", None)
            async with agent(at.server, sharded) as running:
                await until(lambda: a.cap_w == MAX_W, "no shard has the node, so who has the journal puts it back")
                await until(lambda: at.journal() == [], "and forgets it")

    scenario(play())


@pytest.mark.parametrize("is_down", [False, True])
def test_a_node_that_changes_shard_and_route_at_once_leaves_no_device_capped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_down: bool
) -> None:
    monkeypatch.setattr("joulie.agent.pool.HANDED_OVER_S", 0.1)

    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            at.route(a.url)
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                await running.kill()
            at.route(b.url)
            a.down = is_down
            shard = fnv1a_32("a") % 2
            new = at.env(POOL_SHARDS="2", POOL_SHARD_ID=str(shard), STATE_DIR=str(tmp_path / "new"))
            old = at.env(POOL_SHARDS="2", POOL_SHARD_ID=str(1 - shard))
            async with agent(at.server, new), agent(at.server, old):
                await until(lambda: b.cap_w == ECO_W, "the new shard caps B")
                a.down = False
                await until(lambda: a.cap_w == MAX_W, "the shard that has its journal puts A back")
                await until(lambda: at.journal() == [], "and forgets it")
                assert b.cap_w == ECO_W

    scenario(play())


def test_credentials_stand_in_the_journal_alone_and_a_new_password_serves_the_old_cap(
    tmp_path: Path, log: io.StringIO
) -> None:
    def with_password(endpoint: OriginalNode) -> str:
        return endpoint.url.replace("://", f"://joulie:{endpoint.password}@")

    async def play() -> None:
        async with place(tmp_path) as at:
            a, b = at.endpoints
            a.password = PASSWORD
            at.route(with_password(a))
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.cap_w == ECO_W, "A is capped")
                (kept,) = (at.state_dir / "restore").glob("a.json")
                assert kept.stat().st_mode & 0o777 == 0o600
                assert at.journal()[0]["device"] == f"{a.url}/control/a"
                await running.kill()
            a.password = f"{PASSWORD}-2"
            at.route(with_password(a))
            async with agent(at.server, at.env()) as running:
                await until(lambda: a.password in kept.read_text(), "it is held by the new password")
                assert len(at.journal()) == 1
                await running.kill()
            at.route(b.url)
            a.down = True
            async with agent(at.server, at.env()) as running:
                await until(lambda: "RestoreIncomplete" in at.reasons(), "A does not answer")
                a.down = False
                await until(lambda: a.cap_w == MAX_W, "A is put back with the password of the journal")
                assert await running.end() == 0
            at.route(f"http://joulie:{PASSWORD}@nowhere:1:2")
            async with agent(at.server, at.env()) as running:
                await until(lambda: "not an address" in at.everything_said(), "a bad address is told")
                await running.end()
            assert PASSWORD not in at.everything_said()

    scenario(play())
    assert PASSWORD not in log.getvalue()
