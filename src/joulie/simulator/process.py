"""The simulator as a running process, or inside another one: watches, steps in real time, and HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from joulie.cluster.decoding import decoders
from joulie.cluster.port import NODES, PODS, Cluster, Decode, Deleted, Resource, Synced, Undecodable, Upserted
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.model.snapshot import Snapshot
from joulie.serving import ConnectionLimits, app_server
from joulie.simulator.api import simulator_routes
from joulie.simulator.simulation import Simulation

VARIABLE = "SIM_ADDR"
MAX_STEPS_AT_ONCE = 20  # a longer gap is closed by one long step
MISSED_STEPS = 10  # a simulator that has not stepped for so many steps, and so many seconds, is not healthy
LATEST_S = 10.0


class ClusterFeed:
    """Nodes and pods of a cluster, as they come and go."""

    def __init__(self, cluster: Cluster, simulation: Simulation) -> None:
        self._cluster = cluster
        self._simulation = simulation
        self._log = Log("simulator")
        self._synced: set[Resource] = set()

    @property
    def synced(self) -> bool:
        return self._synced == {NODES, PODS}

    async def run(self) -> None:
        """Until it is cancelled."""
        simulation = self._simulation
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._follow(
                    NODES, decoders.decode_node, lambda _, node: simulation.put_node(node), simulation.drop_node
                )
            )
            tasks.create_task(self._follow(PODS, decoders.decode_pod, simulation.put_pod, simulation.drop_pod))

    async def _follow(
        self, resource: Resource, decode: Decode[Any], put: Callable[[str, Any], None], drop: Callable[[str], None]
    ) -> None:
        async for changes in self._cluster.watch(resource, decode):
            for change in changes:
                match change:
                    case Upserted(key, value):
                        put(key, value)
                    case Deleted(key):
                        drop(key)
                    case Undecodable(key, reason):
                        drop(key)
                        self._log.warning("object cannot be read", kind=resource.kind, name=key, reason=reason)
                    case Synced():
                        self._synced.add(resource)


def take(simulation: Simulation, snapshot: Snapshot) -> None:
    """Nodes and pods from files."""
    for node in snapshot.nodes.values():
        simulation.put_node(node, snapshot.hardware.get(node.name))
    for pod in snapshot.pods:
        simulation.put_pod(f"{pod.namespace}/{pod.name}", pod)


class Pacer:
    """Steps a simulation so that its time keeps up with the clock's, times SIM_SPEED."""

    def __init__(self, simulation: Simulation, clock: Callable[[], float] = time.monotonic) -> None:
        self._simulation = simulation
        self._clock = clock
        self._start_s = clock()
        self._elapsed_at_start_s = simulation.elapsed_s

    @property
    def behind_s(self) -> float:
        """Simulated time that is due and not done yet."""
        due_s = (self._clock() - self._start_s) * self._simulation.settings.speed
        return due_s - (self._simulation.elapsed_s - self._elapsed_at_start_s)

    def catch_up(self) -> None:
        """All whole steps that are due; what is more than a handful in one."""
        step_s = self._simulation.settings.step_s
        due = int(self.behind_s / step_s + 1e-9)
        if due > MAX_STEPS_AT_ONCE:
            self._simulation.step((due - MAX_STEPS_AT_ONCE) * step_s)
            due = MAX_STEPS_AT_ONCE
        for _ in range(due):
            self._simulation.step(step_s)

    async def run(self) -> None:
        """Until it is cancelled."""
        settings = self._simulation.settings
        while True:
            self.catch_up()
            await asyncio.sleep(max(0.001, (settings.step_s - self.behind_s) / settings.speed))

    def sick(self) -> str | None:
        settings = self._simulation.settings
        late_s = self.behind_s / settings.speed
        limit_s = max(LATEST_S, MISSED_STEPS * settings.step_s / settings.speed)
        return f"{late_s:.0f} s behind the clock" if late_s > limit_s else None


class Running(NamedTuple):
    """A simulator that answers, and the tasks that keep it going."""

    url: str
    tasks: tuple[asyncio.Task[None], ...]


@asynccontextmanager
async def serving(
    simulation: Simulation, address: str = "127.0.0.1:0", *, cluster: Cluster | None = None, paced: bool = True
) -> AsyncIterator[Running]:
    """A running simulator inside this event loop. Without `paced` the caller steps it."""
    feed = None if cluster is None else ClusterFeed(cluster, simulation)
    pacer = Pacer(simulation)
    routes = simulator_routes(
        simulation,
        healthy=pacer.sick if paced else lambda: None,
        ready=lambda: None if feed is None or feed.synced else "not all nodes and pods are known yet",
    )
    server = app_server(routes, ConnectionLimits(connections=simulation.settings.max_connections))
    tasks: list[asyncio.Task[None]] = []
    try:
        await server.start(address, VARIABLE)
        tasks += [asyncio.create_task(feed.run())] if feed is not None else []
        tasks += [asyncio.create_task(pacer.run())] if paced else []
        host = address.rpartition(":")[0] or "127.0.0.1"
        yield Running(f"http://{host}:{server.addresses[0][1]}", tuple(tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.cleanup()


async def run(simulation: Simulation, cluster: Cluster | None = None) -> int:
    """Until SIGTERM or SIGINT; exit code 0."""
    stop = stop_on_signals()

    async def until_stopped() -> None:
        await stop.wait()

    settings = simulation.settings
    async with serving(simulation, settings.addr, cluster=cluster) as running:
        Log("simulator").info("simulated hardware answers", address=settings.addr, speed=settings.speed)
        await first_to_end(asyncio.create_task(until_stopped()), *running.tasks)
    return 0
