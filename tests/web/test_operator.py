"""The dashboard that a real operator serves: what a person pins is on the page at once, and soon it is so."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from aiohttp import ClientError, ClientSession
from playwright.async_api import expect

from joulie.catalogue.lookup import Catalogue
from joulie.cli.serve.operator_dashboard import dashboard_for
from joulie.cluster.lease.election import LeaseTimes
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_POWER_PROFILES, NODES, POWER_BUDGETS
from joulie.control.policies.static_partition import StaticPartition
from joulie.operator.loop import DecisionModels
from joulie.operator.process import Candidate, run
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import OperatorSettings, load
from testbed.processes import free_port
from tests.operator.objects import node
from tests.support.browser import Stage, in_browser
from tests.web.showing import Shown, shown, tell

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

FELT_S = 2.0
QUICK = LeaseTimes(1.5, 1.0, 0.1)


@asynccontextmanager
async def operating(server: MemoryServer, **env: str) -> AsyncIterator[str]:
    """The address of a running operator with its dashboard."""
    address = f"127.0.0.1:{free_port()}"
    settings = load(OperatorSettings, {"METRICS_ADDR": address, "CLUSTER_NAME": "in memory", **env})
    models = DecisionModels(StaticPartition(), LinearCoolingModel(settings.decision.twin), Catalogue())
    stop = asyncio.Event()
    process = asyncio.create_task(
        run(
            MemoryCluster(server),
            MemoryCluster(server),
            settings,
            models,
            Candidate("operator-1", "joulie-system", QUICK),
            attach=dashboard_for(settings, models, "operator-1"),
            stop=stop,
        )
    )
    try:
        await _until_ready(f"http://{address}")
        yield f"http://{address}"
    finally:
        stop.set()
        assert await asyncio.wait_for(process, 20) == 0


async def _until_ready(address: str) -> None:
    async with ClientSession() as session:
        await _until(session, f"{address}/readyz")


async def _until(session: ClientSession, url: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except ClientError:
                pass
            await asyncio.sleep(0.05)


async def _pin_shows(here: Shown, began_s: float, note: str) -> None:
    await expect(here.page.locator(".pin-note")).to_contain_text(note)
    seconds = time.monotonic() - began_s
    tell(f"pinned and seen on the page after {seconds:.2f} s")
    assert seconds < 5 * FELT_S


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@in_browser
async def test_a_pin_is_seen_before_the_next_decision_and_then_taken(stage: Stage) -> None:
    server = MemoryServer()
    for number in range(6):
        server.put(NODES, node(f"node-{number}"), "")
    async with (
        operating(server, RECONCILE_INTERVAL="4s") as address,
        shown(stage, address, "#/node/node-0") as here,
    ):
        page = here.page
        await expect(page.locator("#cluster-name")).to_contain_text("in memory")
        await expect(page.locator("#leader")).to_contain_text("operator-1")
        await expect(page.locator(".title-chip")).to_contain_text("performance")
        await expect(page.locator(".reason")).to_contain_text("of 6")
        began_s = time.monotonic()
        body = {"metadata": {"name": "hold"}, "spec": {"nodeName": "node-0", "profile": "eco"}}
        await MemoryCluster(server).create(NODE_POWER_PROFILES, body)
        await _pin_shows(here, began_s, "Pinned to eco by NodePowerProfile/")
        await expect(page.locator(".title-chip")).to_contain_text("eco")
        await expect(page.locator(".pin-note")).not_to_contain_text("next decision")
        await expect(page.locator(".reason")).to_contain_text("Pinned to eco by NodePowerProfile/hold")
        await page.keyboard.press("Escape")
        await expect(page.locator(".changes")).to_contain_text("pinned to eco by NodePowerProfile/hold")
        metrics = await page.request.get(f"{address}/metrics")
        assert metrics.ok


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@in_browser
async def test_a_cut_is_seen_on_the_operators_page_and_then_answered(stage: Stage) -> None:
    server = MemoryServer()
    for number in range(6):
        server.put(NODES, node(f"node-{number}"), "")
    async with operating(server, RECONCILE_INTERVAL="2s") as address, shown(stage, address) as here:
        cluster = MemoryCluster(server)
        await cluster.create(POWER_BUDGETS, {"metadata": {"name": "feed"}, "spec": {"watts": 90_000}})
        group = here.page.locator("[data-group=feed]")
        await expect(group.locator("[data-part=limit]")).to_have_text("90 kW")
        await expect(group.locator(".group-state")).not_to_have_text("unseen", timeout=30_000)
        began_s = time.monotonic()
        await cluster.patch(POWER_BUDGETS, "feed", {"spec": {"watts": 63_000}})
        await expect(group.locator("[data-part=limit]")).to_contain_text("63 kW")
        seconds = time.monotonic() - began_s
        tell(f"a cut of 30 % was seen on the page after {seconds:.2f} s")
        assert seconds < 5 * FELT_S
        await expect(group.locator("[data-part=limit]")).to_have_text("63 kW", timeout=30_000)
        status = msgspec.json.decode(await cluster.get(POWER_BUDGETS, "feed"))["status"]["groups"][0]
        api = await here.api("budgets")
        shown_group = api["budgets"][0]["groups"][0]
        assert (shown_group["limitW"], shown_group["floorW"]) == (status["limitWatts"], status["floorWatts"])


UNREACHABLE = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("wanted", "status"), [("true", 200), ("false", 404)])
def test_the_operator_serves_the_page_unless_told_not_to(tmp_path: Path, wanted: str, status: int) -> None:
    """As a process, with an API server that cannot be reached: the page is there and says that it waits."""
    config, port = tmp_path / "config", free_port()
    config.write_text(UNREACHABLE)
    env = {**os.environ, "METRICS_ADDR": f"127.0.0.1:{port}", "DASHBOARD": wanted}
    command = [sys.executable, "-m", "joulie", "operator", "--kubeconfig", str(config)]

    async def statuses() -> tuple[int, int]:
        async with ClientSession() as session:
            await _until(session, f"http://127.0.0.1:{port}/healthz")
            served = f"http://127.0.0.1:{port}"
            async with session.get(served) as page, session.get(f"{served}/api/v1/cluster") as api:
                return page.status, api.status

    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as operator:
        try:
            assert asyncio.run(statuses()) == (status, 503 if status == 200 else 404)
        finally:
            operator.terminate()
            operator.wait(30)


def test_a_node_pinned_from_the_command_line_shows_on_the_page(stage: Stage, fresh_cluster: ControlPlane) -> None:
    """A real API server, the operator and `joulie pin` as processes, a real browser."""
    from testbed.objects import fill

    fill(fresh_cluster, 12, 2)
    fresh_cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "joulie-system"}}])
    access = ["--kubeconfig", str(fresh_cluster.kubeconfig)]
    port = free_port()
    env = {**os.environ, "METRICS_ADDR": f"127.0.0.1:{port}", "RECONCILE_INTERVAL": "5s"}
    command = [sys.executable, "-m", "joulie", "operator", *access]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as operator:
        try:
            stage.run(_pinned_by_command(stage, f"http://127.0.0.1:{port}", access))
        finally:
            operator.terminate()
            assert operator.wait(30) == 0


async def _pinned_by_command(stage: Stage, address: str, access: list[str]) -> None:
    await _until_ready(address)
    async with shown(stage, address, "#/node/node-00003") as here:
        await expect(here.page.locator(".node-body")).to_be_visible()
        command = [sys.executable, "-m", "joulie", "pin", "node-00003", "eco", "--for", "2h", *access]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        await _pin_shows(here, time.monotonic(), "Pinned to eco until")
