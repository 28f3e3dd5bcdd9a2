"""The collector: what it believes, what it keeps, what it says, and that it never raises."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from joulie.errors import SettingError
from joulie.model.snapshot import PowerReading, Telemetry, Utilisation
from joulie.model.tiers import TIER_NAMES
from joulie.sources.collector import TelemetryCollector
from joulie.sources.transport import RequestLimits
from tests.support.small_clusters import NOW, known_node, power_of

from .collecting import (
    BY_HTTP,
    BY_PROMETHEUS,
    CPU_QUERY,
    GPU_QUERY,
    NODES,
    POWER_QUERY,
    WITH_FACILITY,
    Bench,
    with_collector,
)
from .loopback import IMPATIENT, PATIENT, Clock, Handler, answering, hang, series, settings, vector


def test_without_sources_telemetry_is_empty_and_nothing_is_asked() -> None:
    async def use(bench: Bench) -> None:
        assert await bench.refresh() == Telemetry()

    bench = with_collector(use)
    assert bench.prometheus.asked == []
    assert bench.collector.take_messages() == []


def test_all_nodes_cost_one_query_for_power_and_one_for_each_utilisation() -> None:
    async def use(bench: Bench) -> None:
        server = bench.prometheus
        server.answers[POWER_QUERY] = [series(100, node="a"), series(200, node="b")]
        server.answers[CPU_QUERY] = [series(0.5, node="a"), series(0.25, node="c")]
        server.answers[GPU_QUERY] = [series(0.75, Hostname="a"), series(1, Hostname="b")]
        telemetry = await bench.refresh()
        at_s = bench.clock.now_s
        assert telemetry.power == {"a": PowerReading("kepler", 100, at_s), "b": PowerReading("kepler", 200, at_s)}
        assert telemetry.utilisation == {
            "a": Utilisation(at_s, 0.5, 0.75),
            "b": Utilisation(at_s, None, 1.0),
            "c": Utilisation(at_s, 0.25, None),
        }

    bench = with_collector(use, BY_PROMETHEUS)
    assert sorted(params["query"] for params in bench.prometheus.asked) == [CPU_QUERY, GPU_QUERY, POWER_QUERY]
    assert bench.collector.take_messages() == []
    assert bench.collector.statistics.last_success_s.keys() == {"power", "cpu_utilisation", "gpu_utilisation"}
    assert bench.collector.statistics.freshness == {"nodes": "lookback"}


@pytest.mark.parametrize(
    ("lie", "at_s", "reason"),
    [
        ("NaN", None, "not_finite"),
        ("+Inf", None, "not_finite"),
        ("-1", None, "negative"),
        ("10000", None, "above_maximum"),
        ("1500.1", None, "above_maximum"),
        ("500", NOW, "too_old"),
    ],
)
def test_a_sensor_that_lies_is_not_believed_counted_and_named_once(lie: str, at_s: float | None, reason: str) -> None:
    async def use(bench: Bench) -> None:
        server = bench.prometheus
        server.answers[POWER_QUERY] = [series(100, node="a"), series(200, node="b")]
        await bench.refresh()
        server.answers[POWER_QUERY] = [series(lie, at_s, node="a"), series(1500, node="b")]
        for _ in range(3):
            assert (await bench.refresh(121)).power.keys() == {"b"}
        assert bench.collector.statistics.rejected_nodes == 1
        (message,) = bench.collector.take_messages()
        assert message.startswith("measured power of a (")
        assert message.endswith(": rejected")
        server.answers[POWER_QUERY] = [series(100, node="a"), series(200, node="b")]
        assert (await bench.refresh(10)).power.keys() == {"a", "b"}
        assert bench.collector.take_messages() == []
        await bench.refresh(121)
        assert bench.collector.take_messages() == ["measured power of a is accepted again"]
        assert bench.collector.statistics.rejected_nodes == 0

    bench = with_collector(use, BY_PROMETHEUS)
    assert dict(bench.collector.statistics.refused) == {("power", reason): 3}


def test_a_sensor_that_is_right_every_other_time_is_named_once() -> None:
    async def use(bench: Bench) -> None:
        for turn in range(10):
            bench.prometheus.answers[POWER_QUERY] = [series("NaN" if turn % 2 else 100, node="a")]
            await bench.refresh()

    bench = with_collector(use, BY_PROMETHEUS)
    assert len(bench.collector.take_messages()) == 1
    assert bench.collector.statistics.refused["power", "not_finite"] == 5


def test_a_thousand_lying_sensors_make_one_line() -> None:
    async def use(bench: Bench) -> None:
        nodes = [(f"n{i:03}", 100.0) for i in range(1000)]
        bench.prometheus.answers[POWER_QUERY] = [series(1e6, node=name) for name, _ in nodes]
        bench.collector.set_scope(nodes)
        await bench.collector.read_once()

    (message,) = with_collector(use, BY_PROMETHEUS).collector.take_messages()
    assert "n000 (1e+06 W of 100 W)" in message
    assert "and 995 more nodes is above 1.5 times" in message
    assert len(message) < 300


def test_a_node_whose_series_ends_falls_at_once_and_is_named_once() -> None:
    async def use(bench: Bench) -> None:
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a"), series(200, node="b")]
        await bench.refresh()
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a")]
        assert (await bench.refresh(1)).power.keys() == {"a"}
        await bench.refresh()
        assert bench.collector.take_messages() == ["measured power of b has no fresh sample any more: rejected"]
        bench.collector.set_scope([("a", 1000.0)])  # b leaves the cluster
        await bench.collector.read_once()
        await bench.refresh()
        assert bench.collector.take_messages() == []

    with_collector(use, BY_PROMETHEUS)


@pytest.mark.parametrize("fault", [hang, answering("", 500), answering("garbage")], ids=["hang", "500", "garbage"])
def test_a_source_that_fails_leaves_its_last_readings_to_grow_old_and_says_so_once(fault: Handler) -> None:
    async def use(bench: Bench) -> None:
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a")]
        bench.prometheus.answers[CPU_QUERY] = [series(0.5, node="a")]
        before = await bench.refresh()
        bench.prometheus.instead = fault
        assert (await bench.refresh()).power == before.power
        last = await bench.refresh()
        assert (last.power, last.utilisation) == (before.power, before.utilisation)
        gone = await bench.refresh(1)
        assert (gone.power, gone.utilisation) == ({}, {})
        messages = bench.collector.take_messages()
        assert sorted(message.split(":")[0] for message in messages) == ["cpu_utilisation", "gpu_utilisation", "power"]
        bench.prometheus.instead = None
        assert (await bench.refresh()).power.keys() == {"a"}
        assert "power: answers again" in bench.collector.take_messages()

    bench = with_collector(use, BY_PROMETHEUS, IMPATIENT if fault is hang else PATIENT)
    assert bench.collector.statistics.failures["power"] == 3
    assert bench.collector.statistics.last_success_s["power"] == bench.clock.now_s


def test_a_wrong_query_is_told_once_although_the_server_is_well() -> None:
    async def use(bench: Bench) -> None:
        await bench.refresh()
        await bench.refresh()
        assert bench.collector.take_messages() == ["power: the query returns no fresh series"]
        bench.prometheus.answers[POWER_QUERY] = [series(1, node="a")]
        await bench.refresh()
        assert bench.collector.take_messages() == ["power: names nodes again"]

    with_collector(use, BY_PROMETHEUS)


@pytest.mark.parametrize(
    ("share", "reason"), [("NaN", "not_finite"), ("1.2", "out_of_range"), ("-0.1", "out_of_range")]
)
def test_a_utilisation_that_is_no_share_is_not_believed(share: str, reason: str) -> None:
    async def use(bench: Bench) -> None:
        bench.prometheus.answers[CPU_QUERY] = [series(share, node="a"), series(1.02, node="b")]
        assert (await bench.refresh()).utilisation == {"b": Utilisation(bench.clock.now_s, 1.0)}

    bench = with_collector(use, {**BY_PROMETHEUS, "OPERATOR_NODE_POWER_SOURCE": "static"})
    assert dict(bench.collector.statistics.refused) == {("cpu_utilisation", reason): 1}


def test_a_node_that_does_not_answer_over_http_keeps_its_reading_until_it_is_too_old() -> None:
    async def use(bench: Bench) -> None:
        bench.nodes.telemetry = {name: {"packagePowerWatts": 100} for name in "abc"}
        assert (await bench.refresh()).power.keys() == {"a", "b", "c"}
        bench.nodes.telemetry["b"] = answering("", 500)
        assert (await bench.refresh()).power.keys() == {"a", "b", "c"}
        assert (await bench.refresh(61)).power.keys() == {"a", "c"}
        assert bench.collector.take_messages() == ["power: 1 of 3 did not answer; b: answered HTTP 500"]
        bench.nodes.telemetry["b"] = {"packagePowerWatts": 100}
        await bench.refresh()
        assert bench.collector.take_messages() == ["power: everything answers again"]

    bench = with_collector(use, BY_HTTP)
    assert bench.collector.statistics.failures["power"] == 2


def test_a_frozen_time_stamp_over_http_is_believed_until_it_is_too_old() -> None:
    async def use(bench: Bench) -> None:
        bench.nodes.telemetry = {name: {"packagePowerWatts": 100, "ts": bench.clock.now_s} for name in "abc"}
        assert len((await bench.refresh(60)).power) == 3
        assert len((await bench.refresh(60)).power) == 3
        assert len((await bench.refresh(1)).power) == 0
        (message,) = bench.collector.take_messages()
        assert "timestamp that is too old" in message

    bench = with_collector(use, BY_HTTP)
    assert bench.collector.statistics.refused["power", "too_old"] == 3


def test_tiers_rise_and_fall_through_the_decision_and_are_counted() -> None:
    nodes = [known_node(name) for name in "abc"]

    async def use(bench: Bench) -> None:
        server = bench.prometheus
        server.answers[POWER_QUERY] = [series(300, node="a"), series(80_000, node="b")]
        server.answers[CPU_QUERY] = [series(1, node="b")]
        decided = await bench.tick(nodes)
        assert [power_of(decided, name).source for name in "abc"] == ["kepler", "utilization", "static"]
        assert power_of(decided, "b").measured_node_power_w == pytest.approx(817)
        assert bench.collector.statistics.tiers == {
            **dict.fromkeys(TIER_NAMES, 0),
            "kepler": 1,
            "utilization": 1,
            "static": 1,
        }

    with_collector(use, BY_PROMETHEUS)


def test_the_trend_follows_what_was_recorded_and_a_change_of_tier_is_none() -> None:
    nodes = [known_node("a")]

    async def use(bench: Bench) -> None:
        trends = []
        for power_w in (300, 310, 320, None, None, 500):
            told = [] if power_w is None else [series(power_w, node="a")]
            bench.prometheus.answers[POWER_QUERY] = told
            trends.append(power_of(await bench.tick(nodes), "a").power_trend_w_per_min)
        assert trends == pytest.approx([0, 0, 10, 10, 0, 0])

    with_collector(use, BY_PROMETHEUS)


def test_a_source_that_fails_adds_no_samples_to_the_trend() -> None:
    nodes = [known_node("a")]

    async def use(bench: Bench) -> None:
        for power_w in (300, 310):
            bench.prometheus.answers[POWER_QUERY] = [series(power_w, node="a")]
            await bench.tick(nodes)
        bench.prometheus.instead = answering("", 500)
        for _ in range(2):
            decided = await bench.tick(nodes, 50)
            assert power_of(decided, "a").source == "kepler"
            assert power_of(decided, "a").power_trend_w_per_min == pytest.approx(10)

    with_collector(use, BY_PROMETHEUS)


async def _count_until(count: Callable[[], int], least: int) -> None:
    async with asyncio.timeout(60):
        while count() < least:
            await asyncio.sleep(0.005)


def test_every_source_is_read_on_its_own_interval_and_a_dead_one_delays_no_other() -> None:
    looks: Counter[str] = Counter()

    async def use(bench: Bench) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            promql = request.query.get("query", "")
            looks[promql] += 1
            if promql == POWER_QUERY:
                await hang(request)
            if promql == "1":  # a server that knows `lookback_delta`
                return web.json_response({"status": "error"}, status=400)
            return vector([series(0.5, node="a")], bench.clock.now_s)

        bench.prometheus.instead = answer
        bench.collector.set_scope(NODES)
        polling = asyncio.create_task(bench.collector.run())
        try:
            await _count_until(lambda: looks[CPU_QUERY], 6)
            await _count_until(lambda: looks["it"], 3)
            telemetry = bench.collector.telemetry()
            assert telemetry.utilisation == {"a": Utilisation(bench.clock.now_s, 0.5, 0.5)}
            assert telemetry.estimated_pue == 2.0
            assert looks[POWER_QUERY] == 1, "it hangs, and is waited for by nothing else"
            assert not bench.collector.first_round.is_set()
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    env = {**BY_PROMETHEUS, **WITH_FACILITY, "POWER_POLL_INTERVAL": "20ms", "FACILITY_POLL_INTERVAL": "40ms"}
    with_collector(use, env, RequestLimits(call_timeout_s=120, deadline_s=120))


def test_telemetry_is_what_is_known_and_asks_nothing() -> None:
    async def use(bench: Bench) -> None:
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a")]
        await bench.refresh()
        before = len(bench.prometheus.asked)
        assert bench.collector.telemetry().power.keys() == {"a"}
        bench.clock.now_s += 121
        assert bench.collector.telemetry().power == {}, "too old by now"
        assert len(bench.prometheus.asked) == before

    with_collector(use, BY_PROMETHEUS)


def test_a_clock_of_ours_that_was_set_back_keeps_no_reading_alive() -> None:
    """Otherwise a source that dies then is believed until the clock has made up for it."""

    async def use(bench: Bench) -> None:
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a")]
        bench.prometheus.answers["it"] = bench.prometheus.answers["cooling"] = [series(100)]
        known = await bench.refresh()
        assert known.power.keys() == {"a"}
        assert known.estimated_pue == 2.0
        bench.prometheus.instead = answering("", 503)
        known = await bench.refresh(-7200)
        assert (known.power, known.estimated_pue) == ({}, None)

    with_collector(use, {**BY_PROMETHEUS, **WITH_FACILITY})


@pytest.mark.parametrize(("skew_s", "words"), [(-3600, "3600 s behind"), (90, "90 s ahead of")])
def test_the_wrong_clock_of_a_server_costs_no_reading_and_is_told_once(skew_s: float, words: str) -> None:
    async def use(bench: Bench) -> None:
        server = bench.prometheus
        server.clock = Clock(0)
        server.answers[POWER_QUERY] = [series(100, node="a")]
        for _ in range(3):
            server.clock.now_s = bench.clock.now_s + 60 + skew_s
            assert (await bench.refresh(60)).power == {"a": PowerReading("kepler", 100, bench.clock.now_s)}
        (message,) = bench.collector.take_messages()
        assert words in message
        assert bench.collector.statistics.clock_ahead_s == {"nodes": skew_s}
        server.clock.now_s = bench.clock.now_s + 60
        await bench.refresh(60)
        assert bench.collector.take_messages() == ["nodes source: clocks agree again"]

    with_collector(use, BY_PROMETHEUS)


def test_series_of_several_devices_of_a_node_are_averaged_for_utilisation_and_added_for_power() -> None:
    async def use(bench: Bench) -> None:
        bench.prometheus.answers[POWER_QUERY] = [series(100, node="a", gpu="0"), series(300, node="a", gpu="1")]
        bench.prometheus.answers[GPU_QUERY] = [series(0.25, node="a", gpu="0"), series(1, node="a", gpu="1")]
        bench.prometheus.answers[CPU_QUERY] = [series(0.2, node="b"), series("NaN", node="b")]
        telemetry = await bench.refresh()
        assert telemetry.power["a"].power_w == 400
        assert telemetry.utilisation == {"a": Utilisation(bench.clock.now_s, None, 0.625)}

    with_collector(use, BY_PROMETHEUS)


def test_a_session_that_was_handed_in_stays_open() -> None:
    async def run() -> bool:
        async with aiohttp.ClientSession() as session:
            collector = TelemetryCollector(settings(), Clock(NOW), session=session)
            collector.set_scope([("a", 1.0)])
            await collector.read_once()
            await collector.close()
            return session.closed

    assert asyncio.run(run()) is False


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"OPERATOR_NODE_POWER_SOURCE": "prometheus"}, "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS"),
        ({"OPERATOR_NODE_POWER_SOURCE": "http"}, "OPERATOR_NODE_POWER_HTTP_ENDPOINT"),
        (
            {"OPERATOR_NODE_POWER_SOURCE": "http", "OPERATOR_NODE_POWER_HTTP_ENDPOINT": "http://sim/telemetry"},
            "OPERATOR_NODE_POWER_HTTP_ENDPOINT",
        ),
        ({"FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": "zone_c"}, "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE"),
        ({"FACILITY_RACK_POWER_METRIC_TEMPLATE": "rack_w"}, "FACILITY_RACK_POWER_METRIC_TEMPLATE"),
    ],
)
def test_settings_that_cannot_work_stop_the_start_and_name_the_variable(variables: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        TelemetryCollector(settings(**variables), Clock(NOW))
