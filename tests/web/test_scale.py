"""Five thousand nodes: the browser stays fluid, and twenty viewers cost the server little."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientTimeout
from playwright.async_api import expect

from tests.support.browser import Stage, in_browser
from tests.web.showing import shown, tell

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

NODES = 5_000
VIEWERS = 20
WATCHED_S = 5.0
FRAMES = """
(seconds) => new Promise((done) => {
  const frames = [], long = [];
  const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)));
  observer.observe({ entryTypes: ["longtask"] });
  const end = performance.now() + seconds * 1000;
  let last = performance.now();
  const frame = (now) => {
    frames.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(frame);
    else done({ frames: frames.slice(1), long });
  };
  requestAnimationFrame(frame);
})
"""


@dataclass(frozen=True)
class Server:
    address: str
    pid: int

    def processor_s(self) -> float:
        """What it has used of the processor so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Of a world with 5,000 nodes and 50,000 pods; 100 twins change a second."""
    command = [sys.executable, "-m", "tests.web.large", str(NODES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().strip(), process.pid)
        finally:
            process.terminate()


@in_browser
async def test_the_browser_stays_fluid(stage: Stage, server: Server) -> None:
    async with shown(stage, server.address, viewport={"width": 1440, "height": 900}) as here:
        page = here.page
        await expect(page.locator("[data-figure=states]")).to_have_text("5,000")
        assert await page.locator(".rack canvas").count() == NODES // 20
        await page.wait_for_function("performance.getEntriesByName('tiles-painted').length > 0")
        painted_ms = await page.evaluate("performance.getEntriesByName('tiles-painted')[0].startTime")
        first_ms = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        elements = await page.evaluate("document.querySelectorAll('*').length")
        found = await page.evaluate(FRAMES, 4)
        frames = sorted(found["frames"])
        p95_ms, worst_ms = frames[int(0.95 * len(frames))], frames[-1]
        tell(
            f"{NODES:,} nodes: first paint {first_ms:.0f} ms, all tiles {painted_ms:.0f} ms, {elements} elements; "
            f"over 4 s of updates {len(frames)} frames, p95 {p95_ms:.0f} ms, longest {worst_ms:.0f} ms, "
            f"{len(found['long'])} long tasks ({sum(found['long']):.0f} ms)"
        )
        assert elements < NODES  # a tile is no element
        assert painted_ms < 15_000
        assert p95_ms < 100
        assert worst_ms < 1_500
        await page.keyboard.press("4")
        await expect(page.locator("[data-mode=heat]")).to_have_attribute("aria-checked", "true")
        await page.get_by_role("combobox").fill("node-4321")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_contain_text("node-4321")
        await expect(page.locator(".node-body")).to_be_visible()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to measure another process")
def test_twenty_viewers_cost_the_server_little(server: Server) -> None:
    async def watch(session: ClientSession, seen: Counter[str]) -> None:
        async with session.get(f"{server.address}/api/v1/stream") as answer:
            async for piece in answer.content.iter_any():
                seen["bytes"] += len(piece)

    async def scenario() -> tuple[float, float, int]:
        async with ClientSession(timeout=ClientTimeout(total=None)) as session:
            alone_s = server.processor_s()
            await asyncio.sleep(WATCHED_S)
            alone_s = server.processor_s() - alone_s
            received: Counter[str] = Counter()
            viewers = [asyncio.create_task(watch(session, received)) for _ in range(VIEWERS)]
            await asyncio.sleep(2.0)
            assert received["bytes"] > VIEWERS * NODES
            received.clear()
            before_s = server.processor_s()
            await asyncio.sleep(WATCHED_S)
            used_s = server.processor_s() - before_s
            for viewer in viewers:
                viewer.cancel()
            await asyncio.gather(*viewers, return_exceptions=True)
            return alone_s / WATCHED_S, used_s / WATCHED_S, received["bytes"]

    alone, used, received = asyncio.run(scenario())
    tell(
        f"{NODES:,} nodes: the server uses {alone:.1%} of a core unwatched, {used:.1%} with {VIEWERS} viewers, "
        f"who get {received / VIEWERS / WATCHED_S / 1024:.1f} KiB a second each"
    )
    assert used < 0.4
