"""A group's meter in the budget loop: it cuts, it is missed when it is lost, and what it took outlives a leader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from joulie.cluster.port import POWER_BUDGETS
from joulie.operator.budget.asking import Question
from joulie.sources import budget_readings
from joulie.sources.budget_readings import SignalReader
from joulie.sources.transport import SourceError
from tests.operator.budget.stage import Stage, staged
from tests.operator.clusters import Ground, MemoryGround
from tests.operator.harness import Play, Scene, play_out
from tests.sources.loopback import Clock, FakePrometheus, hang, series, serving
from tests.support.small_clusters import NOW


async def no_config_map(*_: str) -> str:
    raise SourceError("there is none")


class Metered:
    """A stage whose budget has a meter that the test reads out."""

    def __init__(self, scene: Scene, play: Play, server: FakePrometheus, clock: Clock, address: str) -> None:
        self.server, self.clock = server, clock
        self.reader = SignalReader(address, no_config_map, clock)
        self.stage = Stage(scene, play, self.reader)

    async def settle(self, shows_w: float | None, turns: int = 6) -> None:
        self.server.answers["feed_watts"] = [] if shows_w is None else [series(shows_w)]
        for _ in range(turns):
            self.clock.now_s = self.stage.play.now_s + 5.0
            await self.stage.turn()
            await self.stage.agents.follow()

    def new_leader(self) -> None:
        """Another process, which remembers nothing."""
        self.stage.play.terms += 1
        self.stage = Stage(self.stage.scene, self.stage.play, self.reader)

    async def group(self) -> dict[str, Any]:
        status = (await self.stage.scene.person.all(POWER_BUDGETS))["feed"]["status"]
        (group,) = status["groups"]
        found: dict[str, Any] = group
        return found


def metered(ground: Ground, scenario: Callable[[Metered], Awaitable[None]]) -> None:
    async def whole(scene: Scene) -> None:
        clock = Clock(NOW)
        server = FakePrometheus(clock)
        async with serving(server) as address, staged(scene) as stage:
            await scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"meter": {"query": "feed_watts"}}})
            there = Metered(scene, stage.play, server, clock, address)
            try:
                await scenario(there)
            finally:
                await there.reader.close()

    play_out(ground, whole)


def test_a_meter_above_the_limit_cuts_all_caps_while_the_limit_stays_what_it_is(ground: Ground) -> None:
    async def scenario(there: Metered) -> None:
        await there.settle(1_700)
        before = await there.stage.caps()
        await there.settle(2_080)
        after, group = await there.stage.caps(), await there.group()
        assert all(after[name] < before[name] for name in "abc")
        assert (group["limitWatts"], group["measuredWatts"], group["meter"]["watts"]) == (2_000, 2_080, 2_080)
        assert await there.stage.condition("WithinLimit") == "False Exceeded"
        await there.settle(1_900)  # what it aims at
        assert await there.stage.condition("WithinLimit") == "True Within"
        assert await there.stage.caps() == after

    metered(ground, scenario)


def test_a_lost_meter_is_said_and_what_it_took_stays_taken() -> None:
    async def scenario(there: Metered) -> None:
        await there.settle(2_080)
        cut = await there.stage.caps()
        for shows_w in (None, -1.0, 1e9, float("nan")):
            await there.settle(shows_w)
            group = await there.group()
            assert "its meter is lost: " in group["reason"]
            assert group["meter"]["lost"]
            assert await there.stage.condition("WithinLimit") == "Unknown MeterLost"
            assert await there.stage.caps() == cut
            page = b"".join(there.stage.play.operator.metrics.budgets.pieces()).decode()
            assert 'joulie_budget_meter_lost{budget="feed",group=""} 1.0' in page
        await there.settle(1_900)
        assert "lost" not in (await there.group())["meter"]
        page = b"".join(there.stage.play.operator.metrics.budgets.pieces()).decode()
        assert 'joulie_budget_meter_lost{budget="feed",group=""} 0.0' in page

    metered(MemoryGround(), scenario)


def test_a_new_leader_without_a_meter_to_ask_raises_nothing_that_the_meter_took(ground: Ground) -> None:
    async def scenario(there: Metered) -> None:
        await there.settle(2_080)
        cut = await there.stage.caps()
        there.new_leader()
        await there.settle(None, turns=8)
        assert await there.stage.caps() == cut

    metered(ground, scenario)


def test_a_meter_that_goes_from_the_spec_takes_nothing_any_more() -> None:
    async def scenario(there: Metered) -> None:
        await there.settle(2_080)
        cut = await there.stage.caps()
        await there.stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"meter": None}})
        await there.settle(None)
        assert sum((await there.stage.caps()).values()) > sum(cut.values())
        assert "meter" not in await there.group()

    metered(MemoryGround(), scenario)


SIGNAL = {"query": "price", "at": [{"value": 0, "watts": 2_000}, {"value": 100, "watts": 1_400}]}


def test_a_prometheus_that_hangs_holds_up_no_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_readings, "TIMEOUT_S", 3_600.0)

    async def scenario(there: Metered) -> None:
        person = there.stage.scene.person
        await person.edit(POWER_BUDGETS, "feed", {"spec": {"signal": SIGNAL}})
        there.server.answers["price"] = [series(0)]
        await there.settle(1_700)
        before = await there.stage.caps()
        there.server.instead = hang
        await person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_700}})
        async with asyncio.timeout(120):
            await there.settle(1_700, turns=2)
        assert sum((await there.stage.caps()).values()) < sum(before.values())
        assert (await there.group())["limitWatts"] == 1_700  # the signal as it was last read

    metered(MemoryGround(), scenario)


def test_what_a_signal_said_of_another_spec_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_readings, "TIMEOUT_S", 3_600.0)

    async def scenario(there: Metered) -> None:
        person = there.stage.scene.person
        await person.edit(POWER_BUDGETS, "feed", {"spec": {"signal": SIGNAL}})
        there.server.answers["price"] = [series(0)]
        await there.settle(1_700)
        assert (await there.group())["limitWatts"] == 2_000
        there.server.instead = hang
        await person.edit(POWER_BUDGETS, "feed", {"spec": {"signal": SIGNAL | {"query": "other_price"}}})
        await there.settle(1_700, turns=2)
        assert (await there.group())["limitWatts"] == 1_400  # a lost signal means its lowest limit

    metered(MemoryGround(), scenario)


def test_a_slow_answer_counts_in_a_later_turn_and_is_asked_for_once() -> None:
    async def scenario() -> None:
        release, asked = asyncio.Event(), 0

        async def slow() -> str:
            nonlocal asked
            asked += 1
            await release.wait()
            return "late"

        question = Question[str]()
        assert await question.ask(slow) is None
        assert await question.ask(slow) is None
        release.set()
        assert (await question.ask(slow), asked) == ("late", 1)
        release.clear()
        assert await question.ask(slow) is None
        question.drop()
        release.set()
        assert (await question.ask(slow), asked) == ("late", 3)

    asyncio.run(scenario())
