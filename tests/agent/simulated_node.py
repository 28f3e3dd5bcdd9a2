"""A simulated node behind HTTP, served by a thread, and agents that live and die in front of it."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.journal import POOL_BOOT_ID, Journal, journal_path
from joulie.devices.http.capper import HttpGpus, HttpThrottle, HttpWatts
from joulie.devices.http.client import HttpClient, HttpNode
from joulie.settings import DvfsSettings
from joulie.simulator.process import serving
from joulie.simulator.simulation import Simulation

T = TypeVar("T")
NODE = "gpu-1"
LIMITS = CapLimits(cpu_max_w=800.0, gpu_max_w_each=700.0)


class Caps(NamedTuple):
    """What the simulated devices were told; None: no limit."""

    cpu_w: float | None
    throttle_pct: float
    gpu_w: float | None


UNCAPPED = Caps(None, 0.0, None)


class SimulatedNode:
    """The node, as an agent and as a test see it."""

    def __init__(self, url: str, state_dir: Path) -> None:
        self.url = url
        self.state_dir = state_dir

    @property
    def caps(self) -> Caps:
        with urllib.request.urlopen(f"{self.url}/telemetry/{NODE}", timeout=10) as answer:
            told = json.loads(answer.read())
        return Caps(told["cpu"]["capWatts"], told["cpu"]["throttlePct"], told["gpu"]["capWattsPerGpuTarget"])

    def set(self, caps: Caps) -> None:
        self._control("rapl.set_power_cap_watts", capWatts=caps.cpu_w)
        self._control("dvfs.set_throttle_pct", throttlePct=caps.throttle_pct)
        self._control("gpu.set_power_cap_watts", capWattsPerGpu=caps.gpu_w)

    def fault(self, **fault: object) -> None:
        self._post(f"/debug/faults/{NODE}", fault)

    def life(self, work: Callable[[NodeControl], Awaitable[T]]) -> T:
        """A new agent process's worth of work on this node."""

        async def live() -> T:
            async with HttpClient() as client:
                at = HttpNode(client, f"{self.url}/control/{NODE}")
                cappers = [HttpWatts(at, NODE), HttpThrottle(at, NODE), HttpGpus(at, NODE)]
                for capper in cappers:
                    await capper.discover()
                journal = Journal.open(journal_path(self.state_dir, NODE), node=NODE, boot_id=POOL_BOOT_ID)
                return await work(
                    NodeControl(NODE, cappers, journal, dvfs=DvfsSettings(), cpu_power=cappers[0].power_w)
                )

        return asyncio.run(live())

    def _control(self, action: str, **value: float | None) -> None:
        self._post(f"/control/{NODE}", {"node": NODE, "action": action, **value})

    def _post(self, path: str, body: object) -> None:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200


@contextmanager
def served(simulation: Simulation, state_dir: Path) -> Iterator[SimulatedNode]:
    """The simulation answers from a thread of its own until the test is done."""
    started: threading.Event = threading.Event()
    urls: list[str] = []
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with serving(simulation, paced=False) as running:
            urls.append(running.url)
            started.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield SimulatedNode(urls[0], state_dir)
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(30)
        loop.close()
