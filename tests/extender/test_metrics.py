"""The page that Prometheus scrapes: the names of the specification, any node's name, and no node that is gone."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import urllib.parse
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from joulie.extender.metrics import NODES_AT_ONCE
from joulie.extender.process import Extender
from joulie.model.api import NodeTwinStatus
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node
from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import Asker, load_objects, made, raw, scenario, serving
from tests.support.small_clusters import NOW

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
ODD = ['quo"te', "back\\slash", 'both\\"', "é-ü-漢", "a{b}=c,d", "trailing\\", "#", "\\n"]


def _series(page: bytes) -> Series:
    """Every sample; one that stands there twice fails, as it would in Prometheus."""
    found: Series = {}
    for family in text_string_to_metric_families(page.decode()):
        assert family.documentation, family.name
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


async def _page(asker: Asker) -> Series:
    answer = await asker.get("/metrics")
    assert answer.kind == "text/plain; version=0.0.4; charset=utf-8"
    return _series(answer.body)


def _of(series: Series, name: str) -> dict[tuple[str, ...], float]:
    return {tuple(value for _, value in labels): told for (each, labels), told in series.items() if each == name}


def _extender() -> Extender:
    extender = made()
    load_objects(
        extender,
        nodes=[node("a"), node("eco"), node("old"), node("bare")],
        twins=[twin("a"), twin("eco", "eco", measured_w=60), twin("old", at_s=0), twin("no-node")],
        pods=[pod("bound", on="a", cpu="20")],
    )
    return extender


def test_it_has_the_series_of_the_specification() -> None:
    async def story() -> None:
        async with serving(_extender()) as asker:
            before = await _page(asker)
            assert _of(before, "joulie_scheduler_final_node_score") == {}
            names = ["a", "eco", "old", "bare", "stranger"]
            standard = await asker.prioritize(pod(), names)
            performance = await asker.prioritize(pod(performance=True), ["a"])
            for _ in range(3):
                await asker.filter(pod(performance=True), names)
            await asker.post("/filter", b"rubbish")
            await asker.post("/preempt", {"Pod": pod(), "NodeNameToMetaVictims": {}})
            series = await _page(asker)
        prefix = "joulie_scheduler_"
        assert _of(series, prefix + "filter_requests_total") == {("performance",): 3, ("standard",): 0}
        assert _of(series, prefix + "prioritize_requests_total") == {("performance",): 1, ("standard",): 1}
        for verb, count in (("filter", 3), ("prioritize", 1)):
            counted = _of(series, f"{prefix}{verb}_duration_seconds_count")
            assert counted[("performance",)] == count
            assert _of(series, f"{prefix}{verb}_duration_seconds_sum")[("performance",)] > 0
            assert series[
                f"{prefix}{verb}_duration_seconds_bucket", (("le", "+Inf"), ("workload_class", "performance"))
            ]
        told = {(name, "standard"): score for name, score in standard.items() if name != "stranger"}
        assert _of(series, prefix + "final_node_score") == {**told, ("a", "performance"): performance["a"]}
        assert _of(series, prefix + "node_headroom_score") == {
            ("a",): pytest.approx((600 - 300 - 49) / 6, rel=1e-5),
            ("eco",): 90,
        }
        assert _of(series, prefix + "stale_twin_data") == {("a",): 0, ("eco",): 0, ("old",): 1, ("bare",): 1}
        assert series[prefix + "refused_requests_total", (("code", "400"),)] == 1
        assert series[prefix + "preempt_requests_total", ()] == 1

    scenario(story())


def test_what_never_reaches_a_handler_is_counted_as_refused() -> None:
    async def story() -> None:
        async with serving(made({"EXTENDER_REQUEST_TIMEOUT": "10ms"})) as asker:
            for garbage in (b"GARBAGE\r\n\r\n", b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
                assert b" 400 Bad Request" in await raw(asker.port, garbage)
            assert b" 408 Request Timeout" in await raw(asker.port, b"POST /fil")  # and never more
            series = await _page(asker)
        assert _of(series, "joulie_scheduler_refused_requests_total") == {("400",): 2, ("408",): 1}

    scenario(story())


def test_names_with_odd_characters_come_out_as_they_are() -> None:
    async def story() -> None:
        extender = made()
        load_objects(extender, nodes=[node(name) for name in ODD], twins=[twin(name) for name in ODD])
        async with serving(extender) as asker:
            await asker.prioritize(pod(), ODD)
            series = await _page(asker)
        assert {name for (name,) in _of(series, "joulie_scheduler_stale_twin_data")} == set(ODD)
        assert {name for name, _ in _of(series, "joulie_scheduler_final_node_score")} == set(ODD)

    scenario(story())


def test_a_node_that_is_gone_takes_its_series_along_and_its_row_brings_none_of_them_to_the_next() -> None:
    async def story() -> None:
        extender = _extender()
        board = extender.state.board
        async with serving(extender) as asker:
            await asker.prioritize(pod(), ["a", "eco"])
            row = board.index["a"]
            board.put_node("a", None)
            series = await _page(asker)  # its twin is still there: not a node any more
            assert not [key for key in series if ("node", "a") in key[1]]
            board.put_twin("a", None)
            board.put_node("new", Node("new", {}))
            assert board.index["new"] == row
            series = await _page(asker)
            assert {name for name, _ in _of(series, "joulie_scheduler_final_node_score")} == {"eco"}
            assert _of(series, "joulie_scheduler_stale_twin_data")[("new",)] == 1
            assert await asker.prioritize(pod(), ["new", "a"]) == {"new": 50, "a": 50}

    scenario(story())


@pytest.mark.parametrize("shrinks", [False, True], ids=["grows", "shrinks and grows"])
def test_a_cluster_that_changes_while_the_page_is_written_does_not_break_it(shrinks: bool) -> None:
    """Between two pieces anything may happen; a node has at most one sample, whatever row it has got to."""
    extender = made()
    board = extender.state.board
    status = NodeTwinStatus(last_updated=format_time(NOW))
    names = [f"n{number}" for number in range(3 * NODES_AT_ONCE)]
    for name in names:
        board.put_node(name, Node(name, {}))
        board.put_twin(name, status)
    pieces: list[bytes] = []
    for count, piece in enumerate(extender.metrics.page()):
        pieces.append(piece)
        for number in range(NODES_AT_ONCE):
            board.put_node(f"late-{count}-{number}", Node(f"late-{count}-{number}", {}))
        if shrinks:
            for name in names[count::7]:
                board.put_node(name, None)
                board.put_twin(name, None)
            for name in names[count + 1 :: 14]:
                board.put_node(name, Node(name, {}))
    stale = _of(_series(b"".join(pieces)), "joulie_scheduler_stale_twin_data")
    assert len(stale) > NODES_AT_ONCE


def test_scrapes_among_events_and_questions_are_whole() -> None:
    async def story() -> None:
        extender = made()
        board = extender.state.board
        load_objects(extender, nodes=[node(f"n{number}") for number in range(1000)])

        async def change() -> None:
            for number in itertools.count():
                name = f"m{number}"
                board.put_node(name, Node(name, {}))
                if number % 3:
                    board.put_node(f"m{number - 1}", None)
                await asyncio.sleep(0)

        async with serving(extender) as asker, serving(extender) as other:
            changing = asyncio.create_task(change())
            for _ in range(3):
                series = await _page(asker)
                assert len(_of(series, "joulie_scheduler_stale_twin_data")) >= 1000
                assert await other.prioritize(pod(), ["n1"]) == {"n1": 50}
            assert not changing.done()
            changing.cancel()

    scenario(story())


@pytest.mark.slow
def test_a_real_prometheus_takes_the_page(start_prometheus: Any) -> None:
    async def story() -> None:
        extender = made()
        load_objects(extender, nodes=[node(name) for name in ODD], twins=[twin(name) for name in ODD])
        async with serving(extender) as asker:
            await asker.prioritize(pod(), ODD)
            with start_prometheus([f"127.0.0.1:{asker.port}"]) as server:
                found = await asyncio.to_thread(_queried, server.address, "joulie_scheduler_final_node_score", len(ODD))
        assert {each["metric"]["node"] for each in found} == set(ODD)
        assert {each["metric"]["workload_class"] for each in found} == {"standard"}

    scenario(story())


def _queried(address: str, query: str, samples: int) -> list[Any]:
    deadline_s = time.monotonic() + 30
    while True:
        with urllib.request.urlopen(f"{address}/api/v1/query?query={urllib.parse.quote(query)}", timeout=5) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
        if len(found) >= samples:
            return found
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)
