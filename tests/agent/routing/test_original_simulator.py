"""Against the simulator of the Go original: its words, its refusals, and caps that take a while to settle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.journal import POOL_BOOT_ID, Journal, journal_path
from joulie.devices.http import capper as http
from joulie.devices.http.capper import HttpGpus, HttpThrottle, HttpWatts
from joulie.devices.http.client import HttpClient, HttpNode
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import target
from tests.agent.routing.original_simulator import CPU_W, GPU_MAX_W, GPU_W, MAX_W, OriginalNode, original_node
from tests.agent.world import scenario

LIMITS = CapLimits(cpu_max_w=MAX_W, gpu_max_w_each=GPU_MAX_W)
Script = Callable[[OriginalNode, NodeControl], Awaitable[None]]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.devices.http.client.FRESH_S", 0.0)
    monkeypatch.setattr(http, "POLL_S", 0.01)
    monkeypatch.setattr(http, "STILL_S", 0.2)


def _play(tmp_path: Path, script: Script, *, only: type[http.HttpCapper] | None = None, targets: bool = True) -> None:
    async def play() -> None:
        async with original_node() as node, HttpClient() as client:
            node.tells_targets = targets
            at = HttpNode(client, f"{node.url}/control/a")
            cappers = [kind(at, "a") for kind in (HttpWatts, HttpThrottle, HttpGpus) if only in (None, kind)]
            journal = Journal.open(journal_path(tmp_path, "a"), node="a", boot_id=POOL_BOOT_ID)
            await script(node, NodeControl("a", cappers, journal, dvfs=DvfsSettings()))

    scenario(play())


@pytest.mark.parametrize("targets", [True, False])
def test_caps_are_set_read_back_where_they_settle_and_lifted_to_what_was_found(tmp_path: Path, targets: bool) -> None:
    async def script(node: OriginalNode, control: NodeControl) -> None:
        done = await control.enforce(target(cpu_w=432, gpu_w=420), LIMITS, 0.0)
        assert (done.cpu.result, done.cpu.held_w, done.gpu.result, done.gpu.held_w) == ("applied", 432, "applied", 420)
        assert (node.cap_w, node.gpu_cap_w) == (432, 420)
        again = await control.enforce(target(cpu_w=432, gpu_w=420), LIMITS, 20.0)
        assert (again.wrote, again.corrections) == (0, 0)
        assert (await control.restore()).left == ()
        assert (node.cap_w, node.gpu_cap_w) == (MAX_W, GPU_MAX_W)
        sent = [command.get("capWatts", "-") for command in node.commands if command["action"].startswith("rapl")]
        assert sent == [432, None, MAX_W]

    _play(tmp_path, script, targets=targets)


def test_a_throttle_is_sent_as_an_integer(tmp_path: Path) -> None:
    async def script(node: OriginalNode, control: NodeControl) -> None:
        done = await control.enforce(target(cpu_pct=59.6), CapLimits(), 0.0)
        assert (done.cpu.result, done.cpu.held_w, node.throttle_pct) == ("applied", None, 40)
        assert [type(command["throttlePct"]) for command in node.commands] == [int]
        assert (await control.restore()).left == ()
        assert node.throttle_pct == 0

    _play(tmp_path, script, only=HttpThrottle)


def test_the_power_of_gpus_is_not_counted_as_that_of_cpus() -> None:
    async def play() -> None:
        async with original_node() as node, HttpClient() as client:
            at = HttpNode(client, f"{node.url}/control/a")
            assert await HttpWatts(at, "a").power_w() == CPU_W
            assert await HttpGpus(at, "a").power_w() == GPU_W

    scenario(play())


@pytest.mark.parametrize(
    ("status", "result"), [(404, "blocked"), (405, "blocked"), (401, "blocked"), (500, "error"), (400, "error")]
)
@pytest.mark.parametrize("only", [HttpWatts, HttpThrottle, HttpGpus])
@pytest.mark.parametrize("wanted", [target(cpu_pct=100, gpu_pct=100), target(cpu_w=MAX_W, gpu_w=GPU_MAX_W)])
def test_a_path_that_never_took_a_command_is_not_applied_though_nothing_needs_to_be_held(
    tmp_path: Path, status: int, result: str, only: type[http.HttpCapper], wanted: object
) -> None:
    async def script(node: OriginalNode, control: NodeControl) -> None:
        node.control_status = status
        for tick in range(3):
            done = await control.enforce(wanted, LIMITS, 20.0 * tick)  # type: ignore[arg-type]
            outcome = done.gpu if only is HttpGpus else done.cpu
            assert outcome.result == result
            assert f"HTTP {status}" in outcome.message
            assert "foreign" not in outcome.message
        node.control_status = 200
        done = await control.enforce(wanted, LIMITS, 2000.0)  # type: ignore[arg-type]
        assert (done.gpu if only is HttpGpus else done.cpu).result == "applied"
        assert (node.cap_w, node.gpu_cap_w, node.throttle_pct) == (MAX_W, GPU_MAX_W, 0)

    _play(tmp_path, script, only=only)


def test_a_redirect_is_refused_and_not_followed(tmp_path: Path) -> None:
    async def script(node: OriginalNode, control: NodeControl) -> None:
        async with original_node() as elsewhere:
            node.redirect_to = f"{elsewhere.url}/control/a"
            done = await control.enforce(target(cpu_w=432), LIMITS, 0.0)
            assert done.cpu.result == "blocked"
            assert "redirects are not followed" in done.cpu.message
            assert elsewhere.url not in done.cpu.message
            assert elsewhere.commands == []

    _play(tmp_path, script, only=HttpWatts)
