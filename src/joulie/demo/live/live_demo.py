"""The live demo: cluster, simulator, operator, agents, extender, scheduler and story in one process and event loop.

Each talks to the others as in a real installation: to the cluster through its port, to hardware, extender and
facility over HTTP on this machine.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.memory.server import MemoryServer
from joulie.cluster.port import NODES
from joulie.cluster.watch.log import ContactLog
from joulie.demo.live.agents import DemoAgent
from joulie.demo.live.clock import DemoClock
from joulie.demo.live.feeds import DemoFeeds
from joulie.demo.live.interface import DemoMeasurements, DemoOptions, DemoView
from joulie.demo.live.operator import DemoOperator
from joulie.demo.live.scheduler import DemoScheduler
from joulie.demo.live.story import DemoStory, StoryLines
from joulie.demo.live.workload import Workload
from joulie.demo.replay.results import facility_kwh, it_kwh
from joulie.demo.scenario.day import part_of_day
from joulie.demo.scenario.facility import demo_simulation
from joulie.demo.scenario.machines import node_manifests, places
from joulie.demo.scenario.placement import FreeRoom
from joulie.demo.settings import (
    DemoPorts,
    agent_settings,
    extender_settings,
    local,
    operator_settings,
    simulator_settings,
)
from joulie.extender.process import Extender
from joulie.extender.process import run as run_extender
from joulie.overview.budgets import budget_views
from joulie.overview.findings import FindingThresholds
from joulie.overview.nodes import node_views
from joulie.overview.summary import cluster_view
from joulie.simulator.process import serving
from joulie.sources.facility import power_usage_effectiveness


class LiveDemo:
    """Everything that runs; `run` starts it and ends it."""

    def __init__(
        self, options: DemoOptions, ports: DemoPorts, env: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        self.ports = ports
        self._options, self._env = options, env
        self._clock = DemoClock(options.speed)
        self._server = MemoryServer(clock=self._clock.now_s)
        self._cluster = MemoryCluster(self._server)  # the users' and the kubelets'
        for manifest in node_manifests():
            self._cluster.put(NODES, manifest)
        settings = simulator_settings(env, options.speed, options.seed)
        self._simulation = demo_simulation(settings, self._clock.now_s)
        self._simulator_url = f"http://{local(ports.simulator)}"
        self._workload = Workload(self._cluster, self._simulation, self._clock, options.seed, options.scene)
        self._scheduler = DemoScheduler(
            MemoryCluster(self._server),
            f"http://{local(ports.extender)}",
            FreeRoom(places()),
            self._workload.job,
            self._clock.now_s,
            self._workload.started,
        )
        self._state_dir = tempfile.TemporaryDirectory(prefix="joulie-demo-")
        own_agent = self._agent("own", ports.own_agent, None)
        self._agents = [own_agent, *(self._agent(f"pool-{n}", port, n) for n, port in enumerate(ports.pool))]
        lines = StoryLines(tell)
        self._feeds = DemoFeeds(self._cluster, self._simulation, self._workload.progress, self._clock, lines.say)
        self._story = DemoStory(
            self._cluster, self._simulation, own_agent, self._feeds, self._clock, options.scene, lines.say
        )
        decision = operator_settings(env, options.policy, options.speed, ports.operator, self._simulator_url)
        self._operator = DemoOperator(
            self._server, decision, self._clock.now_s, lines.notes, lambda: self._simulation.facility
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`, or until the first part fails; then all parts end in order, hardware last."""
        end = asyncio.Event()
        async with AsyncExitStack() as ending:
            ending.callback(self._state_dir.cleanup)
            ending.push_async_callback(self._cluster.close)
            simulator = await ending.enter_async_context(
                serving(self._simulation, local(self.ports.simulator), cluster=MemoryCluster(self._server))
            )
            operator = asyncio.create_task(self._operator.run(end, self.ports.dashboard))
            extender = asyncio.create_task(self._run_extender(end))
            agents = [agent.start() for agent in self._agents][1:]  # the first one may die: the story kills it
            parts = (self._scheduler, self._workload, self._feeds, self._story)
            drivers = [asyncio.create_task(part.run()) for part in parts]
            stopped = asyncio.create_task(stop.wait())
            watched: set[asyncio.Task[Any]] = {operator, extender, stopped, *agents, *drivers, *simulator.tasks}
            try:
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            finally:
                failed = [task for task in watched - {stopped} if task.done() and not task.cancelled()]
                for task in (stopped, *drivers):
                    task.cancel()
                await asyncio.gather(stopped, *drivers, return_exceptions=True)
                end.set()
                await asyncio.gather(operator, extender, return_exceptions=True)
                await asyncio.gather(*(agent.end() for agent in self._agents))
            for task in failed:
                task.result()

    def look(self) -> DemoView | None:
        """None until the first decision is written."""
        snapshot = self._operator.snapshot()
        if not snapshot.twins:
            return None
        now_s, facility = self._clock.now_s(), self._simulation.facility
        nodes = node_views(snapshot, self._operator.settings.decision.plan, now_s)
        managed = [name for name, node in nodes.items() if node.managed]
        budgets = budget_views(self._operator.budgets(), snapshot.nodes, managed)
        it_w, cooling_w = facility.it_w, float(facility.cooling.electricity_w.sum())
        return DemoView(
            elapsed_s=self._clock.elapsed_s,
            part=part_of_day(self._options.scene.day_time_s(self._clock.elapsed_s)),
            cluster=cluster_view(nodes.values(), self._operator.facts(), now_s, FindingThresholds(), budgets=budgets),
            nodes=nodes,
            running=len(self._workload.progress.running),
            waiting=len(self._scheduler.waiting),
            done=len(self._workload.finished),
            inlet_c=float(facility.inlet_c.max()),
            outside_c=self._simulation.settings.outside_c,
            pue=power_usage_effectiveness(it_w, cooling_w),
        )

    def measured(self) -> DemoMeasurements:
        work = self._workload
        return DemoMeasurements(
            elapsed_s=self._simulation.elapsed_s,
            cuts=self._feeds.cuts(),
            it_kwh=it_kwh(self._simulation),
            facility_kwh=facility_kwh(self._simulation),
            done=len(work.finished),
            running=len(work.progress.running),
            waiting=len(self._scheduler.waiting),
            core_hours=work.core_hours,
            gpu_hours=work.gpu_hours,
            slowdown_p50=work.slowdown(50),
            slowdown_p99=work.slowdown(99),
        )

    def _agent(self, name: str, port: int, shard: int | None) -> DemoAgent:
        state_dir = str(Path(self._state_dir.name, name))
        settings = agent_settings(self._env, self._options.speed, port, self._simulator_url, state_dir, shard)
        return DemoAgent(f"joulie-agent-{name}", self._server, settings, self._clock, self._simulator_url)

    async def _run_extender(self, end: asyncio.Event) -> None:
        log = ContactLog("extender")
        cluster = MemoryCluster(self._server, observer=log)
        settings = extender_settings(self._env, self.ports.extender)
        try:
            await run_extender(Extender(settings, Catalogue(), self._clock.now_s), settings, cluster, log, stop=end)
        finally:
            await cluster.close()
