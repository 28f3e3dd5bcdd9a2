"""The simulated building, asked by the operator's own readers."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.settings import OperatorSettings, load
from joulie.simulator.facility import AMBIENT, COOLING_POWER, IT_POWER
from joulie.simulator.prometheus_query import answer
from joulie.simulator.simulation import Simulation
from joulie.sources.facility import FacilityPoller
from joulie.sources.power.http import HttpPower
from joulie.sources.prometheus import PrometheusClient
from joulie.sources.transport import RequestLimits
from tests.simulator.grounds import START_S, Client, Clock, node, play, pod, simulation

LIMITS = RequestLimits(call_timeout_s=5.0, deadline_s=10.0, calls_at_once=8)


def _zones() -> tuple[Clock, Simulation]:
    clock = Clock()
    world = simulation(
        node("a", 8, rack="r1", zone="north"),
        node("b", rack="r1", zone="north"),
        node("c", rack="r2", zone="south"),
        node("d"),
        clock=clock,
        SIM_OUTSIDE_TEMP_C="32",
    )
    world.put_pod("team/a", pod("a", "a", 100, 8))
    for _ in range(60):
        clock.now_s += 1
        world.step(1.0)
    return clock, world


def test_the_operators_poller_reads_temperature_pue_zones_and_racks_from_the_simulator() -> None:
    clock, world = _zones()
    settings = load(
        OperatorSettings,
        {
            "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": 'datacenter_zone_ambient_temperature_celsius{zone="%s"}',
            "FACILITY_RACK_POWER_METRIC_TEMPLATE": 'datacenter_rack_power_watts{rack="%s"}',
        },
    )

    async def story(client: Client) -> None:
        prometheus = PrometheusClient(client.session, client.url, 5.0)
        poller = FacilityPoller(prometheus, settings, LIMITS)
        look = await poller.poll(["north", "south"], ["r1", "r2", "r3"], clock())
        assert look.failures == {}
        assert list(look.rejected) == []
        assert prometheus.freshness == "lookback"
        seen = poller.facility(clock())
        assert seen.ambient_c == pytest.approx(24.0, abs=0.5)
        assert seen.estimated_pue is not None
        assert 1.1 < seen.estimated_pue < 1.6
        assert seen.zone_ambient_c.keys() == {"north", "south"}
        watts = dict(zip(world.index, world.fleet.node_w.tolist(), strict=True))
        assert seen.rack_power_w == pytest.approx({"r1": watts["a"] + watts["b"], "r2": watts["c"]})

    play(world, story)


def test_the_operators_power_reader_gets_node_power_from_telemetry() -> None:
    clock, world = _zones()

    async def story(client: Client) -> None:
        reader = HttpPower(client.session, client.url + "/telemetry/{node}", 120, clock, LIMITS)
        told = await reader.read(["a", "b", "nobody"])
        fleet, index = world.fleet, world.index
        expected_w = fleet.cpus.average_w[index["a"]] + fleet.gpu_w[index["a"]]
        assert told.readings["a"].power_w == pytest.approx(expected_w, abs=0.01)
        assert told.readings["a"].measured_at_s == clock()
        assert "nobody" in told.unanswered

    play(world, story)


def test_a_query_is_answered_as_prometheus_does_and_refused_as_it_does() -> None:
    clock, world = _zones()

    async def story(client: Client) -> None:
        async def ask(query: str, **more: str) -> tuple[int, Any]:
            told = await client.get("/api/v1/query", query=query, **more)
            return told.status, told.body

        for metric in (AMBIENT, IT_POWER, COOLING_POWER):
            status, body = await ask(metric)
            assert status == 200
            [series] = body["data"]["result"]
            assert series["metric"] == {"__name__": metric}
            assert series["value"][0] == clock()
            assert float(series["value"][1]) > 0
        for query in ("no_such_metric", f'{IT_POWER}{{zone="north"}}', 'datacenter_rack_power_watts{rack="r9"}'):
            assert (await ask(query))[1]["data"] == {"resultType": "vector", "result": []}
        assert (await ask("1"))[1]["data"] == {"resultType": "scalar", "result": [clock(), "1.0"]}
        assert len((await ask("datacenter_rack_power_watts{}"))[1]["data"]["result"]) == 2
        for query, more in (
            ("sum(up)", {}),
            ("", {}),
            ("x{", {}),
            ("a" * 5_000, {}),
            ("1", {"lookback_delta": "none"}),
        ):
            status, body = await ask(query, **more)
            assert status == 400
            assert (body["status"], body["errorType"]) == ("error", "bad_data")
            assert "\n" not in str(body["error"])
        assert (await client.get("/api/v1/query")).status == 400
        clock.now_s += 1_000  # no more steps are made
        assert (await ask(IT_POWER, lookback_delta="120"))[1]["data"]["result"] == []

    play(world, story)


def test_a_query_made_to_be_slow_is_answered_at_once() -> None:
    """A pattern that backtracks would hold up every node."""

    for query in (
        "a{" + ' a="b",' * 400 + "!",
        "a{" + 'a="b" ' * 400 + "!",
        "a{" + " " * 4_000 + "!",
        'a{b="' + "\\" * 4_000,
    ):
        with pytest.raises(ValueError, match="understood"):
            answer(simulation(), query, None, START_S)
