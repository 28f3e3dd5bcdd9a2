"""Orders on machines behind HTTP: the boot is the one that the Node names, and a node that leaves scope stays held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from joulie.agent.budget.order_file import order_path
from joulie.cluster.port import NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.simulator.faults import Fault
from tests.agent.budget.machines import ONCE_AN_HOUR, RENEW_S
from tests.agent.budget.orders import BudgetLoop, order, release
from tests.agent.world import Body, World, agent, node, put_twin, scenario, twin, until, world

MAX_W = 800  # two packages of 400 W


def booted(name: str, boot: str = "boot-1", gpus: int = 0, **labels: str) -> Body:
    body = node(name, gpus, **labels)
    body["status"]["nodeInfo"] = {"bootID": boot}
    return body


@asynccontextmanager
async def live_operator(around: World) -> AsyncIterator[None]:
    loop = BudgetLoop(around.server)

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            loop.renew()

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


def said(around: World, name: str = "a") -> Body:
    budget: Body = around.control(name).get("budget") or {}
    return budget


def confirms(around: World, number: int, boot: str, cpu_w: float | None, gpu_w: float | None = None) -> bool:
    told = said(around)
    held: dict[str, Any] | None = None if cpu_w is None else {"cpuWattsPerPackage": cpu_w}
    if held is not None and gpu_w is not None:
        held["gpuWattsPerGpu"] = gpu_w
    return (told.get("order"), told.get("bootId"), told.get("held")) == (number, boot, held)


def test_packages_and_boards_follow_at_once_and_a_reboot_is_confirmed_anew(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, booted("a", gpus=4)) as around, live_operator(around):
            put_twin(around.server, twin("a", 100, 100))
            async with agent(around.server, around.env(**ONCE_AN_HOUR)):
                await until(lambda: confirms(around, 0, "boot-1", None), "no order holds it")
                put_twin(around.server, twin("a", 100, 100, **order(1, 200, gpu_w=400)))
                await until(lambda: (around.cpu_cap_w("a"), around.gpu_cap_w("a")) == (400, 400), "both are held")
                await until(lambda: confirms(around, 1, "boot-1", 200, 400), "and confirmed")
                put_twin(around.server, twin("a", 100, 100, **order(2, 400, gpu_w=700)))
                await until(lambda: confirms(around, 2, "boot-1", 400, 700), "the maximum needs no limit")
                put_twin(around.server, twin("a", 100, 100, **order(3, 250, gpu_w=300)))
                await until(lambda: confirms(around, 3, "boot-1", 250, 300), "a cut")
                around.simulation.put_fault("a", Fault("reboot"))
                assert around.cpu_cap_w("a") is None
                around.server.put(NODES, booted("a", "boot-2", gpus=4), "")
                await until(lambda: confirms(around, 3, "boot-2", 250, 300), "confirmed for the boot that was read")
                assert (around.cpu_cap_w("a"), around.gpu_cap_w("a")) == (500, 300)

    scenario(play())


def test_a_node_that_loses_its_label_stays_held_until_its_order_is_released(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, booted("a")) as around, live_operator(around):
            put_twin(around.server, twin("a", 100, **order(1, 200, failsafe_w=150)))
            async with agent(around.server, around.env()) as running:
                await until(lambda: confirms(around, 1, "boot-1", 200), "the order is confirmed")
                around.server.put(NODES, booted("a", managed="false"), "")
                await until(lambda: around.cpu_cap_w("a") == 300, "it goes to its failsafe")
                assert await running.end() == 0
            assert around.cpu_cap_w("a") == 300
            async with agent(around.server, around.env()) as running:  # the next one takes it up, and lifts nothing
                await until(lambda: said(around).get("session") == 2, "it speaks")
                assert around.cpu_cap_w("a") == 300
                put_twin(around.server, twin("a", 100, **release(2)))
                await until(lambda: around.cpu_cap_w("a") is None, "released")
                await until(lambda: not order_path(around.state_dir, "a").exists(), "and forgotten")
                assert await running.end() == 0

    scenario(play())


def test_another_route_has_to_hold_the_order_before_the_first_lets_go(tmp_path: Path) -> None:
    async def play() -> None:
        async with (
            world(tmp_path, booted("a")) as around,
            world(tmp_path / "other", booted("a")) as other,
            live_operator(around),
        ):
            put_twin(around.server, twin("a", 100, **order(1, 200)))
            async with agent(around.server, around.env()):
                await until(lambda: confirms(around, 1, "boot-1", 200), "held over the first route")
                _route(around, {"type": "none"})
                await until(lambda: confirms(around, 1, "boot-1", None), "the second holds nothing")
                assert around.cpu_cap_w("a") == 400
                _route(around, {"type": "http", "http": {"endpoint": f"{other.sim_url}/control/a"}})
                await until(lambda: confirms(around, 1, "boot-1", 200), "the third does")
                assert other.cpu_cap_w("a") == 400
                await until(lambda: around.cpu_cap_w("a") is None, "so the first is restored")

    scenario(play())


def test_confirmations_do_not_wait_for_other_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.agent.reporting.reporter.MIN_RATE_PER_S", 0.01)  # a report every hundred seconds
    monkeypatch.setattr("joulie.agent.reporting.reporter.NODES_PER_WRITE", 1e9)
    names = [f"n{number}" for number in range(20)]

    async def play() -> None:
        async with world(tmp_path, *(booted(name) for name in names)) as around, live_operator(around):
            for name in names:
                put_twin(around.server, twin(name, 100))
            async with agent(around.server, around.env(**ONCE_AN_HOUR)):
                await until(lambda: all(said(around, name) for name in names), "all say that no order holds them")
                for number in (1, 2):
                    for name in names:
                        put_twin(around.server, twin(name, 100, **order(number, 100 * number + 100)))
                    for name in names:
                        await until(lambda n=name, i=number: said(around, n)["order"] == i, "confirmed")  # type: ignore[misc]

    scenario(play())


def test_a_blocked_machine_confirms_nothing_and_says_so_again_when_it_is_free(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, booted("a")) as around, live_operator(around):
            put_twin(around.server, twin("a", 100, **order(1, 200)))
            async with agent(around.server, around.env()):
                await until(lambda: confirms(around, 1, "boot-1", 200), "confirmed")
                around.simulation.put_fault("a", Fault("blocked", "blocked"))
                put_twin(around.server, twin("a", 100, **order(2, 150)))
                await until(lambda: confirms(around, 2, "boot-1", None), "nothing is held in watts")
                around.simulation.put_fault("a", Fault("none"))
                put_twin(around.server, twin("a", 100, **order(3, 160)))
                await until(lambda: confirms(around, 3, "boot-1", 160), "held again")

    scenario(play())


def _route(around: World, control: Body) -> None:
    spec = {"target": {"scope": "node", "nodeName": "a"}, "controls": {"cpu": control}}
    around.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "route"}, "spec": spec}, "")


def test_a_twin_of_another_uid_is_followed_and_named(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, booted("a")) as around, live_operator(around):
            put_twin(around.server, twin("a", 100, **order(7, 200, failsafe_w=150)))
            async with agent(around.server, around.env()):
                await until(lambda: confirms(around, 7, "boot-1", 200), "confirmed")
                before = said(around)["twinUid"]
                around.server.delete(NODE_TWINS, "a", None)
                await until(lambda: around.cpu_cap_w("a") == 300, "the failsafe holds")
                put_twin(around.server, twin("a", 100, **order(1, 180)))
                await until(lambda: confirms(around, 1, "boot-1", 180), "the new twin's first order")
                assert said(around)["twinUid"] != before

    scenario(play())
