"""What happens on the demo's day besides pods: weather, an agent that dies and comes back, somebody who pins a node."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from joulie.cluster.port import NODE_POWER_PROFILES, Cluster, NotFoundError
from joulie.demo.agents import DemoAgent
from joulie.demo.clock import DemoClock
from joulie.demo.day import AFTERNOON, HOTTEST_S, MORNING, NIGHT, Scene, outside_c
from joulie.demo.machines import LONELY_NODE, PINNED_NODE
from joulie.model.names import PERFORMANCE
from joulie.model.rfc3339 import format_time
from joulie.simulator.simulation import Simulation

DIES_S, RETURNS_S = 240.0, 1000.0  # of the day
PINNED_S, PIN_LASTS_S = 1050.0, 300.0
PIN = "demo-benchmark"
WEATHER_BEAT_S = 0.25  # real
TOLD = 6  # lines that the dashboard shows


class Beat(NamedTuple):
    """Something that happens at a time of the day, and what is said of it."""

    at_s: float
    line: str
    act: Callable[[], Awaitable[None]] | None = None


class Story:
    """Tells one line each: `tell` is called as it happens."""

    def __init__(
        self,
        cluster: Cluster,
        simulation: Simulation,
        own_agent: DemoAgent,
        clock: DemoClock,
        scene: Scene,
        tell: Callable[[str], None],
    ) -> None:
        self.lines: deque[str] = deque(maxlen=TOLD)
        self._cluster, self._simulation, self._agent = cluster, simulation, own_agent
        self._clock, self._scene, self._tell = clock, scene, tell

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._weather())
            tasks.create_task(self._beats())

    def notes(self) -> tuple[str, ...]:
        return tuple(self.lines)

    async def _weather(self) -> None:
        simulation = self._simulation
        while True:
            now_c = outside_c(self._scene.day_time_s(self._clock.elapsed_s))
            simulation.settings = replace(simulation.settings, outside_c=now_c)
            await asyncio.sleep(WEATHER_BEAT_S)

    async def _beats(self) -> None:
        passed = 0
        while True:
            for beat in self._day():
                if not self._scene.begins_s <= beat.at_s < self._scene.ends_s:
                    continue
                due_s = passed * self._scene.length_s + beat.at_s - self._scene.begins_s
                await asyncio.sleep(max(0.0, self._clock.real_s(due_s - self._clock.elapsed_s)))
                self.lines.append(beat.line)
                self._tell(beat.line)
                if beat.act is not None:
                    await beat.act()
            passed += 1
            await asyncio.sleep(max(0.0, self._clock.real_s(passed * self._scene.length_s - self._clock.elapsed_s)))

    def _day(self) -> list[Beat]:
        """In order of time."""
        minutes = PIN_LASTS_S / 60
        return [
            Beat(MORNING.begins_s, "Morning: people send work, and the nodes fill up."),
            Beat(
                DIES_S, f"The agent of {LONELY_NODE} dies. Its caps stay as they are, its reports grow old.", self._die
            ),
            Beat(AFTERNOON.begins_s, "Afternoon: it gets hot outside, and cooling has to work harder."),
            Beat(RETURNS_S, f"The agent of {LONELY_NODE} is back and takes up its target again.", self._return),
            Beat(
                PINNED_S,
                f"Somebody pins {PINNED_NODE} to full power for {minutes:g} minutes, for a benchmark.",
                self._pin,
            ),
            Beat(HOTTEST_S, f"The hottest moment: {outside_c(HOTTEST_S):.0f} °C outside."),
            Beat(PINNED_S + PIN_LASTS_S, f"The pin on {PINNED_NODE} has ended by itself; Joulie decides again."),
            Beat(NIGHT.begins_s, "Night: it cools down, and less work arrives."),
        ]

    async def _die(self) -> None:
        await self._agent.die()

    async def _return(self) -> None:
        if self._agent.task is None:
            self._agent.start()

    async def _pin(self) -> None:
        """As `joulie pin genoa-4 performance --for 5m` would."""
        body = {
            "metadata": {"name": PIN},
            "spec": {
                "nodeName": PINNED_NODE,
                "profile": PERFORMANCE,
                "expiresAt": format_time(self._clock.now_s() + PIN_LASTS_S),
            },
        }
        with suppress(NotFoundError):
            await self._cluster.delete(NODE_POWER_PROFILES, PIN)  # of the day before
        await self._cluster.create(NODE_POWER_PROFILES, body)
