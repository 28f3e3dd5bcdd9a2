"""A dashboard that is really served, and a page that really shows it, with everything it does written down."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientSession
from playwright.async_api import BrowserContext, Page, expect

from joulie.serving import HttpServer, serve
from joulie.settings import OperatorSettings, load
from joulie.web.dashboard import Dashboard
from tests.support.browser import Stage
from tests.web.world import World

PATIENT_MS = 10_000

expect.set_options(timeout=PATIENT_MS)


def tell(measured: str) -> None:
    """Seen with `pytest -s`, and with a failure."""
    sys.stdout.write(f"\n{measured}\n")


@dataclass
class Shown:
    """A page, and what it did besides showing something."""

    address: str
    page: Page
    complaints: list[str] = field(default_factory=list)  # console errors and exceptions
    asked: list[str] = field(default_factory=list)  # addresses of requests

    async def api(self, path: str) -> Any:
        """The same question, asked by another viewer."""
        async with ClientSession() as session, session.get(f"{self.address}/api/v1/{path}") as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def text(self, selector: str) -> str:
        return (await self.page.locator(selector).first.inner_text()).strip()

    def check(self) -> None:
        """Nothing went wrong, and no other server was asked for anything."""
        assert self.complaints == []
        assert {urlsplit(url).netloc for url in self.asked} <= {urlsplit(self.address).netloc}


@asynccontextmanager
async def served(world: World, port: int = 0, **more: Any) -> AsyncIterator[tuple[str, Dashboard]]:
    """The dashboard of a world, at an address."""
    dashboard = Dashboard(
        world.read, world.facts, load(OperatorSettings, {}), world.clock, budgets=world.budgets.values, **more
    )
    runner = await serve(f"127.0.0.1:{port}", lambda: [b""], lambda: None, lambda: None, dashboard.routes())
    looking = asyncio.create_task(dashboard.run())
    try:
        yield address_of(runner), dashboard
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await runner.cleanup()


def address_of(runner: HttpServer) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"


@asynccontextmanager
async def shown(stage: Stage, address: str, at: str = "#/", **context: Any) -> AsyncIterator[Shown]:
    """A page at an address; when it is left, it must have behaved."""
    options = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light", **context}
    opened: BrowserContext = await stage.browser.new_context(**options)
    page = await opened.new_page()
    here = Shown(address, page)
    page.on("console", lambda said: here.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: here.complaints.append(str(error)))
    page.on("request", lambda request: here.asked.append(request.url))
    try:
        await page.goto(f"{address}/{at}")
        await expect(page.locator("#live")).to_have_attribute("data-live", "true")
        yield here
        here.check()
    finally:
        await opened.close()
