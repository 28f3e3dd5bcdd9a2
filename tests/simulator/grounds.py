"""Small simulated clusters, and how to ask them over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from joulie.model.snapshot import Node, Pod
from joulie.settings import SimulatorSettings, load
from joulie.simulator.process import serving
from joulie.simulator.simulation import Simulation

Json = Any
START_S = 1_800_000_000.0


class Clock:
    """A wall clock that moves when told to."""

    def __init__(self, now_s: float = START_S) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def node(
    name: str, gpus: int = 0, *, cpu: str = "EPYC-9654", gpu: str = "H100-SXM", rack: str = "", zone: str = ""
) -> Node:
    shown = {"managed": "true", "hw.cpu-model": cpu, "hw.cpu-sockets": "2", "rack": rack, "cooling-zone": zone}
    if gpus:
        shown |= {"hw.gpu-model": gpu, "hw.gpu-count": str(gpus)}
    named = {f"joulie.io/{key}": value for key, value in shown.items()}
    return Node(name, named, capacity_cores=192.0, capacity_nvidia_gpus=float(gpus))


def pod(name: str, on: str, cpu: float = 8.0, gpus: float = 0.0, *, performance: bool = False, **more: Any) -> Pod:
    return Pod("team", name, on, "performance" if performance else "standard", cpu, gpus, **more)


def simulation(*nodes: Node, clock: Callable[[], float] | None = None, **env: str) -> Simulation:
    """Without noise unless asked for."""
    made = Simulation(load(SimulatorSettings, {"SIM_NOISE_PCT": "0", **env}), clock=clock or Clock())
    for each in nodes or (node("cpu-1"), node("gpu-1", 4)):
        made.put_node(each)
    made.settle_changes()
    return made


class Answer(NamedTuple):
    status: int
    body: Json  # decoded where it is JSON
    text: str


class Client:
    """Asks a simulator as an agent would."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str, **query: str) -> Answer:
        async with self.session.get(self.url + path, params=query) as response:
            return await _answer(response)

    async def post(self, path: str, body: Json) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self.url + path, data=data) as response:
            return await _answer(response)

    async def control(self, name: str, action: str, **value: float | None) -> Answer:
        return await self.post(f"/control/{name}", {"node": name, "action": action, **value, "ts": START_S})

    async def fault(self, name: str, **fault: Json) -> Answer:
        return await self.post(f"/debug/faults/{name}", fault)


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    text = await response.text()
    return Answer(response.status, json.loads(text) if "json" in response.content_type else None, text)


@asynccontextmanager
async def asking(of: Simulation, **how: Any) -> AsyncIterator[Client]:
    """A client of a simulator that steps only when it is told to."""
    async with serving(of, **({"paced": False} | how)) as running, aiohttp.ClientSession() as session:
        yield Client(session, running.url)


def play(of: Simulation, story: Callable[[Client], Awaitable[None]], **how: Any) -> None:
    """Run a story against a served simulation."""

    async def main() -> None:
        async with asking(of, **how) as client:
            await story(client)

    run(main())


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)
