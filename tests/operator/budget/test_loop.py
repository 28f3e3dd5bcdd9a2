"""The budget loop on a cluster: orders reach twins, confirmations free room, and nothing rises too early."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import json

from joulie.cluster.port import LEASES, NODE_TWINS, NODES, POWER_BUDGETS, ClusterError, Undecodable
from joulie.model.names import BUDGET_LEASE, WATTS_RESOURCE
from joulie.operator.budget.writer import WRITE_S
from tests.operator.budget.stage import REST_W, Stage, played, staged
from tests.operator.clusters import Ground, MemoryGround
from tests.operator.harness import Scene, play_out


def test_a_limit_is_kept_said_and_costs_no_write_when_nothing_changes(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        assert await stage.drawn_w() <= 2_000
        assert await stage.condition("Enforced") == "True Confirmed"
        assert await stage.condition("Feasible") == "True Feasible"
        assert [write for write in await stage.turn() if BUDGET_LEASE not in write] == []

    played(ground, scenario)


def test_the_plan_does_not_take_orders_away(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        await stage.play.tick(60)
        assert await stage.caps() == before

    played(ground, scenario)


def test_agents_see_the_lease_renewed_while_orders_take_long_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.operator.budget.loop.RENEW_S", 0.02)
    monkeypatch.setattr("joulie.operator.budget.renewal.RENEW_S", 0.02)

    async def scenario(stage: Stage) -> None:
        renewed: list[str] = []
        monkeypatch.setattr(stage.loop, "_monotonic_s", asyncio.get_running_loop().time)

        async def slowly(_writes: object) -> None:
            while len(set(renewed)) < 3:  # for ever, if it is not renewed
                leases = await stage.scene.person.all(LEASES)
                renewed.extend(lease["metadata"]["resourceVersion"] for lease in leases.values())
                await asyncio.sleep(0.01)

        monkeypatch.setattr(stage.loop._writer, "write", slowly)
        async with asyncio.timeout(30):
            await stage.turn()

    played(MemoryGround(), scenario)


def test_a_raise_waits_for_the_confirmation_of_a_cut(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_500}})
        assert [write.split()[-1] for write in await stage.turn() if "nodetwins" in write] == ["a", "b", "c"]
        cut = await stage.caps()
        assert all(cut[name] < before[name] for name in "abc")
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 2_000}})
        await stage.turn()
        raised = await stage.caps()
        # Until the cuts are confirmed, all may still hold what they held: the sum of that is what counts.
        assert sum(2 * max(raised[name], before[name]) + REST_W for name in "abc") <= 2_000

    played(ground, scenario)


def test_a_new_leader_raises_nothing_until_older_writes_are_dead_and_all_is_listed() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 2_400}})
        stage.play.terms += 1
        for _ in range(2):
            await stage.turn(WRITE_S / 2)
            assert await stage.caps() == before
        await stage.settle()
        assert all(watts > before[name] for name, watts in (await stage.caps()).items())

    played(MemoryGround(), scenario)


def test_a_write_without_an_answer_counts_until_it_is_dead() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 2_400}})

        async def lost(call: str) -> None:
            if call == "patch nodetwins a":
                raise ClusterError("the connection broke")

        stage.scene.link.before = lost
        await stage.turn()
        stage.scene.link.before = None
        assert set(stage.loop._writer.in_flight) == {"a"}
        writes = await stage.turn()
        assert "patch nodetwins a" not in writes
        await stage.settle()
        assert stage.loop._writer.in_flight == {}
        assert await stage.drawn_w() <= 2_400

    played(MemoryGround(), scenario)


def test_a_twin_that_others_write_to_meanwhile_is_ordered_all_the_same(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.play.caught_up()
        busy = {"status": {"schedulableClass": "eco"}}

        async def meddle(call: str) -> None:
            stage.scene.link.before = None
            await stage.scene.person.edit(NODE_TWINS, call.rsplit(maxsplit=1)[-1], busy, status=True)

        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_500}})
        await stage.play.caught_up()
        stage.scene.link.before = meddle
        await stage.loop.turn()
        assert stage.loop._writer.failed == {}

    played(ground, scenario)


def test_when_the_budget_goes_nodes_are_released_and_the_next_says_so(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.scene.person.remove(POWER_BUDGETS, "feed")
        await stage.turn()
        assert await stage.agents.follow() == dict.fromkeys("abc")
        assert await stage.turn() == []

    played(ground, scenario)


def test_the_lease_is_renewed_after_turns_that_went_well_and_at_no_other_time() -> None:
    async def renewed(stage: Stage) -> str:
        lease = json.decode(await stage.scene.person.cluster.get(LEASES, BUDGET_LEASE, namespace="default"))
        return str(lease["spec"]["renewTime"])

    async def scenario(stage: Stage) -> None:
        await stage.turn()
        first = await renewed(stage)
        await stage.turn(5)
        assert await renewed(stage) == first
        await stage.turn(15)
        second = await renewed(stage)
        assert second > first

        def fail() -> Any:
            raise ClusterError("no")

        stage.loop.budgets = fail  # type: ignore[method-assign]
        with pytest.raises(ClusterError):
            await stage.turn(15)
        assert await renewed(stage) == second

    played(MemoryGround(), scenario)


def test_a_cluster_without_budgets_costs_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.turn() == []

    played(MemoryGround(), scenario, watts=0)


def test_the_setting_is_a_budget_over_all_nodes_in_scope() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        assert await stage.drawn_w() <= 1_800

    played(MemoryGround(), scenario, watts=0, env={"POWER_BUDGET_WATTS": "1800", "POWER_BUDGET_MODE": "enforce"})


def test_a_node_whose_boot_id_changed_counts_its_maximum_until_it_confirms_again() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        await stage.scene.person.edit(NODES, "a", {"status": {"nodeInfo": {"bootID": "second"}}}, status=True)
        await stage.turn()
        cut = await stage.caps()
        assert all(cut[name] <= before[name] for name in "bc")
        stage.agents.boots["a"] = "second"
        await stage.settle()
        assert await stage.drawn_w() <= 2_000
        assert await stage.condition("Enforced") == "True Confirmed"

    played(MemoryGround(), scenario)


def test_a_deleted_node_counts_until_its_time_is_over_and_its_twin_stays_as_long() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        await stage.scene.person.remove(NODES, "c")
        await stage.turn()
        await stage.play.tick()
        assert set(await stage.caps()) == set("abc")
        assert (await stage.caps())["a"] <= before["a"]
        await stage.turn(600)
        await stage.turn(5)
        await stage.play.tick()
        await stage.settle()
        assert set(await stage.caps()) == set("ab")
        assert (await stage.caps())["a"] > before["a"]

    played(MemoryGround(), scenario)


def test_a_budget_that_cannot_be_read_releases_and_raises_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await stage.caps()
        # As a definition of another version would let through.
        stage.play.operator.state.take(POWER_BUDGETS, [Undecodable("feed", "spec.watts: expected a number")])
        for _ in range(4):
            stage.play.now_s += 600
            await stage.loop.turn()
            assert all((await stage.agents.follow()).values())
        assert await stage.caps() == before
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 2_400}})
        await stage.settle()
        assert all(watts > before[name] for name, watts in (await stage.caps()).items())

    played(MemoryGround(), scenario)


def test_a_node_that_leaves_the_scope_keeps_its_twin_until_its_agent_was_released(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.scene.person.label("c", reserved="true")
        await stage.turn()
        await stage.play.tick()
        node = (await stage.scene.person.all(NODES))["c"]
        assert "joulie.io/power-profile" not in node["metadata"]["labels"]  # the rest of what Joulie wrote goes at once
        assert set(await stage.caps()) == set("abc")
        await stage.turn(600)
        await stage.turn()
        await stage.play.tick()
        assert set(await stage.caps()) == set("abc")  # the release is written, and not confirmed
        assert (await stage.agents.follow())["c"] is None
        await stage.play.tick()
        assert set(await stage.caps()) == set("ab")

    played(ground, scenario)


async def advertised(stage: Stage) -> dict[str, str | None]:
    if stage.loop.advertising is not None:
        await stage.loop.advertising
    nodes = await stage.scene.person.all(NODES)
    return {name: body["status"]["allocatable"].get(WATTS_RESOURCE) for name, body in sorted(nodes.items())}


@pytest.mark.parametrize("watts", [0, 2_000])
def test_watts_are_a_resource_of_nodes_while_that_is_asked_for(watts: float) -> None:
    async def scenario(scene: Scene) -> None:
        async with staged(scene, watts, {"WATTS_RESOURCE": "true"}) as stage:
            await stage.settle()
            await stage.turn()
            offered = await advertised(stage)
            assert all(value is not None for value in offered.values())
            total = sum(int(value or 0) for value in offered.values())
            assert (total <= 2_000) is bool(watts)
        async with scene.operator({"STATIC_HP_FRAC": "1"}) as play:
            await play.tick()
            after = Stage(scene, play)
            await after.turn()
            assert set((await advertised(after)).values()) == {None}

    play_out(MemoryGround(), scenario)


def test_turns_end_with_the_process() -> None:
    async def scenario(stage: Stage) -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(stage.loop.run(stop))
        async with asyncio.timeout(20):
            while stage.loop.last is None:
                await asyncio.sleep(0.01)
            stop.set()
            await running

    played(MemoryGround(), scenario, env={"BUDGET_INTERVAL": "1s"})
