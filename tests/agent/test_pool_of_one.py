"""A daemonset agent on a fake machine: one node, its own devices, and its own objects alone."""

from __future__ import annotations

import contextlib
import os
import resource
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory.cluster import MemoryServer
from joulie.cluster.port import EVENTS, NODE_HARDWARE, NODE_POWER_PROFILES, NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.settings import AgentSettings, load
from tests.agent.world import Running, World, agent, node, put_twin, scenario, twin, until, world
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
            put_twin(server, twin("a", 60, age_s=-3601))  # the operator is back as well
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
                await until(lambda: around.cpu_cap_w("a") == 480, "it is capped over HTTP")
                assert _limits(tree) == found
                around.server.delete(TELEMETRY_PROFILES, "route", None)
                await until(lambda: _limits(tree) == CAPPED, "it is the host's again")
                assert around.cpu_cap_w("a") is None
                await running.kill()
            _route_to(around, "http")
            async with _on(tree, server, tmp_path / "own"):
                await until(lambda: around.cpu_cap_w("a") == 480, "after a crash the new route is taken")
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


def test_killed_and_started_with_another_state_dir_it_ends_at_the_hardwares_maximum(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        found = _limits(tree)
        server.put(NODES, node("a"), "")
        put_twin(server, twin("a", 60))
        async with _on(tree, server, tmp_path / "before") as running:
            await until(lambda: _result(server)[0] == "applied", "it is capped, and that is said")
            await running.kill()
        assert _limits(tree) == CAPPED
        async with _on(tree, server, tmp_path / "after") as running:
            await until(
                lambda: any(one["reason"] == "CapWithoutJournal" for one in server.all(EVENTS)), "it is noticed"
            )
            assert await running.end() == 0
        assert _limits(tree) == found

    scenario(play())


def test_so_does_one_that_was_capped_by_a_pin_alone(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        found = _limits(tree)
        server.put(NODES, node("a"), "")
        spec = {"nodeName": "a", "profile": "eco"}
        server.put(NODE_POWER_PROFILES, {"metadata": {"name": "a"}, "spec": spec}, "")
        async with _on(tree, server, tmp_path / "before") as running:

            def is_said() -> bool:
                status = server.all(NODE_POWER_PROFILES)[0].get("status") or {}
                return bool((status.get("control") or {}).get("cpu", {}).get("result") == "applied")

            await until(is_said, "it is capped, and its pin says so")
            await running.kill()
        assert _limits(tree) != found
        async with _on(tree, server, tmp_path / "after") as running:
            await until(
                lambda: any(one["reason"] == "CapWithoutJournal" for one in server.all(EVENTS)), "it is noticed"
            )
            assert await running.end() == 0
        assert _limits(tree) == found

    scenario(play())


def test_without_a_free_file_descriptor_a_stop_still_restores(tmp_path: Path) -> None:
    async def play() -> None:
        tree, server = build("intel-xeon-6148-dual", tmp_path), MemoryServer()
        found = _limits(tree)
        server.put(NODES, node("a"), "")
        put_twin(server, twin("a", 60))
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken: list[int] = []
        async with _on(tree, server, tmp_path / "state") as running:
            await until(lambda: _result(server)[0] == "applied", "it is capped")
            try:
                highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
                resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 64, before[1]))
                with contextlib.suppress(OSError):
                    while len(taken) < 2000:
                        taken.append(os.open(os.devnull, os.O_RDONLY))
                assert len(taken) < 2000
                assert await running.end() == 0
            finally:
                for handle in taken:
                    os.close(handle)
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert _limits(tree) == found

    scenario(play())
