"""The feeds of the live demo: their power budgets, the cut of one of them, and what the plant shows meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from joulie.cluster.decoding import decoders
from joulie.cluster.port import NODE_TWINS, POWER_BUDGETS, Cluster
from joulie.cluster.watch.listing import listed
from joulie.control.budget.messages import confirmation_in
from joulie.demo.live.clock import DemoClock
from joulie.demo.scenario.feed_meter import FeedCut, FeedMeter
from joulie.demo.scenario.feed_words import cut_words, kw
from joulie.demo.scenario.feeds import CUT_FEED, CUT_W, FEEDS_BUDGET, budget_manifest, budget_specs, cut_spec
from joulie.demo.scenario.machines import places
from joulie.demo.scenario.progress import Progress
from joulie.simulator.simulation import Simulation

BEAT_S = 0.05  # real
ASK_S = 0.25  # real, between two looks for agents


class DemoFeeds:
    """`tell` is called when a cut is in force on every device, and with what it was once it is over."""

    def __init__(
        self,
        cluster: Cluster,
        simulation: Simulation,
        progress: Progress,
        clock: DemoClock,
        tell: Callable[[str], None],
    ) -> None:
        self._cluster, self._simulation, self._clock, self._tell = cluster, simulation, clock, tell
        self._meter = FeedMeter(simulation, progress)
        self._limited = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._limit())
            tasks.create_task(self._watch())

    async def cut(self) -> None:
        """As `kubectl edit powerbudget feeds` would."""
        await self._limited.wait()
        self._meter.cut(self._clock.elapsed_s)
        await self._edit(is_cut=True)

    async def give_back(self) -> None:
        now_s = self._clock.elapsed_s
        await self._edit(is_cut=False)
        if (seen := self._meter.give_back(now_s)) is not None:
            self._tell(cut_words(seen))

    def cuts(self) -> list[FeedCut]:
        """All cuts so far, also one that is going on."""
        going_on = self._meter.cut_now(self._clock.elapsed_s)
        return [*self._meter.cuts, *([] if going_on is None else [going_on])]

    async def _edit(self, *, is_cut: bool) -> None:
        await self._cluster.patch(POWER_BUDGETS, FEEDS_BUDGET, {"spec": cut_spec(is_cut=is_cut)})

    async def _limit(self) -> None:
        """Once every agent has said what holds its node: before that, nodes would have to go to their floors."""
        while not await self._all_agents_spoke():
            await asyncio.sleep(ASK_S)
        for name, spec in budget_specs().items():
            await self._cluster.create(POWER_BUDGETS, budget_manifest(name, spec))
        self._limited.set()

    async def _all_agents_spoke(self) -> bool:
        twins = await listed(self._cluster, NODE_TWINS, decoders.decode_twin)
        return sum(confirmation_in(each.object) is not None for each in twins) >= len(places())

    async def _watch(self) -> None:
        seen_s = self._simulation.elapsed_s
        while True:
            await asyncio.sleep(BEAT_S)
            was_in_force, now_s = self._meter.is_in_force, self._clock.elapsed_s
            passed_s, seen_s = self._simulation.elapsed_s - seen_s, self._simulation.elapsed_s
            if passed_s:
                self._meter.step(now_s, passed_s)
            else:
                self._meter.look(now_s)
            if self._meter.is_in_force and not was_in_force:
                self._say_in_force(now_s)

    def _say_in_force(self, now_s: float) -> None:
        seen = self._meter.cut_now(now_s)
        assert seen is not None
        assert seen.in_force_s is not None
        took_s = self._clock.real_s(seen.in_force_s)
        self._tell(f"In force after {took_s:.1f} s: the caps on feed {CUT_FEED} add up to no more than {kw(CUT_W)}.")
