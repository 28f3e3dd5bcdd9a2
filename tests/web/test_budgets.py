"""Budgets on the page: a tree with the numbers of the status, its history, and a cut that is seen at once."""

from __future__ import annotations

import asyncio
import re
import time

import msgspec
import pytest
from playwright.async_api import expect

from joulie.model.api import PowerBudget
from tests.support.browser import Stage, in_browser
from tests.web.showing import served, shown, tell
from tests.web.test_page import watts
from tests.web.world import World

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

NOW_S = 1_793_534_400.0
FELT_S = 2.0
PHONE = {"width": 360, "height": 740}
WINDOW = {"from": "17:00", "to": "21:00", "timeZone": "Europe/Berlin", "watts": 8000}


@in_browser
async def test_the_numbers_of_the_tree_are_those_of_the_status(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.limit("racks", 20_000.0, windows=[WINDOW])
    async with served(world) as (address, _), shown(stage, address) as here:
        status = world.budgets["racks"].status
        assert status is not None
        groups = here.page.locator("[data-budget=racks] .group")
        await expect(groups).to_have_count(4)
        for number, group in enumerate(status.groups or ()):
            leaf = groups.nth(number)
            await expect(leaf).to_have_attribute("data-group", f"racks/{group.value}")
            await expect(leaf).to_contain_text(group.value)
            await expect(leaf).to_contain_text(f"{group.nodes:.0f} nodes")
            await expect(leaf.locator("[data-part=limit]")).to_have_text("20 kW")
            for part, value in (
                ("allocated", group.allocated_watts),
                ("measured", group.measured_watts),
                ("floor", group.floor_watts),
            ):
                assert value is not None
                await expect(leaf.locator(f"[data-part={part}]")).to_have_text(watts(value))
            await expect(leaf.locator(".group-state")).to_have_text(group.state)
            await expect(leaf.locator(".group-reason")).to_contain_text(group.reason or "")
        await expect(here.page.locator(".about-budget")).to_contain_text("daily 17:00–21:00 Europe/Berlin: 8,000 W")


@in_browser
async def test_a_cut_is_seen_before_the_operator_answers_and_again_when_it_does(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.limit("racks", 20_000.0)
    cut = [{"value": "rack-0", "watts": 14_000}]
    async with served(world) as (address, _), shown(stage, address) as here:
        first, second = here.page.locator(".group").nth(0), here.page.locator(".group").nth(1)
        await expect(first.locator("[data-part=limit]")).to_have_text("20 kW")
        began = time.monotonic()
        world.limit("racks", 20_000.0, seen=False, groups=cut)
        await expect(first.locator("[data-part=limit]")).to_have_text("20 kW → 14 kW")
        await expect(first.locator(".group-state")).to_have_text("unseen")
        seconds = time.monotonic() - began
        tell(f"a cut was seen on the page after {seconds:.2f} s")
        assert seconds < 5 * FELT_S
        world.limit("racks", 20_000.0, groups=cut)
        await expect(first.locator("[data-part=limit]")).to_have_text("14 kW")
        await expect(first.locator(".group-state")).to_have_text("within")
        status = world.budgets["racks"].status
        assert status is not None
        for leaf, group in zip((first, second), status.groups or (), strict=False):
            assert group.measured_watts is not None
            await expect(leaf.locator("[data-part=allocated]")).to_have_text(watts(group.allocated_watts))
            await expect(leaf.locator("[data-part=measured]")).to_have_text(watts(group.measured_watts))
        await expect(second.locator("[data-part=limit]")).to_have_text("20 kW")  # the others keep theirs
        world.limit("racks", 20_000.0)
        await expect(first.locator("[data-part=limit]")).to_have_text("20 kW")
        world.budgets.clear()
        await expect(here.page.locator(".budgets-panel")).to_be_hidden()


@in_browser
async def test_every_group_has_its_last_hour_as_a_line_below_its_limit(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.limit("racks", 20_000.0)
    async with served(world) as (address, _), shown(stage, address) as here:
        for taken in range(2, 5):
            world.step(20)
            while len((await here.api("budgets"))["history"]["timesS"]) < taken:
                await asyncio.sleep(0.05)
        found = await here.api("budgets")
        past = found["history"]["groups"]["racks/rack-0"]
        assert set(past["limitW"]) == {20_000}
        assert len(past["measuredW"]) == len(found["history"]["timesS"]) >= 2
        await here.page.reload()
        line = here.page.locator(".group .spark .line.budget").first
        await expect(line).to_have_attribute("d", re.compile("^M.*H"))


@in_browser
async def test_a_phone_shows_the_tree_without_scrolling_sideways(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.limit("racks", 20_000.0, windows=[WINDOW])
    async with served(world) as (address, _), shown(stage, address, viewport=PHONE) as here:
        await expect(here.page.locator(".group")).to_have_count(4)
        assert await here.page.evaluate("document.documentElement.scrollWidth") <= 360
        narrow = "[...document.querySelectorAll('.group dd')].every((one) => one.scrollWidth <= one.clientWidth)"
        assert await here.page.evaluate(narrow)


@in_browser
async def test_of_many_groups_those_in_trouble_come_first(stage: Stage) -> None:
    world = World(200, NOW_S)
    world.limit("racks", 20_000.0)
    body = msgspec.to_builtins(world.budgets["racks"])
    body["status"]["groups"][15] |= {"state": "infeasible", "reason": "50 W are missing for the floors of its nodes"}
    world.budgets["racks"] = msgspec.convert(body, PowerBudget)
    async with served(world) as (address, _), shown(stage, address) as here:
        groups = here.page.locator(".group")
        await expect(groups).to_have_count(12)
        await expect(groups.first).to_have_attribute("data-state", "infeasible")
        await expect(here.page.locator(".attention")).to_contain_text("cannot hold its limit")
        await here.page.get_by_role("button", name="Show all 20 groups").click()
        await expect(groups).to_have_count(20)


@in_browser
async def test_a_budget_over_everything_is_the_budget_of_the_headline(stage: Stage) -> None:
    world = World(40, NOW_S)
    group = {"nodes": 40, "limitWatts": 90_000, "allocatedWatts": 88_000, "measuredWatts": 45_000, "floorWatts": 9_000}
    body = {
        "metadata": {"name": "feed-a", "generation": 1},
        "spec": {"watts": 90_000},
        "status": {"observedGeneration": 1, "groups": [{"value": "", "state": "within", "reason": "", **group}]},
    }
    world.budgets["feed-a"] = msgspec.convert(body, PowerBudget)
    async with served(world) as (address, _), shown(stage, address) as here:
        await expect(here.page.locator("[data-figure=budget]")).to_have_text("50 %")
        await expect(here.page.locator(".figure.budget")).to_contain_text("88.0 kW allocated of 90 kW")
        await expect(here.page.locator(".figure.budget h2")).to_contain_text("Budget")
