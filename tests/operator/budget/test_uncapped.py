"""Nodes with the taint `joulie.io/uncapped` take pods once their cap is confirmed, and none waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.cluster.port import NODES, POWER_BUDGETS
from joulie.model.names import UNCAPPED_TAINT
from tests.operator.budget.stage import Stage, budget, played
from tests.operator.clusters import Ground, MemoryGround
from tests.operator.objects import node

OURS = {"key": UNCAPPED_TAINT, "effect": "NoSchedule"}
OTHER = {"key": "maintenance", "value": "soon", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}


async def join(stage: Stage, name: str, *taints: dict[str, str], **labels: str) -> None:
    body = node(name)
    body["metadata"]["labels"] |= labels
    await stage.scene.person.put(NODES, {**body, "spec": {"taints": list(taints)}})
    await stage.play.tick()


async def taints(stage: Stage, name: str) -> list[Any]:
    found = (await stage.scene.person.all(NODES))[name].get("spec", {}).get("taints") or []
    # The API server's own taint of nodes that are not ready is none of ours.
    return [taint for taint in found if not taint["key"].startswith("node.kubernetes.io/")]


def test_a_node_that_joins_takes_pods_when_its_first_cap_is_confirmed_and_keeps_other_taints(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await join(stage, "d", OURS, OTHER)
        for _ in range(3):
            await stage.turn()  # its agent says nothing yet
        assert await taints(stage, "d") == [OURS, OTHER]
        await stage.settle(3)
        assert await taints(stage, "d") == [OTHER]
        assert [write for write in await stage.turn() if "patch nodes d" in write] == []

    played(ground, scenario)


def test_a_confirmation_of_an_earlier_boot_does_not_count() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.scene.person.edit(NODES, "a", {"status": {"nodeInfo": {"bootID": "second"}}}, status=True)
        await stage.scene.person.edit(NODES, "a", {"spec": {"taints": [OURS]}})
        await stage.settle(3)
        assert await taints(stage, "a") == [OURS]
        stage.agents.boots["a"] = "second"
        await stage.settle(3)
        assert await taints(stage, "a") == []

    played(MemoryGround(), scenario)


@pytest.mark.parametrize("spec", [None, {"mode": "report"}, {"nodeSelector": {"matchLabels": {"feed": "b"}}}])
def test_where_no_budget_is_enforced_on_a_node_the_taint_goes_at_once(spec: dict[str, Any] | None) -> None:
    async def scenario(stage: Stage) -> None:
        if spec is not None:
            await stage.scene.person.put(POWER_BUDGETS, budget(2_000, **spec))
        await join(stage, "d", OURS)
        for _ in range(4):
            await stage.turn()
        assert await taints(stage, "d") == []

    played(MemoryGround(), scenario, watts=0)


def test_when_the_last_budget_goes_no_node_stays_tainted() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await join(stage, "d", OURS)
        await stage.turn()
        assert await taints(stage, "d") == [OURS]
        await stage.scene.person.remove(POWER_BUDGETS, "feed")
        await stage.turn()
        await stage.turn()
        assert await taints(stage, "d") == []

    played(MemoryGround(), scenario)


def test_a_node_that_will_never_confirm_watts_is_not_kept_empty_for_it() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        everything = {"nodeSelector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}}
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": everything})
        await join(stage, "d", OURS)
        await join(stage, "e", OURS, **{"joulie.io/reserved": "true"})  # not Joulie's to cap
        await stage.turn()
        await stage.turn()
        assert await taints(stage, "d") == [OURS]
        assert await taints(stage, "e") == []
        twin = await stage.twin("d")
        await stage.agents.confirm("d", twin["metadata"]["uid"], twin["spec"]["budget"]["order"], None)
        await stage.turn()
        assert await taints(stage, "d") == []

    played(MemoryGround(), scenario)


def test_a_new_leader_takes_no_taint_off_before_it_has_listed_everything() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        stage.play.terms += 1
        await stage.scene.person.edit(NODES, "a", {"spec": {"taints": [OURS]}})
        await stage.turn()
        assert await taints(stage, "a") == [OURS]
        await stage.settle(4)
        assert await taints(stage, "a") == []

    played(MemoryGround(), scenario)
