"""The collector: what it believes, what it keeps, what it says, and that it never raises."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from joulie.errors import SettingError
from joulie.model.snapshot import PowerReading, Telemetry, Utilisation
from joulie.sources.collector import TelemetryCollector
from tests.core.building import NOW, known_node, power_of

from .collecting import BY_HTTP, BY_PROMETHEUS, CPU_QUERY, GPU_QUERY, POWER_QUERY, Bench, with_collector
from .loopback import IMPATIENT, PATIENT, Clock, Handler, answering, hang, series, settings


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
        assert bench.collector.statistics.disbelieved_nodes == 1
        (message,) = bench.collector.take_messages()
        assert message.startswith("measured power of a (")
        assert message.endswith(": not believed")
        server.answers[POWER_QUERY] = [series(100, node="a"), series(200, node="b")]
        assert (await bench.refresh(10)).power.keys() == {"a", "b"}
        assert bench.collector.take_messages() == []
        await bench.refresh(121)
        assert bench.collector.take_messages() == ["measured power of a is believed again"]
        assert bench.collector.statistics.disbelieved_nodes == 0

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
        await bench.collector.refresh(nodes)

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
        assert bench.collector.take_messages() == ["measured power of b has no fresh sample any more: not believed"]
        await bench.collector.refresh([("a", 1000.0)])  # b leaves the cluster
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
        assert bench.collector.take_messages() == ["power: the query finds no fresh series"]
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
        assert "time stamp that is too old" in message

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
        assert bench.collector.statistics.tiers == {"kepler": 1, "http": 0, "utilization": 1, "static": 1}

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


def test_a_session_that_was_handed_in_stays_open() -> None:
    async def run() -> bool:
        async with aiohttp.ClientSession() as session:
            collector = TelemetryCollector(settings(), Clock(NOW), session=session)
            await collector.refresh([("a", 1.0)])
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
