"""Node power by PromQL and by HTTP, as it comes: judging it is the collector's."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import PowerReading
from joulie.sources.node_queries import NodeAnswer
from joulie.sources.power.http import HttpPower
from joulie.sources.power.kepler import PrometheusPower
from joulie.sources.prometheus import PrometheusClient
from joulie.sources.transport import RequestLimits, SourceError
from tests.support.small_clusters import NOW

from .loopback import IMPATIENT, Clock, FakeNodes, FakePrometheus, answering, hang, series, serving

QUERY = "sum by (node_name) (watts)"
PATIENT = RequestLimits(call_timeout_s=5, deadline_s=20, calls_at_once=8)


def by_promql(
    server: FakePrometheus, nodes: Sequence[str], promql: str = QUERY, limits: RequestLimits = PATIENT
) -> NodeAnswer[PowerReading]:
    async def run() -> NodeAnswer[PowerReading]:
        async with serving(server) as address, aiohttp.ClientSession() as session:
            client = PrometheusClient(session, address, limits.call_timeout_s)
            return await PrometheusPower(client, promql, 120, server.clock, limits).read(nodes)

    return asyncio.run(run())


def by_http(
    server: FakeNodes,
    nodes: Sequence[str],
    limits: RequestLimits = PATIENT,
    clock: Clock | None = None,
    rounds: int = 1,
) -> NodeAnswer[PowerReading]:
    async def run() -> NodeAnswer[PowerReading]:
        now = clock or Clock(NOW)
        async with serving(server) as address, aiohttp.ClientSession() as session:
            source = HttpPower(session, address + "/telemetry/{node}", 120, now, limits)
            answer = await source.read(nodes)
            for _ in range(rounds - 1):
                now.now_s += 60
                answer = await source.read(nodes)
            return answer

    return asyncio.run(run())


def http_watts(told: Any) -> float:
    server = FakeNodes()
    server.telemetry["a"] = told
    return by_http(server, ["a"]).readings["a"].power_w


def test_one_query_answers_for_all_nodes_whatever_label_names_them() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers[QUERY] = [
        series(100, node_name="a"),
        series(200, node="b"),
        series(300, Hostname="c"),
        series(400, instance="d:9102"),
        series(500, node_name="elsewhere"),
    ]
    answer = by_promql(server, ["a", "b", "c", "d", "missing"])
    assert {node: reading.power_w for node, reading in answer.readings.items()} == {
        "a": 100,
        "b": 200,
        "c": 300,
        "d": 400,
    }
    assert answer.readings["a"] == PowerReading("kepler", 100, NOW)
    assert (answer.unanswered, answer.remark) == ({}, "")
    assert len(server.asked) == 1


def test_several_series_of_a_node_are_added_and_none_hides_behind_another() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers[QUERY] = [
        *(series(100, node="a"), series(50, NOW - 9, node="a")),
        *(series(100, node="b"), series(-1, node="b")),
        *(series(100, node="c"), series("NaN", node="c")),
    ]
    readings = by_promql(server, ["a", "b", "c"]).readings
    assert readings["a"] == PowerReading("kepler", 150, NOW - 9)
    assert readings["b"].power_w == -1
    assert math.isnan(readings["c"].power_w)


def test_a_server_whose_clock_is_ahead_does_not_make_readings_of_the_future() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers[QUERY] = [series(100, NOW + 3600, node="a")]
    assert by_promql(server, ["a"]).readings["a"].measured_at_s == NOW


def test_an_answer_that_names_no_node_of_ours_says_so() -> None:
    server = FakePrometheus(Clock(NOW))
    assert "no fresh series" in by_promql(server, ["a"]).remark
    server.answers[QUERY] = [series(1, job="x"), series(2, node="other")]
    assert "2 series, but none names a node" in by_promql(server, ["a"]).remark


@pytest.mark.parametrize(
    ("named", "nodes", "expected"),
    [
        ({"node": "a.example.com"}, ["a"], {"a": 1}),
        ({"node": "a"}, ["a.example.com"], {"a.example.com": 1}),
        ({"Hostname": "A"}, ["a"], {"a": 1}),
        ({"instance": "a.example.com:9100"}, ["a"], {"a": 1}),
        ({"node": "a.example.com"}, ["a.other.com"], {}),
        ({"node": "a"}, ["a.example.com", "a.other.com"], {}),
        ({"instance": "10.0.0.7:9100"}, ["10"], {}),
    ],
)
def test_a_host_name_with_or_without_its_domain_names_the_node_it_can_mean_alone(
    named: dict[str, Any], nodes: list[str], expected: dict[str, float]
) -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers[QUERY] = [series(1, **named)]
    assert {node: reading.power_w for node, reading in by_promql(server, nodes).readings.items()} == expected


def test_two_machines_that_shorten_to_one_name_and_a_name_written_out_are_not_mixed() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers[QUERY] = [series(1, node="a.x"), series(2, node="a.y"), series(4, node="b"), series(8, node="b.x")]
    readings = by_promql(server, ["a", "b"]).readings
    assert {node: reading.power_w for node, reading in readings.items()} == {"b": 4}


def test_a_query_with_node_in_it_is_asked_for_each_many_at_once_but_not_all() -> None:
    server = FakePrometheus(Clock(NOW))
    nodes = [f"n{i}" for i in range(40)]
    for i, name in enumerate(nodes):
        server.answers[f'watts{{host="{name}"}}'] = [series(i)]
    answer = by_promql(server, [*nodes, "silent"], 'watts{host="{node}"}')
    assert {node: reading.power_w for node, reading in answer.readings.items()} == {f"n{i}": i for i in range(40)}
    assert len(server.asked) == 41
    assert 1 < server.most_at_once <= PATIENT.calls_at_once


@pytest.mark.parametrize(
    ("told", "power_w"),
    [
        ({"packagePowerWatts": 245.3}, 245.3),
        ({"cpu": {"packagePowerWatts": 200}}, 200),
        ({"packagePowerWatts": 250, "cpu": {"packagePowerWatts": 200}}, 250),
        ({"packagePowerWatts": 950, "cpu": {"packagePowerWatts": 250}, "gpu": {"powerWattsTotal": 700}}, 950),
        ({"packagePowerWatts": 955, "cpu": {"packagePowerWatts": 250}, "gpu": {"powerWattsTotal": 700}}, 950),
        ({"cpu": {"packagePowerWatts": 250}, "gpu": {"present": True, "powerWattsTotal": 700, "devices": []}}, 950),
        ({"packagePowerWatts": 950, "gpu": {"present": True, "powerWattsTotal": 700, "devices": []}}, 950),
        ({"packagePowerWatts": 950, "cpu": {"packagePowerWatts": 250}, "gpu": {"count": 4}}, 950),
        ({"packagePowerWatts": 250, "gpu": {"present": False}}, 250),
        ({"packagePowerWatts": 250, "gpu": None, "other": [1]}, 250),
        ({"cpu": {"packagePowerWatts": -5}, "gpu": {"powerWattsTotal": 700}}, -5),
        ({"packagePowerWatts": 0}, 0),
    ],
)
def test_a_node_says_its_packages_and_gpus(told: dict[str, Any], power_w: float) -> None:
    assert http_watts(told) == pytest.approx(power_w)


@pytest.mark.parametrize("told", [math.nan, math.inf, "NaN", "a lot"])
def test_power_that_is_no_number_is_handed_on_to_be_counted(told: object) -> None:
    assert math.isnan(http_watts({"packagePowerWatts": told}))


def test_nodes_that_do_not_answer_are_named_with_the_reason_and_the_others_are_read() -> None:
    server = FakeNodes()
    server.telemetry = {
        "good": {"packagePowerWatts": 1},
        "hangs": hang,
        "fails": answering("", 500),
        "garbage": answering("{]"),
        "binary": answering(b"\xff"),
        "listing": answering("[]"),
        "depths": answering('{"x": ' + "[" * 100_000),
        "depths-of-power": answering('{"packagePowerWatts": ' + "[" * 100_000),
        "empty": {},
        "words": {"packagePowerWatts": {"W": 3}},
        "endless-number": answering('{"packagePowerWatts": 1' + "0" * 5000 + "}"),
    }
    answer = by_http(server, [*server.telemetry, "unknown"], IMPATIENT)
    assert answer.readings == {"good": PowerReading("http", 1, NOW)}
    assert answer.unanswered.keys() == {*server.telemetry, "unknown"} - {"good"}
    assert answer.unanswered["hangs"] == "no answer within 0.25 s"
    assert answer.unanswered["fails"] == "answered HTTP 500"
    assert answer.unanswered["empty"] == "the response has no packagePowerWatts"
    assert all("\n" not in reason for reason in answer.unanswered.values())


def test_when_no_node_answers_the_source_has_failed() -> None:
    with pytest.raises(SourceError, match="all requests failed; a: answered HTTP 404"):
        by_http(FakeNodes(), ["b", "a"])


def test_hanging_nodes_cost_the_deadline_not_a_timeout_each() -> None:
    server = FakeNodes()
    server.telemetry = {"a": {"packagePowerWatts": 1}, **{f"n{i}": hang for i in range(100)}}

    async def run() -> tuple[NodeAnswer[PowerReading], float]:
        async with serving(server) as address, aiohttp.ClientSession() as session:
            source = HttpPower(session, address + "/telemetry/{node}", 120, Clock(NOW), IMPATIENT)
            loop = asyncio.get_running_loop()
            start_s = loop.time()
            return await source.read(list(server.telemetry)), loop.time() - start_s

    answer, took_s = asyncio.run(run())
    assert list(answer.readings) == ["a"]
    assert len(answer.unanswered) == 100
    assert took_s < 5 * IMPATIENT.deadline_s


def test_many_nodes_are_asked_at_once_but_never_more_than_allowed() -> None:
    server = FakeNodes()
    server.telemetry = {f"n{i}": {"packagePowerWatts": i} for i in range(200)}
    answer = by_http(server, list(server.telemetry))
    assert len(answer.readings) == 200
    assert 1 < server.most_at_once <= PATIENT.calls_at_once


@pytest.mark.parametrize(
    ("stamp", "measured_at_s"),
    [
        (NOW - 30, NOW - 30),
        (int((NOW - 30) * 1000), NOW - 30),
        (format_time(NOW - 30), NOW - 30),
        (NOW + 3600, NOW),
        ("yesterday", 0),
        (None, NOW),
    ],
)
def test_a_nodes_own_time_stamp_is_kept(stamp: object, measured_at_s: float) -> None:
    server = FakeNodes()
    server.telemetry["a"] = {"packagePowerWatts": 1, "ts": stamp}
    assert by_http(server, ["a"]).readings["a"].measured_at_s == pytest.approx(measured_at_s)


@pytest.mark.parametrize("stamp", [NOW, NOW + 3600])
def test_a_time_stamp_that_stands_still_grows_old_even_one_of_the_future(stamp: float) -> None:
    server = FakeNodes()
    server.telemetry["a"] = {"packagePowerWatts": 1, "ts": stamp}
    assert by_http(server, ["a"], rounds=3).readings["a"].measured_at_s == NOW


def test_a_clock_that_is_wrong_but_runs_is_not_an_old_reading() -> None:
    server = FakeNodes()

    async def tell(_: web.Request) -> web.Response:
        return web.json_response({"packagePowerWatts": 1, "ts": NOW - 3600 + server.asked})

    server.telemetry["a"] = tell
    assert by_http(server, ["a"], rounds=1).readings["a"].measured_at_s == NOW - 3600 + 1, "as yet it may be old"
    assert by_http(server, ["a"], rounds=2).readings["a"].measured_at_s >= NOW


@pytest.mark.parametrize("late_s", [61.0, 90.0, 120.0])
def test_readings_that_come_late_but_not_too_late_keep_their_time_stamps(late_s: float) -> None:
    """Else the first, which is taken at its word, and the second would be minutes further apart than they are."""
    server, clock = FakeNodes(), Clock(NOW)

    async def tell(_: web.Request) -> web.Response:
        return web.json_response({"packagePowerWatts": 1, "ts": clock.now_s - late_s})

    server.telemetry["a"] = tell
    for rounds in (1, 2, 3):
        clock.now_s = NOW
        measured_at_s = by_http(server, ["a"], clock=clock, rounds=rounds).readings["a"].measured_at_s
        assert measured_at_s == NOW + 60 * (rounds - 1) - late_s


def test_a_node_name_cannot_change_the_path() -> None:
    server = FakeNodes()
    server.telemetry["a/../b"] = {"packagePowerWatts": 1}
    assert by_http(server, ["a/../b"]).readings["a/../b"].power_w == 1
