"""The page in a real browser: it shows what the API says, as it happens, and believes nothing that a cluster says."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace
from playwright.async_api import expect

from joulie.model.names import CPU_MODEL_LABEL
from joulie.model.snapshot import Pin, Pod
from tests.support.browser import Stage, in_browser
from tests.web.showing import Shown, served, shown, tell
from tests.web.world import World

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

NOW_S = 1_793_534_400.0
FELT_S = 2.0  # printed; what a person would call at once


def watts(value: float) -> str:
    """As the page writes it."""
    if abs(value) < 9999.5:
        return f"{value:,.0f} W"
    return f"{value / 1e3:.1f} kW" if value < 99_950 else f"{value / 1e3:,.0f} kW"


@in_browser
async def test_the_numbers_on_the_page_are_those_of_the_api(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.facts_now = replace(world.facts_now, budget_w=80_000.0)
    world.blocked.add("node-04")
    world.step(10)
    async with served(world) as (address, _), shown(stage, address) as here:
        api = await here.api("cluster")
        assert await here.text("[data-figure=power]") == watts(api["powerW"])
        assert await here.text("[data-figure=budget]") == f"{100 * api['powerW'] / 80_000:.0f} %"
        assert await here.text("[data-figure=facility]") == "PUE 1.31"
        assert await here.text("[data-figure=states]") == "40"
        assert await here.text("[data-figure=enforced]") == f"{api['enforced']} / {api['asked']}" == "39 / 40"
        for state, number in api["states"].items():
            if number:
                assert await here.text(f"[data-state={state}]") == f"{number} {state}"
        assert await here.page.locator(".attention li.fault").count() == 1
        await expect(here.page.locator(".attention li.fault")).to_contain_text("locked by the BIOS")
        racks = here.page.locator(".rack")
        assert await racks.count() == len(api["racks"]) == 4
        for number, rack in enumerate(api["racks"]):
            await expect(racks.nth(number)).to_contain_text(f"{rack['powerW'] / 1e3:.1f} of 50 kW")
        world.step(30)
        later = sum(twin.status.power_measurement.measured_node_power_w for twin in world.twins.values())  # type: ignore[union-attr, misc]
        await expect(here.page.locator("[data-figure=power]")).to_have_text(watts(later))


@in_browser
async def test_a_node_page_tells_what_the_api_tells(stage: Stage) -> None:
    world = World(40, NOW_S)
    world.blocked.add("node-04")
    world.step(10)
    async with served(world) as (address, _), shown(stage, address, "#/node/node-04") as here:
        node = await here.api("nodes/node-04")
        await expect(here.page.locator("h1")).to_contain_text("node-04")
        facts = here.page.locator(".facts")
        await expect(facts).to_contain_text(watts(node["powerW"]))
        await expect(facts).to_contain_text(f"{node['headroom']:.0f} %")
        await expect(here.page.locator(".node-body")).to_contain_text("locked by the BIOS")
        await expect(here.page.locator("tbody th").first).to_have_text("CPU")
        await expect(here.page.locator("#pods-title")).to_have_text(f"Pods ({node['podList']['total']})")
        await here.page.locator("a", has_text="team-a/node-04-work-0").click()
        await expect(here.page.locator("h1")).to_contain_text("team-a/node-04-work-0")
        await expect(here.page.locator(".reason")).to_contain_text("node-04")


@in_browser
async def test_a_pod_page_shows_every_term_of_the_score(stage: Stage) -> None:
    world = World(120, NOW_S)
    world.pods["ml/train-0"] = Pod("ml", "train-0", "", "performance", 16.0, 4.0)
    async with served(world) as (address, _), shown(stage, address, "#/pod/ml/train-0") as here:
        pod = await here.api("pods/ml/train-0?limit=500")
        rows = here.page.locator(".scores tbody tr")
        await expect(rows).to_have_count(50)
        best = pod["nodes"][0]
        await expect(rows.first).to_contain_text(best["node"])
        await expect(rows.first.locator(".score")).to_have_text(f"{best['score']:.1f}")
        await expect(rows.first).to_contain_text(f"+{best['breakdown']['coolingTerm']:.1f}")
        await here.page.get_by_role("button", name="Show more").click()
        await expect(rows).to_have_count(120)
        await expect(rows.last).to_contain_text(pod["nodes"][-1]["node"])


@in_browser
async def test_a_pin_shows_within_two_seconds_also_before_it_takes_effect(stage: Stage) -> None:
    world = World(40, NOW_S)
    async with served(world) as (address, _), shown(stage, address, "#/node/node-10") as here:
        note = here.page.locator(".pin-note")
        await expect(note).to_be_hidden()
        began = time.monotonic()
        world.pins["hold"] = Pin("hold", "node-10", "eco", created_at_s=NOW_S, expires_at_s=NOW_S + 3600)
        await expect(note).to_contain_text("Pinned to eco until")
        await expect(note).to_contain_text("takes effect at the next decision")
        seconds = time.monotonic() - began
        tell(f"a pin was seen on the page after {seconds:.2f} s")
        assert seconds < 5 * FELT_S
        world.write_twin("node-10", 10)  # as the operator would, chosen by the pin
        await expect(note).not_to_contain_text("next decision")
        await here.page.goto(f"{address}/#/")
        await expect(here.page.locator(".changes [data-node=node-10]").first).to_contain_text("pinned to eco")


@in_browser
async def test_what_changes_is_told(stage: Stage) -> None:
    world = World(20, NOW_S)
    async with served(world) as (address, _), shown(stage, address) as here:
        world.turn("node-07", "draining")
        line = here.page.locator(".changes [data-node=node-07]")
        await expect(line).to_contain_text("draining")
        await expect(here.page.locator("[data-state=draining]")).to_have_text("1 draining")
        world.silent["node-08"] = world.now_s - 900
        world.write_twin("node-08", 8)
        await expect(here.page.locator(".attention li.fault")).to_contain_text("node-08")
        world.step(60, share=0.0)
        await expect(here.page.locator(".changes [data-node=node-08]")).to_contain_text("silent for 16 min")
        world.facts_now = replace(world.facts_now, leader="operator-2", notes=("A hot afternoon begins.",))
        await expect(here.page.locator("#leader")).to_contain_text("operator-2")
        await expect(here.page.locator(".changes")).to_contain_text("A hot afternoon begins.")


@in_browser
async def test_a_cluster_without_managed_nodes_says_how_to_begin(stage: Stage) -> None:
    world = World(0, NOW_S)
    async with served(world) as (address, _), shown(stage, address) as here:
        await expect(here.page.locator(".no-nodes")).to_contain_text("kubectl label node NODE joulie.io/managed=true")
        world.add_node("node-a", "rack-0")
        await expect(here.page.locator(".no-nodes")).to_be_hidden()
        await expect(here.page.locator(".rack")).to_have_count(1)
        world.add_node("node-b", "rack-1")
        await expect(here.page.locator(".rack")).to_have_count(2)
        world.nodes["node-b"] = replace(world.nodes["node-b"], labels=world.nodes["node-a"].labels)
        await expect(here.page.locator(".rack")).to_have_count(1)


@in_browser
async def test_nothing_is_said_of_power_before_it_was_reported(stage: Stage) -> None:
    world = World(3, NOW_S)
    world.twins.clear()
    async with served(world) as (address, _), shown(stage, address) as here:
        power = here.page.locator("[data-figure=power]")
        await expect(power).to_have_text("–")
        await expect(here.page.locator("[data-figure=budget]")).to_have_text("–")
        world.write_twin("node-01", 1)
        await expect(power).not_to_have_text("–")
        await expect(power).to_have_text(watts((await here.api("cluster"))["powerW"]))


@in_browser
async def test_a_node_and_a_pod_that_are_gone_are_not_shown_as_if_they_were_there(stage: Stage) -> None:
    world = World(3, NOW_S)
    async with served(world) as (address, _), shown(stage, address, "#/node/node-01") as here:
        page = here.page
        await expect(page.locator(".node-body")).to_be_visible()
        node, twin = world.nodes.pop("node-01"), world.twins.pop("node-01")
        await expect(page.locator(".about")).to_have_text("It has left the cluster.")
        await expect(page.locator(".node-body")).to_be_hidden()
        world.nodes["node-01"], world.twins["node-01"] = node, twin
        await expect(page.locator(".node-body")).to_be_visible()
        await page.goto(f"{address}/#/pod/team-a/node-02-work-0")
        await expect(page.locator(".reason")).to_contain_text("Runs on")
        pod = world.pods["team-a/node-02-work-0"]
        world.pods["team-a/node-02-work-0"] = replace(pod, finished=True)
        await expect(page.locator(".reason")).to_contain_text("Finished on")
        del world.pods["team-a/node-02-work-0"]
        await expect(page.locator(".about")).to_have_text("It is no longer in the cluster.")
        await expect(page.locator("table.scores")).to_be_hidden()
        here.complaints.clear()  # the browser tells of every 404


@in_browser
async def test_the_page_forgets_what_changed_more_than_an_hour_ago(stage: Stage) -> None:
    world = World(3, NOW_S)
    async with served(world) as (address, _), shown(stage, address) as here:
        world.turn("node-01", "draining")
        drained = here.page.locator(".changes .chip.draining")
        await expect(drained).to_have_count(1)
        world.now_s += 3700
        await expect(drained).to_have_count(0)


@in_browser
async def test_a_clock_that_was_set_back_starts_the_past_anew_on_the_page_too(stage: Stage) -> None:
    world = World(3, NOW_S)
    async with served(world) as (address, _), shown(stage, address) as here:
        for seconds, samples in ((0, 1), (20, 2), (20, 3), (-7200, 1)):
            world.step(seconds)
            await expect_samples(here, samples)


async def expect_samples(here: Shown, samples: int) -> None:
    """So many points of the past are drawn, and one for now."""
    line = here.page.locator(".hour-panel .line").first
    await expect(line).to_have_attribute("d", re.compile(rf"^M[^L]*(L[^L]*){{{samples}}}$"))


@in_browser
async def test_nodes_without_racks_use_the_whole_width(stage: Stage) -> None:
    world = World(100, NOW_S)
    for name in list(world.nodes):
        world.add_node(name, "")
    async with served(world) as (address, _), shown(stage, address) as here:
        await expect(here.page.locator(".rack")).to_contain_text("no rack")
        rack, racks = [await here.page.locator(one).bounding_box() for one in (".rack", ".racks")]
        assert rack is not None
        assert racks is not None
        assert rack["width"] == racks["width"]


HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'\"&amp;"
RIGHT_TO_LEFT = "\u202eevil\u202d \u05d0\u05d1\u05d2"


@in_browser
async def test_names_labels_and_messages_inject_nothing(stage: Stage) -> None:
    """The API server refuses most of these; the page does not rely on it."""
    world = World(6, NOW_S)
    names = (HOSTILE, RIGHT_TO_LEFT, "x" * 253, "a/b", "__proto__", "%2e%2e%2f")
    for number, name in enumerate(names):
        labels = {CPU_MODEL_LABEL: HOSTILE}
        world.add_node(name, f"{HOSTILE}{number}", 0, 1, labels)
        world.silent[name] = 1.0
        world.write_twin(name, 0)
    world.pods["evil"] = Pod(HOSTILE, HOSTILE, HOSTILE, "performance", 1.0)
    world.pins["evil"] = Pin(HOSTILE, HOSTILE, "eco", created_at_s=NOW_S)
    world.facts_now = replace(
        world.facts_now,
        cluster=HOSTILE,
        leader=HOSTILE,
        policy=HOSTILE,
        zone_ambient_c={HOSTILE: 20.0},
        notes=(HOSTILE,),
    )
    async with served(world) as (address, _), shown(stage, address) as here:
        page = here.page
        await expect(page.locator(".attention")).to_contain_text("<img src=x")
        await page.locator("canvas").first.hover()
        for name in names:
            await page.get_by_role("combobox").fill(name)
            await expect(page.locator("#found li").first).to_contain_text(name[:40])
            await page.keyboard.press("Enter")
            await expect(page.locator("h1")).to_contain_text(name.strip())
            await expect(page.locator(".node-body")).to_be_visible()
            wide = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert wide, f"{name[:20]} makes the page scroll sideways"
        await page.get_by_role("combobox").fill("<img")
        await page.locator("#found li", has_text="pod").first.click()
        await expect(page.locator("h1")).to_contain_text("<img src=x")
        assert await page.locator("main img, main script, header script").count() == 0
        assert "owned" not in re.sub(r"'owned'", "", await page.title())


@in_browser
async def test_the_page_finds_its_way_back_after_the_server_restarted(stage: Stage) -> None:
    world = World(10, NOW_S)
    async with served(world) as (address, _):
        port = int(address.rpartition(":")[2])
        session = shown(stage, address)
        here = await session.__aenter__()
    try:
        await expect(here.page.locator("#live")).to_have_attribute("data-live", "false")
        world.turn("node-03", "draining")
        async with served(world, port):
            await expect(here.page.locator("#live")).to_have_attribute("data-live", "true")
            await expect(here.page.locator("[data-state=draining]")).to_have_text("1 draining")
    finally:
        here.complaints.clear()  # the browser reports that there was no answer
        await session.__aexit__(None, None, None)
