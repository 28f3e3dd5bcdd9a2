"""A daemonset agent on a fake machine: one node, its own devices, and its own objects alone."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from joulie.agent.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory import MemoryServer
from joulie.cluster.port import EVENTS, NODE_HARDWARE, NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.settings import AgentSettings, load
from tests.agent_shell.world import Running, World, agent, node, put_twin, scenario, twin, until, world
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import build

LIMITS = tuple(f"class/powercap/intel-rapl:{package}/constraint_0_power_limit_uw" for package in (0, 1))
CAPPED = [90_000_000, 90_000_000]  # 60 % of 150 W each


def _limits(tree: Tree) -> list[int]:
    return [int((tree.sys / path).read_text()) for path in LIMITS]


def _on(tree: Tree, server: MemoryServer, state: Path, **more: str) -> AbstractAsyncContextManager[Running]:
    env = {
        "NODE_NAME": "a",
        "RECONCILE_INTERVAL": "200ms",
        "STATE_DIR": str(state),
        "HOST_SYS_PATH": str(tree.sys),
        **more,
    }
    host = HostDevices(load(AgentSettings, env), Catalogue(), str(tree.proc))
    return agent(server, env, host=host)


def _result(server: MemoryServer, kind: str = "cpu") -> tuple[str | None, str | None]:
    for body in server.all(NODE_TWINS):
        if body["metadata"]["name"] == "a":
            told = body["status"].get("controlStatus", {}).get(kind, {})
            return told.get("result"), told.get("backend")
    return None, None


@pytest.mark.slow
def test_without_the_api_server_for_a_lease_the_machine_is_let_go_and_with_it_capped_again(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        found = _limits(tree)
        server.put(NODES, node("a"), "")
        put_twin(server, twin("a", 60, age_s=-3600))
        async with _on(tree, server, tmp_path / "state", CAP_LEASE="1500ms") as running:
            await until(lambda: _limits(tree) == CAPPED, "it is capped")
            running.cluster.cut_off()
            await until(lambda: _limits(tree) == found, "it is let go")
            running.cluster.reconnect()
            await until(lambda: _limits(tree) == CAPPED, "it is capped again")
            await until(
                lambda: {"CapLeaseEnded", "CapLeaseResumed"} <= {event["reason"] for event in server.all(EVENTS)},
                "events tell of it",
            )
        assert _limits(tree) == found

    scenario(play())


def test_a_contested_cap_is_given_up_and_said(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        server.put(NODES, node("a"), "")
        put_twin(server, twin("a", 60))
        async with _on(tree, server, tmp_path / "state") as running:
            await until(lambda: _limits(tree) == CAPPED, "it is capped")

            def tamper() -> bool:
                for path in LIMITS:
                    (tree.sys / path).write_text("140000000")
                return _result(server)[0] == "blocked"

            await until(tamper, "the agent gives way")
            (told,) = (body for body in server.all(NODE_TWINS))
            assert "contested" in told["status"]["controlStatus"]["cpu"]["message"]
            await until(lambda: "CapContested" in {event["reason"] for event in server.all(EVENTS)}, "an event says so")
            corrections = ("joulie_agent_drift_corrections_total", 'node="a"')
            assert (await running.metrics(corrections))[corrections] >= 3

    scenario(play())


def test_a_route_to_http_and_back_leaves_no_cap_on_either_side(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            tree, server = build("intel-xeon-6148-dual", tmp_path), around.server
            found = _limits(tree)
            put_twin(server, twin("a", 60))
            async with _on(tree, server, tmp_path / "own") as running:
                await until(lambda: _limits(tree) == CAPPED, "it is capped by the host's own limits")
                _route_to(around, "http")
                await until(lambda: around.cpu_cap_w("a") == 432, "it is capped over HTTP")
                assert _limits(tree) == found
                around.server.delete(TELEMETRY_PROFILES, "route", None)
                await until(lambda: _limits(tree) == CAPPED, "it is the host's again")
                assert around.cpu_cap_w("a") is None
                await running.kill()
            _route_to(around, "http")
            async with _on(tree, server, tmp_path / "own"):
                await until(lambda: around.cpu_cap_w("a") == 432, "after a crash the new route is taken")
                await until(lambda: _limits(tree) == found, "and what the old one capped is put back")

    scenario(play())


def _route_to(around: World, kind: str) -> None:
    control = {"type": kind, "http": {"endpoint": f"{around.sim_url}/control/{{node}}"}}
    spec = {"target": {"scope": "node", "nodeName": "a"}, "controls": {"cpu": control}}
    around.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "route"}, "spec": spec}, "")


def test_it_sees_and_writes_its_own_nodes_objects_alone(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        for name in ("a", "b"):
            server.put(NODES, node(name), "")
            put_twin(server, twin(name, 60))
        async with _on(tree, server, tmp_path / "state") as running:
            await until(lambda: _result(server)[0] == "applied", "it is capped")
            await until(lambda: bool(server.all(NODE_HARDWARE)), "it is published")
            assert [body["metadata"]["name"] for body in server.all(NODE_HARDWARE)] == ["a"]
            assert (await running.metrics())["joulie_agent_nodes", ""] == 1
            (other,) = (body for body in server.all(NODE_TWINS) if body["metadata"]["name"] == "b")
            assert "controlStatus" not in other["status"]

    scenario(play())


@pytest.mark.parametrize(
    ("machine", "result", "backend", "mode"),
    [
        ("intel-xeon-6148-dual", "applied", "rapl", "rapl"),
        ("amd-epyc-9654-hsmp", "applied", "hsmp", "rapl"),
        ("arm-altra-dual", "applied", "dvfs", "dvfs"),
        ("vm", "blocked", "dvfs", "none"),  # the last that was tried
    ],
)
def test_each_kind_of_machine_is_held_by_the_best_that_it_has(
    tmp_path: Path, machine: str, result: str, backend: str, mode: str
) -> None:
    async def play() -> None:
        tree, server = build(machine, tmp_path), MemoryServer()
        server.put(NODES, node("a"), "")
        put_twin(server, twin("a", 60))
        async with _on(tree, server, tmp_path / "state") as running:
            await until(lambda: _result(server)[0] in ("applied", "blocked"), "something became of it")
            assert _result(server) == (result, backend)
            held = ("joulie_backend_mode", f'node="a",mode="{mode}"')
            assert (await running.metrics(held))[held] == 1
            await until(lambda: any("status" in body for body in server.all(NODE_HARDWARE)), "hardware is published")
            status = server.all(NODE_HARDWARE)[0]["status"]
            assert status["capabilities"]["cpuControl"] is (result == "applied")
            if result == "blocked":
                assert status["cpu"]["warnings"]

    scenario(play())
