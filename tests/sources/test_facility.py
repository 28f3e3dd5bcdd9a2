"""The facility poller: PUE, zones, racks, and values that cannot be true."""

from __future__ import annotations

import pytest

from joulie.model.snapshot import Telemetry

from .collecting import WITH_FACILITY, Bench, with_collector
from .loopback import IMPATIENT, answering, hang, series

ZONE_NORTH, ZONE_SOUTH = 'zone_c{zone="north"}', 'zone_c{zone="south"}'
RACK_1, RACK_2 = 'rack_w{rack="r1"}', 'rack_w{rack="r2"}'


def set_all(bench: Bench) -> None:
    bench.prometheus.answers = {
        "ambient": [series(24)],
        "it": [series(1000)],
        "cooling": [series(300)],
        ZONE_NORTH: [series(21)],
        ZONE_SOUTH: [series(29)],
        RACK_1: [series(7000)],
        RACK_2: [series(8000)],
    }


def test_a_look_brings_temperature_pue_zones_and_racks() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        assert await bench.refresh() == Telemetry(
            ambient_c=24,
            zone_ambient_c={"north": 21, "south": 29},
            rack_power_w={"r1": 7000, "r2": 8000},
            estimated_pue=1.3,
        )

    bench = with_collector(use, WITH_FACILITY)
    assert bench.collector.take_messages() == []
    assert bench.collector.statistics.last_success_s == {"facility": bench.clock.now_s}


def test_without_templates_zones_and_racks_are_not_asked_for() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        telemetry = await bench.refresh()
        assert (telemetry.zone_ambient_c, telemetry.rack_power_w) == ({}, {})

    plain = {name: text for name, text in WITH_FACILITY.items() if not name.endswith("TEMPLATE")}
    bench = with_collector(use, plain)
    assert len(bench.prometheus.asked) == 3


@pytest.mark.parametrize(
    ("query", "value", "reason"),
    [
        ("ambient", "130", "implausible"),
        ("ambient", "-60.1", "implausible"),
        ("ambient", "NaN", "not_finite"),
        ("it", "-5", "negative"),
        ("cooling", "+Inf", "not_finite"),
        (ZONE_NORTH, "130", "implausible"),
        (RACK_1, "-1", "negative"),
        ("cooling", "9001", "implausible"),
    ],
)
def test_a_value_that_cannot_be_true_is_left_out_counted_and_told_once(query: str, value: str, reason: str) -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        good = await bench.refresh()
        bench.prometheus.answers[query] = [series(value)]
        told = await bench.refresh()
        assert told != good
        lacks = {
            "ambient": told.ambient_c is None,
            "it": told.estimated_pue is None,
            "cooling": told.estimated_pue is None,
            ZONE_NORTH: "north" not in told.zone_ambient_c,
            RACK_1: "r1" not in told.rack_power_w,
        }
        assert [name for name, lacking in lacks.items() if lacking] == (
            ["it", "cooling"] if query in ("it", "cooling") else [query]
        )
        await bench.refresh()
        (message,) = bench.collector.take_messages()
        assert message.startswith("facility: rejected: ")
        set_all(bench)
        assert await bench.refresh() == good
        assert bench.collector.take_messages() == ["facility: all values are accepted again"]

    bench = with_collector(use, WITH_FACILITY)
    assert dict(bench.collector.statistics.refused) == {("facility", reason): 2}


@pytest.mark.parametrize(("it_w", "pue"), [("0", None), ("1000", 1.3), ("100", 4.0)])
def test_pue_needs_a_load(it_w: str, pue: float | None) -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        bench.prometheus.answers["it"] = [series(it_w)]
        assert (await bench.refresh()).estimated_pue == (None if pue is None else pytest.approx(pue))

    with_collector(use, WITH_FACILITY)


def test_two_feeds_of_a_rack_are_added_and_the_hottest_sensor_of_a_zone_counts() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        bench.prometheus.answers[RACK_1] = [series(3000, feed="a"), series(4500, feed="b")]
        bench.prometheus.answers[ZONE_NORTH] = [series(20, sensor="1"), series(23, sensor="2")]
        told = await bench.refresh()
        assert told.rack_power_w["r1"] == 7500
        assert told.zone_ambient_c["north"] == 23

    with_collector(use, WITH_FACILITY)


def test_when_the_facility_fails_its_values_last_twice_the_interval_but_at_least_the_age_of_a_reading() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        good = await bench.refresh()
        bench.prometheus.instead = hang
        assert await bench.refresh(60) == good
        assert await bench.refresh(60) == good
        assert await bench.refresh(1) == Telemetry()
        (message,) = bench.collector.take_messages()
        assert message.startswith("facility: all requests failed")

    with_collector(use, WITH_FACILITY, IMPATIENT)


def test_a_long_interval_lets_values_live_twice_as_long() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        good = await bench.refresh()
        bench.prometheus.instead = answering("", 500)
        assert await bench.refresh(600) == good
        assert await bench.refresh(1) == Telemetry()

    with_collector(use, {**WITH_FACILITY, "FACILITY_POLL_INTERVAL": "5m"})


def test_a_metric_that_ends_is_dropped_at_once_and_told_once() -> None:
    async def use(bench: Bench) -> None:
        set_all(bench)
        await bench.refresh()
        del bench.prometheus.answers["cooling"]
        told = await bench.refresh()
        assert (told.estimated_pue, told.ambient_c) == (None, 24)
        await bench.refresh()
        assert bench.collector.take_messages() == ["facility: no fresh series for cooling"]

    with_collector(use, WITH_FACILITY)
