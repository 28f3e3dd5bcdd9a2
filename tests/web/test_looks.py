"""Light and dark, wide and narrow, with a mouse or a keyboard, seen or read aloud: the page serves all users."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Page, expect

from joulie.model.snapshot import Pin, Pod
from tests.support.browser import Stage, in_browser
from tests.web.showing import served, shown
from tests.web.world import World

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

NOW_S = 1_793_534_400.0
VIEWS = ("#/", "#/node/node-03", "#/pod/ml/train-0", "#/node/nobody")
PHONE = {"width": 360, "height": 740}


def eventful(nodes: int = 40) -> World:
    """A world with one of everything."""
    world = World(nodes, NOW_S)
    world.blocked.add("node-04")
    world.silent["node-07"] = NOW_S - 900
    world.state["node-05"] = "draining"
    world.pins["hold"] = Pin("hold", "node-03", "eco", created_at_s=NOW_S)
    world.pods["ml/train-0"] = Pod("ml", "train-0", "", "performance", 16.0, 4.0)
    world.limit("racks", 20_000.0, windows=[{"from": "17:00", "to": "21:00", "watts": 15_000}])
    world.step(10)
    return world


async def settled(page: Page, view: str) -> None:
    await expect(page.locator("h1")).to_have_count(1)
    if "nobody" in view:
        await expect(page.locator(".about")).to_contain_text("no such node")
    elif "node" in view:
        await expect(page.locator(".node-body")).to_be_visible()
    elif "pod" in view:
        await expect(page.locator(".scores tbody tr")).to_have_count(40)


async def background(page: Page) -> int:
    """How bright the page is, 0 to 255."""
    colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.strip("rgb()").split(",")) // 3


@in_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_no_violation_in_any_view(stage: Stage, theme: str) -> None:
    world, axe = eventful(), Axe()
    async with served(world) as (address, _):
        for view in VIEWS:
            async with shown(stage, address, view, color_scheme=theme) as here:
                await settled(here.page, view)
                found = await axe.run(here.page)
                assert _told(found.response["violations"]) == [], f"{view} in {theme}"
                here.complaints[:] = [said for said in here.complaints if "404" not in said or "nobody" not in view]
        async with shown(stage, address, color_scheme=theme) as here:
            await here.page.keyboard.press("?")
            await expect(here.page.locator("#help")).to_be_visible()
            assert _told((await axe.run(here.page)).response["violations"]) == [], f"help in {theme}"
            await here.page.keyboard.press("Escape")
            await here.page.get_by_role("combobox").fill("node")
            await expect(here.page.locator("#found li").first).to_be_visible()
            assert _told((await axe.run(here.page)).response["violations"]) == [], f"search in {theme}"


def _told(violations: list[dict[str, Any]]) -> list[str]:
    return [f"{one['id']}: {node['html'][:200]}" for one in violations for node in one["nodes"]]


@in_browser
async def test_dark_follows_the_system_and_the_button_overrules_it_for_good(stage: Stage) -> None:
    async with served(eventful()) as (address, _), shown(stage, address, color_scheme="dark") as here:
        assert await background(here.page) < 60
        await here.page.emulate_media(color_scheme="light")
        assert await background(here.page) > 200
        await here.page.get_by_role("button", name="Light or dark").click()
        assert await background(here.page) < 60
        await here.page.reload()
        await expect(here.page.locator("#live")).to_have_attribute("data-live", "true")
        assert await background(here.page) < 60


@in_browser
@pytest.mark.parametrize("view", VIEWS[:3])
async def test_a_phone_never_scrolls_sideways(stage: Stage, view: str) -> None:
    async with served(eventful()) as (address, _), shown(stage, address, view, viewport=PHONE) as here:
        await settled(here.page, view)
        assert await here.page.evaluate("document.documentElement.scrollWidth") <= 360
        await expect(here.page.get_by_role("combobox")).to_be_visible()
        await expect(here.page.get_by_role("button", name="Help")).to_be_visible()


@in_browser
async def test_everything_can_be_reached_with_the_keyboard_alone(stage: Stage) -> None:
    async with served(eventful()) as (address, _), shown(stage, address) as here:
        page, active = here.page, here.page.locator("#active-tile")
        for _ in range(20):
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement.role === 'listbox'"):
                break
        await expect(active).to_contain_text("node-00")
        await page.keyboard.press("ArrowRight")
        await expect(active).to_contain_text("node-01")
        await page.keyboard.press("End")
        await expect(active).to_contain_text("node-39")
        await page.keyboard.press("ArrowUp")
        await expect(active).not_to_contain_text("node-39")
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowDown")
        await expect(active).not_to_contain_text("node-00")
        await page.keyboard.press("Home")
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_contain_text("node-03")
        await expect(page.locator(".pin-note")).to_contain_text("Pinned to eco")
        await page.keyboard.press("Escape")
        await expect(active).to_contain_text("node-03")  # where it was left
        for number, mode in enumerate(("state", "power", "headroom", "heat", "drift"), start=1):
            await page.keyboard.press(str(number))
            await expect(page.locator(f"[data-mode={mode}]")).to_have_attribute("aria-checked", "true")
        await page.keyboard.press("/")
        await page.keyboard.type("train")
        await expect(page.locator("#found li")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_contain_text("ml/train-0")
        await page.keyboard.press("?")
        await expect(page.locator("#help")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#help")).to_be_hidden()
        await expect(page.locator("h1")).to_contain_text("ml/train-0")
        await page.keyboard.press("Escape")
        await expect(page.locator("[data-mode=drift]")).to_have_attribute("aria-checked", "true")


@in_browser
async def test_a_link_keeps_the_focus_while_everything_around_it_changes(stage: Stage) -> None:
    world = eventful()
    async with served(world) as (address, _), shown(stage, address, "#/pod/ml/train-0") as here:
        link = here.page.locator(".scores a", has_text="node-13")
        await link.focus()
        row = here.page.locator(".scores tr", has_text="node-13")
        before = await row.inner_text()
        for _ in range(3):
            world.step(60)
        await expect(row).not_to_have_text(before, timeout=20_000)
        await expect(link).to_be_focused()
        await here.page.keyboard.press("Enter")
        await expect(here.page.locator("h1")).to_contain_text("node-13")
        pod = here.page.locator("a", has_text="node-13-work-1")
        await pod.focus()
        power = await here.text(".facts dd")
        world.step(60)
        await expect(here.page.locator(".facts dd").first).not_to_have_text(power)
        await expect(pod).to_be_focused()


@in_browser
async def test_who_wants_less_motion_gets_none(stage: Stage) -> None:
    async with served(eventful()) as (address, _), shown(stage, address, reduced_motion="reduce") as here:
        durations = "[...document.querySelectorAll('*')].map((one) => getComputedStyle(one).transitionDuration)"
        assert set(await here.page.evaluate(durations)) == {"0s"}
