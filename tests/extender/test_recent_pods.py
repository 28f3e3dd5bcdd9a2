"""Pods bound since a twin was written count against its node until the twin knows of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES, PODS
from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import Asker, following, made, scenario, serving, until
from tests.support.small_clusters import NOW

EACH_W = 0.7 * 10 / 100 * 350  # ten of a hundred cores
TWIN_AT_S = NOW - 60


@asynccontextmanager
async def two_equal_nodes(**env: str) -> AsyncIterator[tuple[MemoryServer, Asker]]:
    server = MemoryServer()
    for name in ("a", "b"):
        server.put(NODES, node(name), "")
        server.put(NODE_TWINS, twin(name, at_s=TWIN_AT_S), "")
    extender = made(env)
    async with following(extender, MemoryCluster(server)), serving(extender) as asker:
        yield server, asker


async def recent_w(asker: Asker, name: str = "a") -> float:
    """As the debug view has it: a term of its own, and beside it the headroom that it takes."""
    breakdown = (await asker.terms(pod()))[name]["breakdown"]
    watts: float = breakdown["recentPodsW"]
    assert breakdown["headroomScore"] == pytest.approx((600 - 300 - watts - breakdown["podMarginalW"]) / 6)
    assert breakdown["podMarginalW"] == pytest.approx(EACH_W)
    return watts


def test_they_count_from_their_binding_until_the_twin_is_written_anew() -> None:
    async def story() -> None:
        async with two_equal_nodes() as (server, asker):
            assert await recent_w(asker) == 0
            before = await asker.prioritize(pod(), ["a", "b"])
            assert before["a"] == before["b"]
            for count in (1, 2, 3):
                server.put(PODS, pod(f"p{count}", on="a", at_s=TWIN_AT_S + count - 1), "default")
                await _until_recent(asker, count * EACH_W)
            after = await asker.prioritize(pod(), ["a", "b"])
            assert after["a"] < before["a"]
            assert after["b"] == before["b"]
            assert await recent_w(asker, "b") == 0
            # Two of the three are older than the new twin, which has measured them.
            server.put(NODE_TWINS, twin("a", at_s=TWIN_AT_S + 2), "")
            await _until_recent(asker, EACH_W)
            server.put(NODE_TWINS, twin("a", at_s=TWIN_AT_S + 3), "")
            await _until_recent(asker, 0)
            assert await asker.prioritize(pod(), ["a", "b"]) == before

    scenario(story())


def test_they_end_with_the_pod_and_move_with_it() -> None:
    async def story() -> None:
        async with two_equal_nodes() as (server, asker):
            for name in ("done", "failed", "gone"):
                server.put(PODS, pod(name, on="a"), "default")
            await _until_recent(asker, 3 * EACH_W)
            finished = pod("done", on="a")
            finished["status"]["phase"] = "Succeeded"
            server.put(PODS, finished, "default")
            await _until_recent(asker, 2 * EACH_W)
            finished["metadata"]["name"] = "failed"
            finished["status"]["phase"] = "Failed"
            server.put(PODS, finished, "default")
            await _until_recent(asker, EACH_W)
            server.delete(PODS, "default/gone", None)
            await _until_recent(asker, 0)
            # The same name again, on the other node.
            server.put(PODS, pod("gone", on="b"), "default")
            await _until_recent(asker, EACH_W, "b")
            assert await recent_w(asker) == 0

    scenario(story())


def test_only_bound_ones_count_and_only_by_the_time_of_their_binding() -> None:
    async def story() -> None:
        async with two_equal_nodes() as (server, asker):
            server.put(PODS, pod("waiting"), "default")
            server.put(PODS, pod("before", on="a", at_s=TWIN_AT_S - 1), "default")
            undated = pod("undated", on="a")
            del undated["status"]["conditions"]
            server.put(PODS, undated, "default")
            server.put(PODS, pod("last", on="b"), "default")
            await _until_recent(asker, EACH_W, "b")
            assert await recent_w(asker) == 0

    scenario(story())


def test_pods_of_a_node_that_is_not_known_yet_count_when_it_comes() -> None:
    async def story() -> None:
        async with two_equal_nodes() as (server, asker):
            server.put(PODS, pod("early", on="c"), "default")
            server.put(NODE_TWINS, twin("c", at_s=TWIN_AT_S), "")
            server.put(NODES, node("c"), "")
            await until(lambda: _knows(asker, "c"))
            await _until_recent(asker, EACH_W, "c")

    scenario(story())


def test_it_can_be_switched_off() -> None:
    async def story() -> None:
        async with two_equal_nodes(EXTENDER_COUNT_RECENT_PODS="false") as (server, asker):
            server.put(PODS, pod("p", on="a"), "default")
            await until(lambda: _finds(asker, "default/p"))
            assert await recent_w(asker) == 0
            scores = await asker.prioritize(pod(), ["a", "b"])
            assert scores["a"] == scores["b"]

    scenario(story())


@pytest.mark.slow
def test_a_burst_placed_by_the_scores_alone_spreads_over_equal_nodes() -> None:
    """What kube-scheduler would do with the extender's score and nothing else, one pod after the other."""

    async def story() -> None:
        server = MemoryServer()
        names = [f"n{number}" for number in range(10)]
        for name in names:
            server.put(NODES, node(name), "")
            server.put(NODE_TWINS, twin(name, at_s=TWIN_AT_S, measured_w=100), "")
        extender = made()
        placed = dict.fromkeys(names, 0)
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            for number in range(60):
                scores = await asker.prioritize(pod(cpu="4"), names)
                best = max(names, key=lambda name: scores[name])
                placed[best] += 1
                server.put(PODS, pod(f"p{number}", cpu="4", on=best), "default")
                await until(lambda number=number: f"default/p{number}" in extender.state.pods)
        assert max(placed.values()) <= 12, placed

    scenario(story())


async def _until_recent(asker: Asker, watts: float, name: str = "a") -> None:
    async def so() -> bool:
        return await recent_w(asker, name) == pytest.approx(watts)

    await until(so)


async def _knows(asker: Asker, name: str) -> bool:
    return name in await asker.terms(pod()) and (await asker.terms(pod()))[name]["breakdown"] is not None


async def _finds(asker: Asker, key: str) -> bool:
    return (await asker.get(f"/debug/scoring?pod={key}")).status == 200
