"""A real Prometheus scrapes series shaped as Kepler's and the facility's; the decision sees tiers rise and fall."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from joulie.control.plan import Plan
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.snapshot import Node
from joulie.sources.collector import TelemetryCollector
from tests.support.prometheus_server import PrometheusServer
from tests.support.small_clusters import ALL_PERFORMANCE, known_node, machine, plan, power_of, snapshot, status_of

from .loopback import serving, settings

pytestmark = pytest.mark.slow

MAX_AGE_S = 3.0
ENV = {
    "POWER_MAX_AGE": "3s",
    "OPERATOR_NODE_POWER_SOURCE": "prometheus",
    "ENABLE_FACILITY_METRICS": "true",
    "FACILITY_POLL_INTERVAL": "100ms",
    "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": 'datacenter_zone_temperature_celsius{cooling_zone="%s"}',
    "FACILITY_RACK_POWER_METRIC_TEMPLATE": 'sum(datacenter_rack_power_watts{rack="%s"})',
}


class Exporter:
    """What is scraped: text that the test changes, `NOW` in it being the time; down while `is_up` is false."""

    def __init__(self) -> None:
        self.series: dict[str, str] = {}
        self.is_up = True

    async def __call__(self, _: web.Request) -> web.StreamResponse:
        if not self.is_up:
            return web.Response(status=503)
        text = "".join(f"{name} {value}\n" for name, value in self.series.items())
        return web.Response(text=text.replace("NOW", str(int(time.time() * 1000))))


class Scene:
    """A cluster of three nodes, an exporter, a Prometheus that scrapes it, and the collector that asks it."""

    def __init__(self, exporter: Exporter, collector: TelemetryCollector) -> None:
        self.exporter = exporter
        self.series = exporter.series
        self.collector = collector
        self.messages: list[str] = []
        self.nodes: list[Node] = [
            _placed(known_node("a", gpu="NVIDIA-H100-NVL", gpus=4), "north", "r1"),
            _placed(known_node("b"), "south", "r2"),
            _placed(known_node("c"), "south", "r2"),
        ]

    async def tick(self) -> Plan:
        maxima = [(node.name, machine(node).max_w) for node in self.nodes]
        self.collector.set_scope(maxima, ["north", "south"], ["r1", "r2"])
        told = await self.collector.read_once()
        decided = plan(snapshot(self.nodes, telemetry=told), {**ENV, **ALL_PERFORMANCE}, now_s=time.time())
        self.collector.record(decided.twins, decided.twins.now_s)
        self.messages += self.collector.take_messages()
        return decided

    async def until(self, holds: Callable[[Plan], bool], within_s: float = 15.0) -> Plan:
        """Ticks until it holds; what is said when it never does is the last state."""
        deadline_s = time.monotonic() + within_s
        while True:
            decided = await self.tick()
            if holds(decided):
                return decided
            assert time.monotonic() < deadline_s, (_tiers(decided), self.messages)
            await asyncio.sleep(0.1)

    async def until_refused(self, reason: str) -> Plan:
        return await self.until(lambda _: self.collector.statistics.refused["power", reason] > 0)

    async def until_tiers(self, *tiers: str) -> Plan:
        return await self.until(lambda decided: _tiers(decided) == list(tiers))


def _placed(node: Node, zone: str, rack: str) -> Node:
    labels = {**node.labels, COOLING_ZONE_LABEL: zone, RACK_LABEL: rack}
    return Node(node.name, labels, node.unschedulable, node.capacity_cores)


def _tiers(decided: Plan) -> list[str]:
    return list(decided.twins.sources)


def play(start: type[PrometheusServer], act: Callable[[Scene], Awaitable[None]]) -> None:
    @contextlib.asynccontextmanager
    async def scene() -> AsyncIterator[Scene]:
        exporter = Exporter()
        async with serving(exporter) as address:
            server = start([address.removeprefix("http://")])
            await asyncio.to_thread(server.__enter__)
            env = {**ENV, "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": server.address}
            collector = TelemetryCollector(
                settings(**env, FACILITY_PROMETHEUS_ADDRESS=server.address), time.time, trend_window_s=60
            )
            try:
                yield Scene(exporter, collector)
            finally:
                await collector.close()
                await asyncio.to_thread(server.stop)

    async def run() -> None:
        async with scene() as stage:
            await act(stage)

    asyncio.run(run())


def kepler(node: str, package_w: float) -> dict[str, str]:
    """Two packages, whose zones overlap with core and dram."""
    zones = [("package", "0", package_w / 2), ("package", "1", package_w / 2), ("core", "0", 7), ("dram", "0", 9)]
    return {
        f'kepler_node_cpu_watts{{node_name="{node}",zone="{zone}",path="/sys/{zone}-{number}"}}': str(watts)
        for zone, number, watts in zones
    }


def test_tiers_rise_and_fall_as_series_come_go_stale_and_return(
    start_prometheus: type[PrometheusServer],
) -> None:
    async def act(scene: Scene) -> None:
        await scene.until_tiers("static", "static", "static")

        scene.series |= kepler("a", 400) | kepler("b", 300)
        scene.series |= {
            f'kepler_node_gpu_watts{{node_name="a",gpu="{i}",gpu_uuid="u{i}",vendor="nvidia"}}': "200" for i in range(4)
        }
        decided = await scene.until_tiers("kepler", "kepler", "static")
        assert power_of(decided, "a").measured_node_power_w == pytest.approx(1200)
        assert power_of(decided, "b").measured_node_power_w == pytest.approx(300)

        scene.series['kepler_node_cpu_usage_ratio{node_name="b"}'] = "1"
        scene.series['kepler_node_cpu_usage_ratio{node_name="c"}'] = "0"
        decided = await scene.until_tiers("kepler", "kepler", "utilization")
        assert power_of(decided, "c").measured_node_power_w == pytest.approx(128)

        for name in kepler("b", 0):
            del scene.series[name]
        decided = await scene.until_tiers("kepler", "utilization", "utilization")
        assert power_of(decided, "b").measured_node_power_w == pytest.approx(817)

        scene.series |= kepler("b", 310)
        await scene.until_tiers("kepler", "kepler", "utilization")

        scene.exporter.is_up = False
        await scene.until_tiers("static", "static", "static")
        scene.exporter.is_up = True
        await scene.until_tiers("kepler", "kepler", "utilization")
        assert scene.collector.statistics.tiers == {"kepler": 2, "http": 0, "utilization": 1, "static": 0}
        assert scene.collector.statistics.failures == {}
        assert scene.collector.statistics.freshness["nodes"] in ("lookback", "shifted")

    play(start_prometheus, act)


def test_a_sensor_that_lies_falls_to_the_next_tier_and_is_named(
    start_prometheus: type[PrometheusServer],
) -> None:
    async def act(scene: Scene) -> None:
        scene.series |= kepler("b", 300) | {name: f"{value} NOW" for name, value in kepler("c", 300).items()}
        scene.series['kepler_node_cpu_usage_ratio{node_name="b"}'] = "0.5"
        await scene.until_tiers("static", "kepler", "kepler")
        scene.messages.clear()

        for lie, reason in ((8170, "above_maximum"), (-10, "negative"), (float("nan"), "not_finite")):
            scene.series |= kepler("b", lie)
            await scene.until_refused(reason)
            assert _tiers(await scene.tick()) == ["static", "utilization", "kepler"]
        scene.series |= kepler("b", 300)
        await scene.until_tiers("static", "kepler", "kepler")
        assert len(scene.messages) == 1, scene.messages
        assert scene.messages[0].startswith("measured power of b (8170 W of 800 W) is above 1.5 times")

        frozen_at_s = time.time()
        for name, value in kepler("c", 300).items():
            scene.series[name] = f"{value} {int(frozen_at_s * 1000)}"
        await asyncio.sleep(1)
        assert _tiers(await scene.tick()) == ["static", "kepler", "kepler"], "not too old yet"
        await scene.until_tiers("static", "kepler", "static")
        assert MAX_AGE_S - 1 < time.time() - frozen_at_s < MAX_AGE_S + 5
        assert "measured power of c has no fresh sample any more: rejected" in scene.messages

    play(start_prometheus, act)


def test_pue_appears_and_a_zones_temperature_moves_only_its_nodes(
    start_prometheus: type[PrometheusServer],
) -> None:
    async def act(scene: Scene) -> None:
        before = await scene.tick()
        assert status_of(before, "a").estimated_pue is None

        scene.series["datacenter_total_it_power_watts"] = "10000"
        scene.series["datacenter_cooling_power_watts"] = "3100"
        decided = await scene.until(lambda decided: status_of(decided, "a").estimated_pue is not None)
        assert [status_of(decided, name).estimated_pue for name in "abc"] == pytest.approx([1.31] * 3)
        assert decided.twins.columns["cooling_stress"] == before.twins.columns["cooling_stress"]

        scene.series['datacenter_zone_temperature_celsius{cooling_zone="south"}'] = "35"
        stress = before.twins.columns["cooling_stress"]
        decided = await scene.until(lambda decided: decided.twins.columns["cooling_stress"] != stress)
        now = decided.twins.columns["cooling_stress"]
        assert now[0] == stress[0]
        assert now[1] > stress[1]
        assert now[2] > stress[2]

        scene.series["datacenter_ambient_temperature_celsius"] = "30"
        decided = await scene.until(lambda decided: decided.twins.columns["cooling_stress"][0] > stress[0])
        assert decided.twins.columns["cooling_stress"][1:] == now[1:]

        scene.series['datacenter_rack_power_watts{rack="r2",feed="a"}'] = "20000"
        scene.series['datacenter_rack_power_watts{rack="r2",feed="b"}'] = "10000"
        decided = await scene.until(lambda decided: decided.twins.columns["psu_stress"][1] > 50)
        assert decided.twins.columns["psu_stress"][1:] == pytest.approx([60, 60])
        assert decided.twins.columns["psu_stress"][0] < 50

        scene.series["datacenter_cooling_power_watts"] = "-5"
        await scene.until(lambda decided: status_of(decided, "a").estimated_pue is None)
        assert scene.collector.statistics.refused["facility", "negative"] > 0

    play(start_prometheus, act)
