"""Endpoints that show little of what they hold, or take no limit away: caps by acknowledgement, and caps that end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.journal import POOL_BOOT_ID, Journal, journal_path
from joulie.devices.http import capper as http
from joulie.devices.http.capper import ENDLESS_W, HttpGpus, HttpThrottle, HttpWatts
from joulie.devices.http.client import HttpClient, HttpNode
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import target
from tests.agent.world import scenario

LIMITS = CapLimits(cpu_max_w=720.0, gpu_max_w_each=700.0)
FIELDS = {"rapl": "capWatts", "dvfs": "throttlePct", "gpu": "capWattsPerGpu"}


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.devices.http.client.FRESH_S", 0.0)
    monkeypatch.setattr(http, "POLL_S", 0.01)
    monkeypatch.setattr(http, "STILL_S", 0.1)


class Terse:
    """It draws power, takes commands, and shows only those of its limits that are in `shows`."""

    def __init__(self) -> None:
        self.url = ""
        self.held: dict[str, Any] = {"rapl": None, "dvfs": 0, "gpu": None}
        self.shows: set[str] = set()
        self.omits_none = False  # as programs that leave out what is empty
        self.ignores_null = self.refuses_null = False
        self.highest_w: float | None = None  # above it a limit is held to this
        self.commands: list[Any] = []
        self.late_looks = 0  # so many looks still show what was held before a command
        self._before: list[dict[str, Any]] = []

    async def telemetry(self, _: web.Request) -> web.Response:
        held = self._before.pop() if self._before else self.held
        shown = {FIELDS[kind]: held[kind] for kind in self.shows if not (self.omits_none and not held[kind])}
        gpu = {"present": True, "count": 2, "powerWattsTotal": 300}
        if "capWattsPerGpu" in shown:
            gpu["capWattsPerGpuApplied"] = shown.pop("capWattsPerGpu")
        body: dict[str, Any] = {"packagePowerWatts": 245.3, "gpu": gpu}
        return web.json_response(body | ({"cpu": shown} if shown or self.omits_none else {}))

    async def control(self, request: web.Request) -> web.Response:
        command = json.loads(await request.text())
        kind = command["action"].partition(".")[0]
        value = command[FIELDS[kind]]
        self.commands.append(value)
        self._before = [dict(self.held) for _ in range(self.late_looks)]
        if value is None and self.refuses_null:
            return web.json_response({"result": "error"})
        if not (value is None and self.ignores_null):
            self.held[kind] = min(value, self.highest_w) if value and self.highest_w else value
        return web.json_response({"result": "applied"})


@asynccontextmanager
async def terse() -> AsyncIterator[Terse]:
    node, app = Terse(), web.Application()
    app.router.add_get("/telemetry/a", node.telemetry)
    app.router.add_post("/control/a", node.control)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    node.url = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        yield node
    finally:
        await runner.cleanup()


Restart = Callable[[], NodeControl]


def _play(tmp_path: Path, script: Callable[[Terse, Restart], Awaitable[None]]) -> None:
    async def play() -> None:
        async with terse() as node, HttpClient() as client:

            def control() -> NodeControl:
                at = HttpNode(client, f"{node.url}/control/a")
                journal = Journal.open(journal_path(tmp_path, "a"), node="a", boot_id=POOL_BOOT_ID)
                cappers = [kind(at, "a") for kind in (HttpWatts, HttpThrottle, HttpGpus)]
                return NodeControl("a", cappers, journal, dvfs=DvfsSettings())

            await script(node, control)

    scenario(play())


def test_what_was_acknowledged_counts_where_nothing_is_shown_and_no_watts_are_claimed(tmp_path: Path) -> None:
    async def script(node: Terse, start: Restart) -> None:
        control = start()
        done = await control.enforce(target(cpu_w=400, gpu_w=300), LIMITS, 0.0)
        for outcome in (done.cpu, done.gpu):
            assert (outcome.result, outcome.held_w) == ("applied", None)
            assert "acknowledged" in outcome.message
        assert (node.held["rapl"], node.held["gpu"]) == (400, 300)
        assert (await control.enforce(target(cpu_w=400, gpu_w=300), LIMITS, 20.0)).wrote == 0
        assert (await control.restore()).left == ()
        assert node.held == {"rapl": None, "dvfs": 0, "gpu": None}

    _play(tmp_path, script)


def test_a_process_that_knows_of_no_command_still_takes_back_what_the_journal_names(tmp_path: Path) -> None:
    async def script(node: Terse, start: Restart) -> None:
        await start().enforce(target(cpu_w=400, gpu_w=300), LIMITS, 0.0)
        assert (await start().restore()).left == ()
        assert node.held == {"rapl": None, "dvfs": 0, "gpu": None}

    _play(tmp_path, script)


def test_a_limit_that_was_shown_and_is_left_out_now_is_gone_and_is_set_again(tmp_path: Path) -> None:
    async def script(node: Terse, start: Restart) -> None:
        node.shows, node.omits_none = {"rapl", "dvfs", "gpu"}, True
        control = start()
        assert (await control.enforce(target(cpu_w=400), LIMITS, 0.0)).cpu.held_w == 400
        node.held["rapl"] = None
        done = await control.enforce(target(cpu_w=400), LIMITS, 20.0)
        assert (done.cpu.result, done.corrections, node.held["rapl"]) == ("applied", 1, 400)

    _play(tmp_path, script)


@pytest.mark.parametrize("refuses", [True, False])
@pytest.mark.parametrize("highest_w", [None, 720.0])
@pytest.mark.parametrize("restarted", [True, False])
def test_without_a_word_for_none_and_without_a_limit_before_nothing_is_held_back_in_the_end(
    tmp_path: Path, refuses: bool, highest_w: float | None, restarted: bool
) -> None:
    async def script(node: Terse, start: Restart) -> None:
        node.shows, node.highest_w = {"rapl", "dvfs", "gpu"}, highest_w
        control = start()
        await control.enforce(target(cpu_w=400), LIMITS, 0.0)
        node.refuses_null, node.ignores_null = refuses, not refuses
        control = start() if restarted else control
        assert (await control.restore()).left == ()
        assert node.held["rapl"] == (highest_w or ENDLESS_W)
        node.commands.clear()
        assert (await control.enforce(target(cpu_pct=100), LIMITS, 20.0)).cpu.result == "applied"

    _play(tmp_path, script)


def test_a_limit_that_is_shown_late_is_waited_for_and_no_throttle_takes_its_place(tmp_path: Path) -> None:
    async def script(node: Terse, start: Restart) -> None:
        node.shows, node.late_looks = {"rapl", "dvfs", "gpu"}, 30
        done = await start().enforce(target(cpu_w=400, gpu_w=300), LIMITS, 0.0)
        assert [(one.result, one.held_w) for one in (done.cpu, done.gpu)] == [("applied", 400), ("applied", 300)]
        assert node.held["dvfs"] == 0

    _play(tmp_path, script)
