"""A collector with its servers on loopback and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from joulie.control.plan import Plan
from joulie.model.snapshot import Node, Telemetry
from joulie.sources.collector import TelemetryCollector
from joulie.sources.transport import RequestLimits
from tests.support.small_clusters import NOW, machine, plan, snapshot

from .loopback import PATIENT, Clock, FakeNodes, FakePrometheus, serving, settings

POWER_QUERY, CPU_QUERY, GPU_QUERY = "watts", "cpu_load", "gpu_load"
NODES = [("a", 1000.0), ("b", 1000.0), ("c", 1000.0)]


class Bench:
    """One collector, the servers that it reads, and the clock of all of them."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.prometheus = FakePrometheus(self.clock)
        self.nodes = FakeNodes()
        self.address = ""
        self.collector: TelemetryCollector

    async def refresh(self, after_s: float = 60.0) -> Telemetry:
        """The next refresh, `after_s` later."""
        self.clock.now_s += after_s
        self.collector.set_scope(NODES, ["north", "south"], ["r1", "r2"])
        return await self.collector.read_once()

    async def tick(self, nodes: Sequence[Node], after_s: float = 60.0) -> Plan:
        """Refresh, decide, record, as the operator does it."""
        self.clock.now_s += after_s
        self.collector.set_scope([(node.name, machine(node).max_w) for node in nodes])
        telemetry = await self.collector.read_once()
        decided = plan(snapshot(nodes, telemetry=telemetry), now_s=self.clock.now_s)
        self.collector.record(decided.twins, self.clock.now_s)
        return decided


def with_collector(
    use: Callable[[Bench], Awaitable[None]], variables: Mapping[str, str] | None = None, limits: RequestLimits = PATIENT
) -> Bench:
    """Runs `use` with a collector; `PROMETHEUS` and `NODES` in a variable's text become the servers' addresses."""

    async def run() -> Bench:
        bench = Bench()
        async with serving(bench.prometheus) as prometheus, serving(bench.nodes) as nodes:
            env = {
                name: text.replace("PROMETHEUS", prometheus).replace("NODES", nodes)
                for name, text in (variables or {}).items()
            }
            bench.collector = TelemetryCollector(settings(**env), bench.clock, limits=limits)
            try:
                await use(bench)
            finally:
                await bench.collector.close()
        return bench

    return asyncio.run(run())


BY_PROMETHEUS = {
    "OPERATOR_NODE_POWER_SOURCE": "prometheus",
    "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": "PROMETHEUS",
    "OPERATOR_NODE_POWER_PROMETHEUS_QUERY": POWER_QUERY,
    "OPERATOR_UTILIZATION_CPU_QUERY": CPU_QUERY,
    "OPERATOR_UTILIZATION_GPU_QUERY": GPU_QUERY,
}
BY_HTTP = {"OPERATOR_NODE_POWER_SOURCE": "http", "OPERATOR_NODE_POWER_HTTP_ENDPOINT": "NODES/telemetry/{node}"}
WITH_FACILITY = {
    "ENABLE_FACILITY_METRICS": "true",
    "FACILITY_PROMETHEUS_ADDRESS": "PROMETHEUS",
    "FACILITY_AMBIENT_TEMP_METRIC": "ambient",
    "FACILITY_IT_POWER_METRIC": "it",
    "FACILITY_COOLING_POWER_METRIC": "cooling",
    "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": 'zone_c{zone="%s"}',
    "FACILITY_RACK_POWER_METRIC_TEMPLATE": 'rack_w{rack="%s"}',
}
