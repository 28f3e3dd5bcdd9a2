"""A real Chromium for tests, driven by playwright on an event loop of its own thread.

Where there is none (`chromium` tries hard) the tests are skipped with the reason; under `CI=true` they fail.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from tests.support.chromium import chromium_binary
from tests.support.obtaining import obtained, say_skipped

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

NEEDED = "needs a real Chromium"
TEST_WITHIN_S = 120.0

P = ParamSpec("P")
T = TypeVar("T")


class Stage:
    """One browser on one event loop, in a thread: a test's scenario runs there, beside the server that it shows."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._playwright: Playwright | None = None
        self.browser: Browser

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(scenario, self._loop).result(TEST_WITHIN_S)

    async def open(self, binary: Path) -> None:
        from playwright.async_api import async_playwright  # late: most test runs need no browser

        self._playwright = await async_playwright().start()
        # As root, and in containers with little shared memory, Chromium needs to be told.
        self.browser = await self._playwright.chromium.launch(
            executable_path=str(binary), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )

    async def close(self) -> None:
        if self._playwright is not None:
            if hasattr(self, "browser"):
                await self.browser.close()
            await self._playwright.stop()

    def end(self) -> None:
        self.run(self.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def in_browser(scenario: Callable[Concatenate[Stage, P], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test written as a coroutine that runs on the stage."""

    @functools.wraps(scenario)
    def run(stage: Stage, *args: P.args, **kwargs: P.kwargs) -> None:
        stage.run(scenario(stage, *args, **kwargs))

    return run


@pytest.fixture(scope="module")
def stage(pytestconfig: pytest.Config) -> Iterator[Stage]:
    """A browser for the tests of a module; skips where there is none, and in CI fails."""
    binary = obtained(chromium_binary, pytestconfig, NEEDED)
    opened = Stage()
    try:
        opened.run(opened.open(binary))
        yield opened
    finally:
        opened.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    say_skipped(terminalreporter, NEEDED)
