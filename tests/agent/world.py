"""A cluster in memory, simulated machines behind HTTP, and agents on them, all in one event loop."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from joulie.agent import process
from joulie.agent.process import run
from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding import decoders
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES, Resource
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.log import ContactLog
from joulie.model.rfc3339 import format_time
from joulie.settings import AgentSettings, SimulatorSettings, load
from joulie.simulator.process import serving
from joulie.simulator.simulation import Simulation
from testbed.processes import free_port

Body = dict[str, Any]
_SERIES = re.compile(r"^(joulie_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def node(name: str, gpus: int = 0, **labels: str) -> Body:
    """A managed node with two EPYC 9654, and H100s if told so."""
    shown = {"managed": "true", "hw.cpu-model": "EPYC-9654", "hw.cpu-sockets": "2"}
    if gpus:
        shown |= {"hw.gpu-model": "H100-SXM", "hw.gpu-count": str(gpus)}
    named = {f"joulie.io/{key}": value for key, value in (shown | labels).items()}
    return {"metadata": {"name": name, "labels": named, "uid": f"uid-{name}"}, "status": {"capacity": {"cpu": "192"}}}


def twin(name: str, cpu_pct: float = 60, gpu_pct: float | None = None, age_s: float = 0.0, **spec: Any) -> Body:
    """As the operator writes it."""
    profile = "performance" if cpu_pct >= 100 else "eco"
    gpu = {} if gpu_pct is None else {"gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": gpu_pct}}}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": name,
            "profile": profile,
            "cpu": {"packagePowerCapPctOfMax": cpu_pct},
            "policy": {"name": "static_partition"},
            **gpu,
            **spec,
        },
        "status": {"schedulableClass": profile, "lastUpdated": format_time(time.time() - age_s)},
    }


def put_twin(server: MemoryServer, body: Body) -> None:
    """Keeps what an agent has written."""
    before = next((one for one in server.all(NODE_TWINS) if one["metadata"]["name"] == body["metadata"]["name"]), None)
    kept = (before or {}).get("status", {}).get("controlStatus")
    status = {**body["status"], **({"controlStatus": kept} if kept else {})}
    server.put(NODE_TWINS, {**body, "status": status}, "")


class World:
    """What a test looks at and changes."""

    def __init__(self, server: MemoryServer, simulation: Simulation, sim_url: str, state_dir: Path) -> None:
        self.server = server
        self.simulation = simulation
        self.sim_url = sim_url
        self.state_dir = state_dir

    def add(self, *bodies: Body) -> None:
        """Nodes, in the cluster and as machines."""
        for body in bodies:
            stored = self.server.put(NODES, body, "")
            self.simulation.put_node(decoders.decode_node(stored.encoded))
        self.simulation.settle_changes()

    def control(self, name: str) -> Body:
        """What the twin says became of its caps."""
        found = self.get(NODE_TWINS, name) or {}
        status: Body = found.get("status", {}).get("controlStatus") or {}
        return status

    def get(self, resource: Resource, name: str) -> Body | None:
        return next((one for one in self.server.all(resource) if one["metadata"]["name"] == name), None)

    def cpu_cap_w(self, name: str) -> float | None:
        """What the machine itself is held to."""
        at, cpus = self.simulation.index[name], self.simulation.fleet.cpus
        return float(cpus.cap_target_w[at]) if cpus.cap_is_set[at] else None

    def throttle_pct(self, name: str) -> float:
        return float(self.simulation.fleet.cpus.throttle_target_pct[self.simulation.index[name]])

    def gpu_cap_w(self, name: str) -> float | None:
        at = self.simulation.fleet.boards_of(self.simulation.index[name])
        gpus = self.simulation.fleet.gpus
        return float(gpus.cap_target_w[at][0]) if gpus.cap_is_set[at][0] else None

    def env(self, **more: str) -> dict[str, str]:
        return {
            "AGENT_MODE": "pool",
            "RECONCILE_INTERVAL": "200ms",
            "STATE_DIR": str(self.state_dir),
            "TELEMETRY_CPU_CONTROL": "http",
            "TELEMETRY_GPU_CONTROL": "http",
            "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": f"{self.sim_url}/control/{{node}}",
            "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT": f"{self.sim_url}/control/{{node}}",
            "DVFS_COOLDOWN": "0",
            **more,
        }


@asynccontextmanager
async def world(tmp_path: Path, *bodies: Body, paced: bool = False) -> AsyncIterator[World]:
    """Machines that keep still unless `paced`; what is capped shows at once."""
    simulation = Simulation(load(SimulatorSettings, {"SIM_NOISE_PCT": "0"}))
    async with serving(simulation, "127.0.0.1:0", cluster=None, paced=paced) as running:
        around = World(MemoryServer(), simulation, running.url, tmp_path / "state")
        around.add(*bodies)
        yield around


class Running:
    """An agent under way."""

    def __init__(self, url: str, task: asyncio.Task[int], stop: asyncio.Event, cluster: MemoryCluster) -> None:
        self.url = url
        self.task = task
        self.stop = stop
        self.cluster = cluster

    async def metrics(self, *awaited: tuple[str, str]) -> dict[tuple[str, str], float]:
        """All series, once those that are awaited are among them: they follow the tick that brings them about."""
        found: dict[tuple[str, str], float] = {}

        async def there() -> bool:
            try:
                async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as answer:
                    series = _SERIES.findall(await answer.text())
            except aiohttp.ClientConnectionError:
                return False  # it does not listen yet
            found.clear()
            found.update({(name, labels): float(value) for name, labels, value in series})
            return all(key in found for key in awaited)

        await until(there, f"there is {awaited}")
        return found

    async def end(self) -> int:
        self.stop.set()
        return await self.task

    async def kill(self) -> None:
        """As by kill -9, as far as one can have it inside of one process: nothing is put back, no last words."""
        kept, process._end = process._end, _no_end  # type: ignore[assignment]
        try:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        finally:
            process._end = kept


async def _no_end(_pool: object, _reporter: object, tasks: list[asyncio.Task[None]], *_: object) -> list[str]:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return []


@asynccontextmanager
async def agent(
    server: MemoryServer, env: Mapping[str, str], *, host: HostDevices | None = None, bookmark_s: float = 0.2
) -> AsyncIterator[Running]:
    port = free_port()
    settings = load(AgentSettings, {"METRICS_ADDR": f"127.0.0.1:{port}", **env})
    contact, stop = ContactLog("agent"), asyncio.Event()
    cluster = MemoryCluster(
        server, observer=contact, bookmark_interval_s=bookmark_s, backoff=lambda: Backoff(0.02, 0.2)
    )
    task = asyncio.create_task(
        run(cluster, contact, settings, Catalogue(), reporter_name="test", stop=stop, host=host, put_back_s=5.0)
    )
    running = Running(f"http://127.0.0.1:{port}", task, stop, cluster)
    try:
        yield running
    finally:
        stop.set()
        async with asyncio.timeout(20):
            await asyncio.gather(task, return_exceptions=True)
        await cluster.close()


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, timeout_s: float = 20.0) -> None:
    """Wait for it; a test that never sees it fails with these words."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if await answer if isinstance(answer, Awaitable) else answer:
            return
        if time.monotonic() > deadline_s:
            raise AssertionError(f"after {timeout_s:g} s still not: {what}")
        await asyncio.sleep(0.02)


def scenario(coroutine: Any, timeout_s: float = 60.0) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(timeout_s):
            await coroutine

    asyncio.run(bounded())
