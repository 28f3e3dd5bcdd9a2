"""A pool agent on simulated machines: targets reach devices, results reach the twins, and nothing is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from joulie.agent.shards import fnv1a_32
from joulie.cluster.port import NODE_HARDWARE, NODE_POWER_PROFILES, NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.simulator.faults import Fault
from tests.agent.world import World, agent, node, put_twin, scenario, twin, until, world

ECO_W, SOME_W = 480, 640  # 60 % and 80 % of two EPYC 9654


def test_targets_reach_the_machines_and_results_reach_the_twins(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b", gpus=4), node("c")) as around:
            put_twin(around.server, twin("a", 60))
            put_twin(around.server, twin("b", 60, gpu_pct=60))
            put_twin(around.server, twin("c", 100))
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "a is capped to 60 % of 800 W")
                await until(lambda: around.gpu_cap_w("b") == 420, "each GPU of b is capped to 60 % of 700 W")
                await until(lambda: around.control("b").get("gpu", {}).get("result") == "applied", "b says so")
                await until(lambda: _result(around, "a") == _result(around, "c") == "applied", "a and c say so")
                await until(lambda: "status" in (around.get(NODE_HARDWARE, "b") or {}), "hardware is published")
                assert around.cpu_cap_w("c") is None
                assert (_result(around, "a"), around.control("a")["cpu"]["backend"]) == ("applied", "http")
                assert "gpu" not in around.control("a")
                hardware = around.get(NODE_HARDWARE, "b")
                assert hardware is not None
                assert (hardware["status"]["gpu"]["count"], hardware["status"]["quality"]["overall"]) == (4, "exact")
                assert hardware["metadata"]["ownerReferences"][0]["name"] == "b"
                found = await running.metrics(
                    *(("joulie_agent_enforced_cap_watts", f'node="{n}",device="cpu"') for n in "abc")
                )
                for kind in ("requested", "enforced"):
                    assert found[f"joulie_agent_{kind}_cap_watts", 'node="a",device="cpu"'] == ECO_W
                    assert found[f"joulie_agent_{kind}_cap_watts", 'node="b",device="gpu"'] == 420
                assert found["joulie_backend_mode", 'node="a",mode="rapl"'] == 1
                assert found["joulie_policy_cap_watts", 'node="a",policy="static_partition"'] == ECO_W
                put_twin(around.server, twin("a", 80))
                await until(lambda: around.cpu_cap_w("a") == SOME_W, "a follows its twin")
                assert await running.end() == 0
            assert [around.cpu_cap_w(name) for name in "abc"] == [None] * 3
            assert around.gpu_cap_w("b") is None
            assert _result(around, "a") == "none"
            assert "stopped" in around.control("a")["cpu"]["message"]

    scenario(play())


@pytest.mark.slow
def test_shards_split_the_nodes_and_a_dead_ones_nodes_are_left_alone_and_grow_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joulie.agent.reporting.status.REFRESH_S", 0.5)
    monkeypatch.setattr("joulie.agent.reporting.reporter.POLL_S", 0.1)
    names = [f"node-{number}" for number in range(12)]
    of_first = {name for name in names if fnv1a_32(name) % 2 == 0}

    async def play() -> None:
        async with world(tmp_path, *map(node, names)) as around:
            for name in names:
                put_twin(around.server, twin(name))
            two = {"POOL_SHARDS": "2"}
            async with (
                agent(around.server, around.env(**two, POOL_SHARD_ID="0")) as first,
                agent(around.server, around.env(**two, POD_NAME="agent-1")) as second,
            ):
                await until(lambda: all(_result(around, name) == "applied" for name in names), "all are capped")
                for running, own in ((first, of_first), (second, set(names) - of_first)):
                    told = {
                        key[1]
                        for key in await running.metrics(*_ticked(own))
                        if key[0] == "joulie_reconcile_errors_total"
                    }
                    assert told == {f'node="{name}"' for name in own}
                await second.kill()
                before = {name: around.control(name)["cpu"]["updatedAt"] for name in names}
                await until(
                    lambda: all(around.control(name)["cpu"]["updatedAt"] > before[name] for name in of_first),
                    "the living shard goes on speaking of its nodes",
                )
                silent = {name for name in names if around.control(name)["cpu"]["updatedAt"] == before[name]}
                assert silent == set(names) - of_first
                assert all(around.cpu_cap_w(name) == ECO_W for name in names)
            async with agent(around.server, around.env(**two, POD_NAME="agent-1")):
                await until(
                    lambda: all(around.control(name)["cpu"]["updatedAt"] > before[name] for name in silent),
                    "who takes its place speaks again",
                )

    scenario(play())


def _ticked(names: set[str]) -> list[tuple[str, str]]:
    return [("joulie_reconcile_errors_total", f'node="{name}"') for name in names]


def _result(around: World, name: str, kind: str = "cpu") -> str | None:
    result: str | None = around.control(name).get(kind, {}).get("result")
    return result


def test_a_node_that_leaves_scope_is_put_back_and_one_that_comes_back_is_capped_again(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b")) as around:
            for name in "ab":
                put_twin(around.server, twin(name))
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.cpu_cap_w("a") == around.cpu_cap_w("b") == ECO_W, "both are capped")
                around.server.put(NODES, node("a", managed="false"), "")
                await until(lambda: around.cpu_cap_w("a") is None, "a is let go")
                await until(lambda: _result(around, "a") == "none", "that is said, too")
                assert "left scope" in around.control("a")["cpu"]["message"]
                around.server.delete(NODES, "b", None)
                await until(lambda: around.cpu_cap_w("b") is None, "b is let go")

                async def no_nodes() -> bool:
                    return (await running.metrics())["joulie_agent_nodes", ""] == 0

                await until(no_nodes, "nothing is looked after any more")
                around.server.put(NODES, node("a"), "")
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "a is capped again")

    scenario(play())


def test_a_twin_that_is_gone_ends_its_cap(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a", age_s=-3600))
            async with agent(around.server, around.env(CAP_LEASE="1s")):
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "it is capped")
                around.server.delete(NODE_TWINS, "a", None)
                await until(lambda: around.cpu_cap_w("a") is None, "no cap is wanted any more")

    scenario(play())


@pytest.mark.slow
def test_without_the_api_server_for_a_lease_caps_end_and_with_it_they_come_back(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, *(node(f"n{number}") for number in range(4))) as around:
            names = [f"n{number}" for number in range(4)]
            for name in names:
                put_twin(around.server, twin(name, age_s=-3600))  # its operator goes on, whatever becomes of us
            async with agent(around.server, around.env(CAP_LEASE="4s")) as running:
                await until(lambda: all(around.cpu_cap_w(name) == ECO_W for name in names), "all are capped")
                running.cluster.cut_off()
                await asyncio.sleep(1)
                assert all(around.cpu_cap_w(name) == ECO_W for name in names)  # a short silence changes nothing
                await until(lambda: all(around.cpu_cap_w(name) is None for name in names), "all are let go")

                async def shown() -> bool:
                    found = await running.metrics()
                    let_go = all(found["joulie_agent_let_go", f'node="{name}"'] == 1 for name in names)
                    return let_go and found["joulie_agent_contact_age_seconds", ""] > 1

                await until(shown, "metrics show it")
                for name in names:
                    put_twin(around.server, twin(name, age_s=-3601))
                running.cluster.reconnect()
                await until(lambda: all(around.cpu_cap_w(name) == ECO_W for name in names), "and capped again")
                await until(lambda: _events(around, "n0") >= {"CapLeaseEnded", "CapLeaseResumed"}, "that is told")

    scenario(play())


def _events(around: World, name: str) -> set[str]:
    from joulie.cluster.port import EVENTS

    return {event["reason"] for event in around.server.all(EVENTS) if event["involvedObject"]["name"] == name}


@pytest.mark.slow
def test_a_twin_that_its_operator_no_longer_refreshes_ends_unless_it_is_pinned(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, *map(node, "abcd")) as around:
            put_twin(around.server, twin("a", age_s=-3600))  # a clock that is ahead
            put_twin(around.server, twin("b"))
            put_twin(around.server, twin("d"))
            for name, profile in (("b", "eco"), ("d", "performance")):
                spec = {"nodeName": name, "profile": profile}
                around.server.put(NODE_POWER_PROFILES, {"metadata": {"name": f"pin-{name}"}, "spec": spec}, "")
            refreshed = 0

            def refresh() -> None:  # by an operator whose clock is an hour behind
                nonlocal refreshed
                refreshed += 1
                put_twin(around.server, twin("c", age_s=3600 - refreshed))

            async def refresh_for_ever() -> None:
                while True:
                    refresh()
                    await asyncio.sleep(0.1)

            refresh()
            async with agent(around.server, around.env(CAP_LEASE="2s", RECONCILE_INTERVAL="100ms")):
                refreshing = asyncio.create_task(refresh_for_ever())
                await until(lambda: all(around.cpu_cap_w(name) == ECO_W for name in "abcd"), "all are capped")
                await until(lambda: _result(around, "a") == _result(around, "d") == "none", "a and d have expired")
                assert "has not refreshed" in around.control("a")["cpu"]["message"]
                at = refreshed
                await until(lambda: refreshed > at + 20, "others are long past their lease")
                assert [around.cpu_cap_w(name) for name in "abcd"] == [None, ECO_W, ECO_W, None]
                refreshing.cancel()
                await until(lambda: around.cpu_cap_w("c") is None, "c is not refreshed any more")

    scenario(play())


def test_after_a_crash_the_target_is_enforced_and_without_one_the_machine_ends_as_found(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b")) as around:
            for name in "ab":
                put_twin(around.server, twin(name))
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.cpu_cap_w("a") == around.cpu_cap_w("b") == ECO_W, "both are capped")
                await running.kill()
            around.server.delete(NODE_TWINS, "a", None)
            assert around.cpu_cap_w("a") == around.cpu_cap_w("b") == ECO_W
            async with agent(around.server, around.env()):
                await until(lambda: around.cpu_cap_w("a") is None, "it is no longer wanted")
                assert around.cpu_cap_w("b") == ECO_W

    scenario(play())


def test_after_a_crash_without_an_api_server_the_machines_of_the_journal_end_as_found(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a"))
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "it is capped")
                await running.kill()
            async with agent(around.server, around.env(CAP_LEASE="1s")) as running:
                running.cluster.cut_off()
                await until(lambda: around.cpu_cap_w("a") is None, "no target within three intervals")

    scenario(play())


def test_a_machine_without_power_limits_is_throttled_instead(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b"), paced=True) as around:
            for name in "ab":
                put_twin(around.server, twin(name, 70))
            around.simulation.put_fault("a", Fault("blocked", "blocked", actions=("rapl.set_power_cap_watts",)))
            async with agent(around.server, around.env()) as running:
                await until(lambda: _result(around, "b") == "applied", "b takes watts")
                await until(lambda: _result(around, "a") == "applied", "a is throttled instead")
                assert (around.cpu_cap_w("a"), around.cpu_cap_w("b")) == (None, 560)

                async def observed() -> bool:
                    return ("joulie_dvfs_observed_power_watts", 'node="a"') in await running.metrics()

                await until(observed, "its power is read")
                found = await running.metrics()
                assert found["joulie_backend_mode", 'node="a",mode="dvfs"'] == 1
                assert ("joulie_dvfs_throttle_pct", 'node="a"') in found
                assert ("joulie_dvfs_throttle_pct", 'node="b"') not in found

    scenario(play())


def test_a_machine_that_blocks_control_is_reported_with_its_reason(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a", 70))
            around.simulation.put_fault("a", Fault("blocked", "blocked"))
            async with agent(around.server, around.env(TELEMETRY_CPU_CONTROL_MODE="rapl")) as running:
                await until(lambda: _result(around, "a") == "blocked", "it blocks")
                assert "rapl.set_power_cap_watts" in around.control("a")["cpu"]["message"]
                found = await running.metrics(("joulie_agent_requested_cap_watts", 'node="a",device="cpu"'))
                assert found["joulie_agent_requested_cap_watts", 'node="a",device="cpu"'] == 560
                assert ("joulie_agent_enforced_cap_watts", 'node="a",device="cpu"') not in found

    scenario(play())


@pytest.mark.slow
def test_a_machine_that_does_not_answer_costs_the_others_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, *(node(f"n{number}") for number in range(6))) as around:
            names = [f"n{number}" for number in range(6)]
            for name in names:
                put_twin(around.server, twin(name))
            around.simulation.put_fault("n0", Fault("slow", delay_seconds=30))
            around.simulation.put_fault("n1", Fault("gone", "503"))
            env = around.env(TELEMETRY_HTTP_TIMEOUT_SECONDS="1")
            async with agent(around.server, env) as running:
                await until(lambda: all(_result(around, name) == "applied" for name in names[2:]), "the others")
                await until(
                    lambda: {_result(around, "n0"), _result(around, "n1")} == {"error"}, "what is wrong is said"
                )
                assert "no answer within 1 s" in around.control("n0")["cpu"]["message"]
                assert "503" in around.control("n1")["cpu"]["message"]
                found = await running.metrics(("joulie_reconcile_errors_total", 'node="n0"'))
                assert found["joulie_reconcile_errors_total", 'node="n0"'] >= 1
                around.simulation.put_fault("n1", Fault("none"))
                await until(lambda: _result(around, "n1") == "applied", "it comes back")

    scenario(play())


def test_a_cap_that_other_software_changes_is_put_back_and_counted(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a"))
            async with agent(around.server, around.env()) as running:
                await until(lambda: _result(around, "a") == "applied", "it is capped")
                around.simulation.put_fault("a", Fault("reboot"))
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "it is put back")

                async def counted() -> bool:
                    return (await running.metrics())["joulie_agent_drift_corrections_total", 'node="a"'] == 1

                await until(counted, "it is counted")

    scenario(play())


def test_a_change_of_route_puts_back_what_the_old_one_capped_and_profiles_of_a_node_are_told(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b")) as around:
            for name in "ab":
                put_twin(around.server, twin(name))
            async with agent(around.server, around.env()):
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "it is capped by the default route")
                target = {"scope": "node", "nodeName": "a"}
                spec = {"target": target, "controls": {"cpu": {"type": "none"}}}
                around.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "off"}, "spec": spec}, "")
                await until(lambda: around.cpu_cap_w("a") is None, "it is put back")
                await until(lambda: _result(around, "a") == "blocked", "nothing is capped there any more")
                assert around.control("a")["cpu"]["message"] == "control is routed to none by TelemetryProfile off"
                await until(lambda: _profile_result(around, "off") == "blocked", "the profile is told")
                assert around.cpu_cap_w("b") == ECO_W
                http = {"endpoint": f"{around.sim_url}/control/{{node}}", "mode": "dvfs"}
                spec = {"target": target, "controls": {"cpu": {"type": "http", "http": http}}}
                around.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "off"}, "spec": spec}, "")
                await until(lambda: _result(around, "a") == "applied", "by frequency now")
                assert around.cpu_cap_w("a") is None

    scenario(play())


def _profile_result(around: World, name: str) -> str | None:
    body = around.get(TELEMETRY_PROFILES, name) or {}
    result: str | None = body.get("status", {}).get("control", {}).get("cpu", {}).get("result")
    return result


def test_a_pool_refuses_to_cap_its_own_machine_in_the_name_of_another(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a"))
            async with agent(around.server, around.env(TELEMETRY_CPU_CONTROL="host")):
                await until(lambda: _result(around, "a") == "blocked", "host devices are not the pool's")
                assert "route this node to http" in around.control("a")["cpu"]["message"]

    scenario(play())


def test_where_no_operator_runs_a_pin_is_enforced(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b", reserved="true")) as around:
            for name in "ab":
                spec = {"nodeName": name, "profile": "eco", "cpu": {"packagePowerCapWatts": 200}}
                around.server.put(NODE_POWER_PROFILES, {"metadata": {"name": name}, "spec": spec}, "")
            async with agent(around.server, around.env(CAP_LEASE="1s")) as running:
                await until(lambda: around.cpu_cap_w("a") == 400, "the pin holds")
                found = await running.metrics(("joulie_policy_cap_watts", 'node="a",policy="pinned"'))
                assert found["joulie_policy_cap_watts", 'node="a",policy="pinned"'] == 400
                assert around.cpu_cap_w("b") is None
                around.server.delete(NODE_POWER_PROFILES, "a", None)
                await until(lambda: around.cpu_cap_w("a") is None, "it ends with the pin")

    scenario(play())


def test_simulate_only_decides_and_reports_and_writes_to_no_device(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a"))
            async with agent(around.server, around.env(SIMULATE_ONLY="true")) as running:
                await until(lambda: _result(around, "a") == "blocked", "it is not in force")
                assert "SIMULATE_ONLY" in around.control("a")["cpu"]["message"]
                assert around.cpu_cap_w("a") is None
                found = await running.metrics(("joulie_agent_requested_cap_watts", 'node="a",device="cpu"'))
                assert found["joulie_agent_requested_cap_watts", 'node="a",device="cpu"'] == ECO_W
            assert not list((around.state_dir / "restore").glob("*.json"))

    scenario(play())
