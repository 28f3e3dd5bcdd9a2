"""What happens on the demo's day besides pods: weather, an agent that dies, a pinned node, a feed that is cut."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from joulie.cluster.port import NODE_POWER_PROFILES, Cluster, NotFoundError
from joulie.demo.live.agents import DemoAgent
from joulie.demo.live.clock import DemoClock
from joulie.demo.live.feeds import DemoFeeds
from joulie.demo.scenario.day import AFTERNOON, FEED_CUT, HOTTEST_S, MORNING, NIGHT, DemoScene, outside_c
from joulie.demo.scenario.feed_words import kw
from joulie.demo.scenario.feeds import BACK_S, CLUSTER_W, CUT_FEED, CUT_PCT, CUT_S, CUT_W, FEED_W
from joulie.demo.scenario.machines import LONELY_NODE, PINNED_NODE
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


class StoryLines:
    """What was said last, for the dashboard; `tell` is called with each line as it is said."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._lines: deque[str] = deque(maxlen=TOLD)
        self._tell = tell

    def say(self, line: str) -> None:
        self._lines.append(line)
        self._tell(line)

    def notes(self) -> tuple[str, ...]:
        return tuple(self._lines)


class DemoStory:
    """`say` is called with a line for each event as it happens."""

    def __init__(
        self,
        cluster: Cluster,
        simulation: Simulation,
        own_agent: DemoAgent,
        feeds: DemoFeeds,
        clock: DemoClock,
        scene: DemoScene,
        say: Callable[[str], None],
    ) -> None:
        self._cluster, self._simulation, self._agent, self._feeds = cluster, simulation, own_agent, feeds
        self._clock, self._scene, self._say = clock, scene, say

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._weather())
            tasks.create_task(self._beats())

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
                self._say(beat.line)
                if beat.act is not None:
                    await beat.act()
            passed += 1
            await asyncio.sleep(max(0.0, self._clock.real_s(passed * self._scene.length_s - self._clock.elapsed_s)))

    def _day(self) -> list[Beat]:
        """In order of time."""
        minutes = PIN_LASTS_S / 60
        has_died = self._scene.begins_s <= DIES_S
        limits = f"{kw(FEED_W)} for each of two feeds, {kw(CLUSTER_W)} for all nodes"
        cut = f"The utility cuts feed {CUT_FEED} by {CUT_PCT:g} %, from {kw(FEED_W)} to {kw(CUT_W)}."
        return [
            Beat(MORNING.begins_s, "Morning: people send work, and the nodes fill up."),
            Beat(
                DIES_S, f"The agent of {LONELY_NODE} dies. Its caps stay as they are, its reports grow old.", self._die
            ),
            Beat(FEED_CUT.begins_s, f"Power budgets hold: {limits}. Caps never add up to more."),
            Beat(AFTERNOON.begins_s, "Afternoon: it gets hot outside, and cooling has to work harder."),
            *(
                [Beat(RETURNS_S, f"The agent of {LONELY_NODE} is back and takes up its target again.", self._return)]
                if has_died
                else []
            ),
            Beat(
                PINNED_S,
                f"An administrator pins {PINNED_NODE} to full power for {minutes:g} minutes, for a benchmark.",
                self._pin,
            ),
            Beat(CUT_S, f"{cut} Its nodes are capped lower at once.", self._feeds.cut),
            Beat(HOTTEST_S, f"The hottest moment: {outside_c(HOTTEST_S):.0f} °C outside."),
            Beat(PINNED_S + PIN_LASTS_S, f"The pin on {PINNED_NODE} has ended by itself; Joulie decides again."),
            Beat(BACK_S, f"Feed {CUT_FEED} has its {kw(FEED_W)} back; watts are shared again.", self._feeds.give_back),
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
