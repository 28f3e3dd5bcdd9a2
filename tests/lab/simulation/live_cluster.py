"""A cluster in memory with the real operator and the real extender, to which a test does what happened in a lab run.

Nothing of theirs is replaced: the operator reads sensors over HTTP and writes twins and labels, the extender watches
them and answers over HTTP. Only the clock is the test's, and pods start and end when it says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pytest
from aiohttp import web

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_HARDWARE, NODES, PODS
from joulie.control.plan import Plan
from joulie.control.policies.interface import Policy
from joulie.extender import process as extender_process
from joulie.extender.process import Extender
from joulie.lab.simulation.cluster import LabCluster
from joulie.model import names
from joulie.model.rfc3339 import format_time
from joulie.operator.loop import DecisionModels, Operator
from joulie.settings import ExtenderSettings, OperatorSettings, load
from joulie.sources.collector import TelemetryCollector
from tests.extender.harness import Asker, following, serving, until

NAMESPACE = "default"
PROMPT = {  # nothing is held back: the lab hands every decision over as it is
    "STATUS_DEADBAND_PCT": "0",
    "TWIN_REFRESH_INTERVAL": "1s",
    "KUBE_CLIENT_QPS": "100000",
    "KUBE_CLIENT_BURST": "100000",
    "EXTENDER_REQUEST_TIMEOUT": "30s",
}
AMBIENT, IT, COOLING, ZONE = "ambient", "it", "cooling", "zone"


@dataclass
class Sensors:
    """What the building and its nodes say at the moment; nothing where there is no meter."""

    power_w: Mapping[str, float] = field(default_factory=dict)
    measured_at_s: float = 0.0
    ambient_c: float | None = None
    zone_ambient_c: Mapping[str, float] = field(default_factory=dict)
    it_w: float | None = None
    cooling_w: float | None = None

    def value(self, query: str) -> float | None:
        if query.startswith(ZONE):
            return self.zone_ambient_c.get(query.removeprefix(ZONE + ":"))
        return {AMBIENT: self.ambient_c, IT: self.it_w, COOLING: self.cooling_w}.get(query)


class Assigned(NamedTuple):
    """What a node should be, as its twin says."""

    state: str
    cpu_pct: float
    gpu_pct: float | None


class LiveCluster:
    """The cluster, at the time that the test sets."""

    def __init__(self, nodes: LabCluster, env: Mapping[str, str], policy: Policy | None, begins_at_s: float) -> None:
        self.now_s = begins_at_s
        self.sensors = Sensors()
        self._server = MemoryServer(clock=self.clock)
        self._world = MemoryCluster(self._server)
        self._settings = env
        self._policy = policy
        self._pods: dict[str, dict[str, Any]] = {}
        for name in nodes.names:
            self._world.put(NODES, _node_body(nodes, name))
            status = msgspec.to_builtins(nodes.hardware[name].status)
            body = {"apiVersion": names.API_VERSION, "kind": "NodeHardware", "metadata": {"name": name}}
            self._world.put(NODE_HARDWARE, body | {"status": status})
        self._operator: Operator
        self._extender: Extender
        self._asker: Asker

    def clock(self) -> float:
        return self.now_s

    @asynccontextmanager
    async def running(self, measured: bool) -> AsyncIterator[LiveCluster]:
        """Operator, extender and sensors; `measured`: the operator has readings of nodes' power."""
        async with AsyncExitStack() as ends:
            url = await ends.enter_async_context(_sensors_served(self))
            env = {**PROMPT, **self._settings, **_wired(url, measured)}
            settings = load(OperatorSettings, env)
            decision = settings.decision
            models = DecisionModels(
                self._policy or plugins.policy(decision.plan.policy_type),
                plugins.cooling(decision.twin.cooling_model, decision.twin),
                Catalogue(),
            )
            collector = TelemetryCollector(settings, self.clock)
            ends.push_async_callback(collector.close)
            cluster, watched = MemoryCluster(self._server), MemoryCluster(self._server)
            for client in (cluster, watched, self._world):
                ends.push_async_callback(client.close)
            self._operator = Operator(cluster, settings, models, collector, lambda: 10.0, "test", clock=self.clock)
            watching = asyncio.create_task(self._operator.watch())
            ends.push_async_callback(_ended, watching)
            self._extender = Extender(load(ExtenderSettings, env), Catalogue(), self.clock)
            await ends.enter_async_context(following(self._extender, watched))
            self._asker = await ends.enter_async_context(serving(self._extender))
            await until(lambda: self._operator.state.synced)
            yield self

    async def submit(self, name: str, cores: float, gpus: int, performance: bool, gpu_resource: str) -> None:
        """Create a pod, as a user would."""
        asked = {"cpu": f"{round(cores * 1000)}m"} | ({gpu_resource: str(gpus)} if gpus else {})
        annotations = {names.WORKLOAD_CLASS_ANNOTATION: "performance"} if performance else {}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"containers": [{"name": "work", "image": "work", "resources": {"requests": asked}}]},
            "status": {"phase": "Pending"},
        }
        self._world.put(PODS, body)
        self._pods[name] = body
        await self._known(name, lambda pod: pod is not None)

    async def scores(self, name: str, candidates: list[str]) -> dict[str, int]:
        """As kube-scheduler asks: first who may take the pod, then what those are worth to it."""
        pod = self._pods[name]
        left = (await self._asker.filter(pod, candidates))["NodeNames"]
        return await self._asker.prioritize(pod, left) if left else {}

    async def bind(self, name: str, node: str) -> None:
        pod = self._pods[name]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(self.now_s)}
        pod = pod | {
            "spec": pod["spec"] | {"nodeName": node},
            "status": {"phase": "Running", "conditions": [scheduled]},
        }
        self._world.put(PODS, pod)
        self._pods[name] = pod
        await self._known(name, lambda pod: pod is not None and pod.node == node)

    async def finish(self, name: str) -> None:
        self._world.put(PODS, self._pods.pop(name) | {"status": {"phase": "Succeeded"}})
        await self._known(name, lambda pod: pod is not None and pod.finished)
        await self._world.delete(PODS, name, namespace=NAMESPACE)
        await self._known(name, lambda pod: pod is None)

    async def reconcile(self) -> tuple[dict[str, Assigned], Plan]:
        """One decision with all its writes, seen by the extender; what the twins then say, and the plan behind it."""
        outcome = await self._operator.reconcile(spread=False)
        assert outcome is not None
        assert not outcome.failed
        plan = self._operator.plan
        assert plan is not None
        board, now = self._extender.state.board, format_time(self.now_s)
        rows = [board.index[name] for name in plan.twins.nodes]
        await _soon(lambda: all((told := board.statuses[row]) and told.last_updated == now for row in rows))
        return {name: self._assigned(name) for name in plan.twins.nodes}, plan

    def _assigned(self, name: str) -> Assigned:
        status = self._operator.state.twins[name].status
        assert status is not None
        assert status.effective_cap_state is not None
        caps = status.effective_cap_state
        assert caps.cpu_pct is not None
        return Assigned(status.schedulable_class or "", caps.cpu_pct, caps.gpu_pct)

    async def _known(self, name: str, condition: Callable[[Any], bool]) -> None:
        """Until operator and extender have heard of it."""
        key = f"{NAMESPACE}/{name}"
        states = (self._operator.state, self._extender.state)
        await _soon(lambda: all(condition(state.pods.get(key)) for state in states))


@pytest.fixture
def prompt_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extender takes each event as it comes instead of waiting for more: a test does one thing at a time."""
    monkeypatch.setattr(extender_process, "TOGETHER_S", {})


def best(scores: Mapping[str, int]) -> list[str]:
    """The nodes that kube-scheduler would draw from."""
    most = max(scores.values(), default=0)
    return sorted(name for name, points in scores.items() if points == most)


def _node_body(nodes: LabCluster, name: str) -> dict[str, Any]:
    node = nodes.nodes[name]
    capacity = {
        "cpu": f"{node.capacity_cores:g}",
        "nvidia.com/gpu": f"{node.capacity_nvidia_gpus:g}",
        "amd.com/gpu": f"{node.capacity_amd_gpus:g}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(node.labels)},
        "status": {"capacity": {key: value for key, value in capacity.items() if value != "0"}},
    }


def _wired(url: str, measured: bool) -> dict[str, str]:
    return {
        "OPERATOR_NODE_POWER_SOURCE": "http" if measured else "static",
        "OPERATOR_NODE_POWER_HTTP_ENDPOINT": f"{url}/telemetry/{{node}}",
        "FACILITY_PROMETHEUS_ADDRESS": url,
        "FACILITY_AMBIENT_TEMP_METRIC": AMBIENT,
        "FACILITY_IT_POWER_METRIC": IT,
        "FACILITY_COOLING_POWER_METRIC": COOLING,
        "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": f"{ZONE}:%s",
    }


@asynccontextmanager
async def _sensors_served(live: LiveCluster) -> AsyncIterator[str]:
    """Node power as the simulator tells it, the building as Prometheus does."""

    async def telemetry(request: web.Request) -> web.Response:
        power_w = live.sensors.power_w.get(request.match_info["node"])
        if power_w is None:
            return web.Response(status=404)
        return web.json_response({"packagePowerWatts": power_w, "ts": live.sensors.measured_at_s})

    async def query(request: web.Request) -> web.Response:
        if request.query.get("lookback_delta") == "none":
            return web.json_response({"status": "error", "error": "not a duration"}, status=400)
        value = live.sensors.value(request.query["query"])
        series = [] if value is None else [{"metric": {}, "value": [live.now_s, repr(value)]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": series}})

    app = web.Application()
    app.router.add_get("/telemetry/{node}", telemetry)
    app.router.add_get("/api/v1/query", query)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _soon(condition: Callable[[], bool]) -> None:
    """Nothing here takes longer than a few turns of the event loop."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
