"""Pods that were just asked about are expected on the best nodes until the watch tells where they went."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES, PODS
from joulie.extender.answers import Scored
from joulie.extender.pending_pods import MAX_TIES, PENDING_FOR_S, PendingPods
from joulie.model.snapshot import Node, Pod
from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import following, made, scenario, serving, until
from tests.support.small_clusters import NOW

EACH_W = 0.7 * 10 / 100 * 350  # ten of a hundred cores
NAMES = ["a", "b", "c", "d"]
ASKED = Pod("default", "p", "", "standard", 10.0)


def asking(name: str) -> dict[str, Any]:
    """As kube-scheduler sends it: an API server has named it."""
    body = pod(name)
    body["metadata"]["uid"] = f"uid-{name}"
    return body


def equal_nodes() -> MemoryServer:
    server = MemoryServer()
    for name in NAMES:
        server.put(NODES, node(name), "")
        server.put(NODE_TWINS, twin(name), "")
    return server


def test_a_burst_that_no_watch_has_shown_bound_yet_spreads_over_equal_nodes() -> None:
    async def story() -> None:
        server, extender = equal_nodes(), made({})
        taken: Counter[str] = Counter()
        for number in range(24):
            server.put(PODS, asking(f"p{number}"), "default")
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            for number in range(24):
                scores = await asker.prioritize(asking(f"p{number}"), NAMES)
                taken[max(scores, key=lambda name: scores[name])] += 1  # always the first of equals: the worst dice
            expected = extender.state.board.columns.expected_w
            assert expected.sum() == pytest.approx(24 * EACH_W)
            assert expected[: len(NAMES)].max() - expected[: len(NAMES)].min() < 2 * EACH_W

    scenario(story())


def test_the_watch_ends_an_expectation_by_binding_or_by_deletion() -> None:
    async def story() -> None:
        server, extender = equal_nodes(), made({})
        columns = extender.state.board.columns
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            columns = extender.state.board.columns
            for name in ("bound", "gone"):
                server.put(PODS, asking(name), "default")
                await asker.prioritize(asking(name), NAMES)
            await until(lambda: extender.state.pods.keys() >= {"default/bound", "default/gone"})
            assert columns.expected_w.sum() == pytest.approx(2 * EACH_W)
            assert (await asker.post("/debug/scoring", pod())).document["expectedPodsW"].keys() == set(NAMES)
            server.put(PODS, pod("bound", on="b", at_s=NOW), "default")
            server.put(PODS, asking("gone"), "default")
            server.delete(PODS, "default/gone", None)
            await until(lambda: not columns.expected_w.any())
            scores = await asker.prioritize(pod(), NAMES)
            assert scores["b"] < scores["a"] == scores["c"] == scores["d"]
            assert "expectedPodsW" not in (await asker.post("/debug/scoring", pod())).document

    scenario(story())


def test_invented_pods_change_no_score_however_many_are_asked_about() -> None:
    async def story() -> None:
        extender = made({})
        async with following(extender, MemoryCluster(equal_nodes())), serving(extender) as asker:
            before = await asker.prioritize(pod(), NAMES)
            for number in range(200):
                await asker.prioritize(asking(f"invented-{number}"), NAMES[number % 4 :])
            assert await asker.prioritize(pod(), NAMES) == before

    scenario(story())


def test_a_pod_that_the_scheduler_knows_first_counts_as_soon_as_the_watch_shows_it() -> None:
    async def story() -> None:
        server, extender = equal_nodes(), made({})
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            await asker.prioritize(asking("early"), NAMES)
            assert not extender.state.board.columns.expected_w.any()
            server.put(PODS, asking("early"), "default")
            await until(lambda: "default/early" in extender.state.pods)
            assert extender.state.board.columns.expected_w.sum() == pytest.approx(EACH_W)

    scenario(story())


def test_a_pod_that_exists_counts_for_no_more_than_it_asks_for() -> None:
    async def story() -> None:
        server, extender = equal_nodes(), made({})
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            server.put(PODS, asking("small"), "default")
            await until(lambda: "default/small" in extender.state.pods)
            larger = asking("small")
            larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
            await asker.prioritize(larger, NAMES)
            assert not extender.state.board.columns.expected_w.any()
            await asker.prioritize(asking("small"), NAMES)
            assert extender.state.board.columns.expected_w.sum() == pytest.approx(EACH_W)

    scenario(story())


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        pytest.param({}, pod("by-hand"), id="a pod that no API server knows"),
        pytest.param({"EXTENDER_COUNT_RECENT_PODS": "false"}, asking("p"), id="switched off"),
    ],
)
def test_nothing_is_expected_of(env: dict[str, str], asked: dict[str, Any]) -> None:
    async def story() -> None:
        extender = made(env)
        async with following(extender, MemoryCluster(equal_nodes())), serving(extender) as asker:
            first = await asker.prioritize(asked, NAMES)
            assert await asker.prioritize(asked, NAMES) == first
            assert not extender.state.board.columns.expected_w.any()

    scenario(story())


def test_a_row_that_becomes_free_takes_no_expectation_with_it() -> None:
    async def story() -> None:
        server, extender = equal_nodes(), made({})
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            server.put(PODS, asking("p"), "default")
            await asker.prioritize(asking("p"), NAMES)
            await until(lambda: bool(extender.state.board.columns.expected_w.any()))
            server.delete(NODES, "a", None)
            server.delete(NODE_TWINS, "a", None)
            await until(lambda: "a" not in extender.state.board.index)
            assert not extender.state.board.columns.expected_w.any()

    scenario(story())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["expect", "show", "settle", "pass", "back"]),
            st.integers(0, 5),
            st.integers(1, MAX_TIES + 5),
        ),
        max_size=40,
    )
)
def test_what_was_added_is_taken_away_exactly_whatever_the_order(steps: list[tuple[str, int, int]]) -> None:
    board = made({}).state.board
    for number in range(MAX_TIES + 5):
        board.put_node(f"n{number}", Node(f"n{number}", {}))
    shown: dict[str, Pod] = {}
    expected, now_s = PendingPods(board, shown.get), NOW
    marginal_w = np.linspace(0.1, 333.3, len(board.updated_s))
    for step, key, ties in steps:
        match step:
            case "expect":
                rows = np.arange(ties, dtype=np.intp)
                expected.expect(f"p{key}", ASKED, Scored(b"", rows, np.full(ties, 7), marginal_w), now_s)
            case "show":
                shown[f"p{key}"] = ASKED if ties % 3 else Pod("default", "p", "", "standard", 99.0)
                expected.confirm(f"p{key}")
            case "settle":
                expected.settle(f"p{key}")
            case "pass":
                now_s += PENDING_FOR_S / 2
                expected.expire(now_s)
            case _:
                now_s -= 3600
                expected.expire(now_s)
                assert not board.columns.expected_w.any()
        assert (board.columns.expected_w >= 0).all()
    expected.expire(now_s + 2 * PENDING_FOR_S)
    assert not board.columns.expected_w.any()
