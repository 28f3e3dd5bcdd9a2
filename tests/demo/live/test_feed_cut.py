"""The cut of a feed in the live demo: real operator and agents, limits as the plant shows them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from joulie.cluster.port import NODE_TWINS, POWER_BUDGETS
from joulie.demo.scenario.feeds import CUT_FEED, CUT_W, FEED_W, FEEDS, FEEDS_BUDGET
from joulie.model.api import PowerBudget
from joulie.model.api.budget import BudgetGroupStatus
from tests.demo.live.test_live_demo import PATIENCE_S, Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

ROUNDING_W = 1.0


def group(watched: Watched, feed: str) -> BudgetGroupStatus | None:
    """A feed as the operator last reported it."""
    for body in watched.demo._server.all(POWER_BUDGETS):
        if body["metadata"]["name"] == FEEDS_BUDGET:
            status = msgspec.convert(body, PowerBudget).status
            groups = (status.groups if status else None) or ()
            return next((each for each in groups if each.value == feed), None)
    return None


def test_a_feed_is_cut_and_comes_back_and_no_caps_ever_add_up_to_more_than_its_limit() -> None:
    async def main() -> None:
        watched = Watched(20, "feed-cut")
        meter = watched.demo._feeds._meter
        held_since_first = False
        reported: list[float] = []
        async with asyncio.timeout(PATIENCE_S):
            while not (meter.cuts and meter.cuts[0].shared_again_s is not None):
                await asyncio.sleep(0.02)
                assert not watched.task.done()
                allowed_w = {feed: meter.allowed_w(feed) for feed in FEEDS}
                held_since_first = held_since_first or all(watts <= FEED_W for watts in allowed_w.values())
                if held_since_first:
                    for feed, watts in allowed_w.items():
                        assert watts <= meter.limit_w(feed) + ROUNDING_W, (feed, watched.told)
                seen = group(watched, CUT_FEED)
                if seen is not None and (not reported or reported[-1] != seen.limit_watts):
                    reported.append(seen.limit_watts)
        twins = watched.demo._server.all(NODE_TWINS)
        (cut,) = watched.demo.measured().cuts
        await watched.end()
        assert held_since_first
        assert reported[:2] == [FEED_W, CUT_W]
        assert all("budget" in twin["spec"] for twin in twins)
        assert cut.in_force_s is not None
        assert cut.worst_margin_w is None or cut.worst_margin_w >= 0
        assert cut.above_s <= cut.in_force_s + watched.demo._simulation.settings.step_s
        told = "\n".join(watched.told)
        assert "cuts feed a by 30 %, from 60.0 kW to 42.0 kW" in told
        assert "the caps on feed a add up to no more than 42.0 kW" in told
        assert "Feed a has its 60.0 kW back" in told
        assert "In the cut feed a drew at most" in told

    asyncio.run(main())
