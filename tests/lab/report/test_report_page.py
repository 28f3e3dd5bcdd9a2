"""The report in a real Chromium, from a file, with the network off."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Page, expect

from joulie.lab.report.page import write_report
from joulie.lab.report.reading import material
from tests.lab.report.report_results import POLICIES, Effect, store
from tests.support.browser import Stage, in_browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

FIGURES = {"pareto", "paired", "bound", "over-time", "waits", "waits-by-group", "slowdowns", "slowdowns-by-group"}
PHONE = {"width": 360, "height": 740}
LOADS = POLICIES.replace("[variants]", '[facets]\n"trace.load" = [0.4, 0.8]\n\n[variants]')


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _written(store(tmp_path_factory.mktemp("results") / "policies"))


def _written(folder: Path) -> Path:
    write_report(material(folder), folder / "report.html")
    return folder / "report.html"


@asynccontextmanager
async def opened(stage: Stage, report: Path, **options: Any) -> AsyncIterator[Page]:
    """A page without a network; it must not complain, nor ask for anything but its own file."""
    wanted = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light", "offline": True, **options}
    context = await stage.browser.new_context(**wanted)
    page = await context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        await page.goto(report.as_uri())
        yield page
        assert complaints == []
        assert asked == [report.as_uri()]
    finally:
        await context.close()


@in_browser
async def test_it_opens_without_a_network_and_the_answer_stands_on_top(stage: Stage, report: Path) -> None:
    summary = material(report.parent).facets[0].comparison.summary
    async with opened(stage, report) as page:
        answer = page.locator("#answer")
        assert (await answer.inner_text()).replace("\N{NO-BREAK SPACE}", " ") == summary
        box = await answer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900  # seen without scrolling
        await expect(page.locator("h1")).to_have_text("policies")
        await expect(page.locator(".question")).to_have_text("Which policy saves energy at the same work?")
        await expect(page.locator("#how")).to_have_count(1)


@in_browser
async def test_every_figure_has_a_caption_a_source_and_units_on_its_axes(stage: Stage, report: Path) -> None:
    async with opened(stage, report) as page:
        figures = await page.locator("figure").all()
        assert {await figure.get_attribute("id") for figure in figures} == FIGURES
        for figure in figures:
            assert len(await figure.locator("figcaption .caption").inner_text()) > 60
            source = await figure.locator("figcaption .source").inner_text()
            assert source.startswith("Source: simulated by joulie lab 0.8.0 (plant: ")
            assert all(name in source for name in ("SPECpower", "Zeus", "EnergyPlus", "“policies”", "seed"))
            plots = await figure.locator(".plots > svg").all()
            assert plots
            for plot in plots:
                titles = await plot.locator(".axis-title").all_text_contents()
                assert len(titles) == 2 or (len(titles) == 1 and plot is not plots[-1])  # stacked ones share the last's
                assert all(title.endswith(")") and "(" in title for title in titles), titles
                assert await plot.get_attribute("aria-label")
                assert await plot.locator(".tick").count() >= 3


@in_browser
async def test_every_variant_is_told_apart_without_colour(stage: Stage, report: Path) -> None:
    async with opened(stage, report) as page:
        for figure in await page.locator("figure").all():
            drawn: list[tuple[str, str]] = await figure.evaluate(
                """figure => [...figure.querySelectorAll("svg [data-series] > .marker")].map(
                  (marker) => [marker.parentElement.dataset.series, marker.getAttribute("d")])"""
            )
            shapes = {(name, shape) for name, shape in drawn if name != "outside air"}
            assert len(shapes) == len(dict(shapes)) == len({shape for _, shape in shapes}) >= 3
            dashes = await figure.evaluate(
                """figure => [...figure.querySelectorAll(".plots svg")].map((plot) =>
                  [...plot.querySelectorAll(".line")].map((line) => line.getAttribute("stroke-dasharray")))"""
            )
            assert all(len(set(of_plot)) == len(of_plot) for of_plot in dashes)
        # On a printer without colours: the same ink for all.
        await page.evaluate(
            "document.querySelectorAll('[class*=tone-]').forEach((one) => { one.style.color = 'rgb(60 60 60)'; })"
        )
        samples = await page.locator("#waits .legend .sample").all()
        pictures = [await sample.screenshot() for sample in samples]
        assert len(set(pictures)) == len(pictures) == 4


@in_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_no_violation(stage: Stage, report: Path, theme: str) -> None:
    async with opened(stage, report, color_scheme=theme) as page:
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = await Axe().run(page)
        told = [f"{one['id']}: {node['html'][:200]}" for one in found.response["violations"] for node in one["nodes"]]
        assert told == []
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in colour.strip("rgb()").split(",")) // 3
        assert (brightness > 200) == (theme == "light")


@in_browser
async def test_a_phone_scrolls_plots_and_tables_but_never_the_page(stage: Stage, report: Path) -> None:
    async with opened(stage, report, viewport=PHONE) as page:
        await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        assert await page.locator(".plots").first.evaluate("plot => plot.scrollWidth > plot.clientWidth")


@in_browser
async def test_no_text_of_a_plot_leaves_it_however_many_variants_and_however_long_their_names(
    stage: Stage, report: Path, tmp_path: Path
) -> None:
    caps, schedulers = (100, 90, 80, 70, 60), ("joulie", "most")
    sweep = f'[sweep]\n"policy.gpu_cap_pct" = {[*caps]}\n"scheduler" = {[*schedulers]}\n'
    effects = {
        f"gpu_cap_pct={cap}, scheduler={name}": Effect(0.5 + cap / 200, 3 - cap / 50, cap)
        for cap in caps
        for name in schedulers
    }
    many = _written(store(tmp_path / "many", f'name = "many"\nseeds = 5\n{sweep}', effects))
    for shown in (report, many):
        async with opened(stage, shown) as page:
            beyond = await page.evaluate(
                """() => [...document.querySelectorAll(".plots svg")].flatMap((plot) => {
                  const [, , width, height] = plot.getAttribute("viewBox").split(" ").map(Number);
                  return [...plot.querySelectorAll("text")].filter((text) => {
                    const box = text.getBBox();
                    return box.x < -1 || box.y < -1 || box.x + box.width > width + 1 || box.y + box.height > height + 1;
                  }).map((text) => `${plot.getAttribute("aria-label")}: ${text.textContent}`);
                })"""
            )
            assert beyond == []
            touching = await page.evaluate(
                """() => [...document.querySelectorAll(".plots svg")].flatMap((plot) => {
                  const labels = [...plot.querySelectorAll(".label")];
                  const boxes = labels.map((label) => [label.textContent, label.getBBox()]);
                  return boxes.flatMap(([name, one], place) => boxes.slice(place + 1).filter(([, other]) =>
                    one.x < other.x + other.width && other.x < one.x + one.width &&
                    Math.abs(one.y - other.y) < 11).map(([beside]) => `${name} on ${beside}`));
                })"""
            )
            assert touching == []


@in_browser
async def test_names_from_a_file_stay_text(stage: Stage, tmp_path: Path) -> None:
    evil = [
        "<script>window.taken = 1</script>",
        "\\\"><img src=x onerror='window.taken = 1'>",
        "</title></svg><b>&amp;",
    ]
    names = ["none", *evil]
    text = (
        'name = "</style><script>window.taken = 1</script>"\n'
        'question = "<img src=x onerror=\\"window.taken = 1\\">"\nclaim = "</pre><script>window.taken = 1</script>"\n'
        "seeds = 5\n[variants]\n" + "\n".join(f'"{name}" = {{}}' for name in names)
    )
    effects = {name.replace('\\"', '"'): Effect(1 - 0.02 * place) for place, name in enumerate(names)}
    report = _written(store(tmp_path / "evil", text, effects))
    async with opened(stage, report) as page:
        assert await page.evaluate("window.taken") is None
        assert await page.locator("img, b").count() == 0
        assert await page.locator("script").count() == 1
        await expect(page.locator("h1")).to_have_text("</style><script>window.taken = 1</script>")
        await expect(page.locator(".legend").first).to_contain_text("<script>window.taken = 1</script>")
        assert await page.locator("figure").count() == len(FIGURES)


@in_browser
async def test_nothing_but_its_own_script_and_style_may_run(stage: Stage, report: Path, tmp_path: Path) -> None:
    """Even if something slipped in, the browser would refuse it."""
    slipped = tmp_path / "slipped.html"
    injected = "<script>window.taken = 1</script><img src='https://example.org/x.png'></main>"
    slipped.write_text(report.read_text().replace("</main>", injected))
    context = await stage.browser.new_context(offline=False)
    try:
        page = await context.new_page()
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
        await page.goto(slipped.as_uri())
        assert await page.evaluate("window.taken") is None
        assert sum("Content Security Policy" in words for words in refused) == 2
    finally:
        await context.close()


@in_browser
async def test_a_table_is_copied_as_markdown_and_latex(stage: Stage, report: Path) -> None:
    async with opened(stage, report, permissions=["clipboard-read", "clipboard-write"]) as page:
        for key, first in (("markdown", "| Variant | "), ("latex", "\\begin{tabular}{l")):
            box = page.locator(f"details:has(#{key})")
            await box.locator("summary").click()
            await box.get_by_role("button").click()
            await expect(box.get_by_role("button")).to_have_text("Copied")
            copied = await page.evaluate("navigator.clipboard.readText()")
            assert copied == await page.locator(f"#{key}").text_content()
            assert copied.startswith(first)


@in_browser
async def test_pointing_at_a_variant_makes_the_others_pale(stage: Stage, report: Path) -> None:
    async with opened(stage, report, reduced_motion="reduce") as page:
        figure = page.locator("#waits")
        await figure.locator(".legend li", has_text="eco").hover()
        opacity = "one => getComputedStyle(one).opacity"
        assert await figure.locator(".plots [data-series=eco]").first.evaluate(opacity) == "1"
        assert float(await figure.locator(".plots [data-series=none]").first.evaluate(opacity)) < 0.5
        await page.mouse.move(2, 2)
        assert await figure.locator(".plots [data-series=none]").first.evaluate(opacity) == "1"


@in_browser
async def test_pointing_at_the_course_of_power_tells_its_values(stage: Stage, report: Path) -> None:
    facet = material(report.parent).facets[0]
    async with opened(stage, report) as page:
        plot = page.locator("#over-time .plots svg").first
        await plot.scroll_into_view_if_needed()
        box = await plot.bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 0.5 * box["height"])
        said = await page.locator("#over-time .readout").inner_text()
        read = re.fullmatch(
            r"Power of the facility \(kW\) at ([\d.]+) h: none ([\d.]+), eco .*, twin .*, capped .*", said
        )
        assert read, said
        series = facet.series["none"]
        minute = int(float(read[1]) * 60)
        around = (series["it_w"] + series["cooling_w"])[minute - 15 : minute + 15] / 1000
        assert around.min() <= float(read[2]) <= around.max()


@in_browser
async def test_on_paper_it_is_ink_on_white_and_no_figure_is_torn(stage: Stage, report: Path) -> None:
    async with opened(stage, report, color_scheme="dark") as page:
        await page.emulate_media(media="print", color_scheme="dark")
        ink = await page.locator(".axis-title").first.evaluate("one => getComputedStyle(one).fill")
        assert ink == "rgb(24, 33, 44)"
        await expect(page.locator("nav")).to_be_hidden()
        await page.set_viewport_size({"width": 660, "height": 940})  # what A4 leaves between its margins
        assert await page.evaluate("document.documentElement.scrollWidth") <= 660
        torn = await page.locator("figure").evaluate_all(
            "figures => figures.filter((one) => getComputedStyle(one).breakInside !== 'avoid').length"
        )
        assert torn == 0
        assert (await page.pdf()).startswith(b"%PDF")


@in_browser
async def test_several_comparisons_are_linked_and_folded(stage: Stage, tmp_path: Path) -> None:
    report = _written(store(tmp_path / "loads", LOADS))
    async with opened(stage, report) as page:
        await expect(page.locator("#facets")).to_be_visible()
        await expect(page.locator("#pareto-0")).to_be_visible()
        await expect(page.locator("#pareto-1")).to_be_hidden()
        await page.get_by_text("8 figures: load=0.8").click()
        await expect(page.locator("#pareto-1")).to_be_visible()
        assert (await Axe().run(page)).response["violations"] == []
        await page.get_by_text("8 figures: load=0.8").click()
        await expect(page.locator("#pareto-1")).to_be_hidden()
        await page.pdf()
        await expect(page.locator("#pareto-1")).to_be_visible()  # paper cannot be unfolded
