"""The demo's agents: one for a pool of nodes, and one for a single node, which the story kills."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from joulie.agent.process import run
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.memory.server import MemoryServer
from joulie.cluster.watch.log import ContactLog
from joulie.demo.live.clock import DemoClock
from joulie.demo.scenario.machines import LONELY_NODE
from joulie.demo.settings import look_s
from joulie.egress import NO_REDIRECTS
from joulie.model.names import AGENT_MANAGER
from joulie.settings import AgentSettings

PUT_BACK_S = 5.0  # more than enough on this machine; also how long a dying agent tries in vain


class DemoAgent:
    """One agent process, which can be started again."""

    def __init__(
        self, name: str, server: MemoryServer, settings: AgentSettings, clock: DemoClock, simulator_url: str
    ) -> None:
        self._name, self._server, self._settings, self._clock = name, server, settings, clock
        self._simulator_url = simulator_url
        self._cluster = MemoryCluster(server, field_manager=AGENT_MANAGER)
        self._stop = asyncio.Event()
        self.task: asyncio.Task[int] | None = None

    def start(self) -> asyncio.Task[int]:
        Path(self._settings.state_dir).mkdir(exist_ok=True)
        contact = ContactLog("agent")
        self._cluster = MemoryCluster(self._server, field_manager=AGENT_MANAGER, observer=contact)
        self._stop = asyncio.Event()
        self.task = asyncio.create_task(
            run(
                self._cluster,
                contact,
                self._settings,
                Catalogue(),
                reporter_name=self._name,
                stop=self._stop,
                put_back_s=PUT_BACK_S,
                wall=self._clock.now_s,
                look_s=look_s(self._clock.speed),
            )
        )
        return self.task

    async def end(self) -> None:
        """A clean shutdown: every device is restored."""
        self._stop.set()
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)
        await self._cluster.close()

    async def die(self) -> None:
        """As by `kill -9`: nothing is restored or reported, so its caps stay and its reports age.

        It loses contact, and its one last attempt, to restore its devices, is refused.
        """
        if self.task is None:
            return
        self._cluster.cut_off()
        async with aiohttp.ClientSession() as session:
            await self._fault(session, "blocked")
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            await self._fault(session, "none")
        await self._cluster.close()
        self.task = None

    async def _fault(self, session: aiohttp.ClientSession, fault: str) -> None:
        url = f"{self._simulator_url}/debug/faults/{LONELY_NODE}"
        async with session.post(url, json={"fault": fault}, allow_redirects=NO_REDIRECTS) as response:
            response.raise_for_status()
