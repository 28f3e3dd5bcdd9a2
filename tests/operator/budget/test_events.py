"""Events of PowerBudgets: one for each change, with the missing watts and what to do."""

from __future__ import annotations

from joulie.cluster.port import EVENTS, POWER_BUDGETS, ClusterError
from tests.operator.budget.stage import Stage, played
from tests.operator.clusters import Ground, MemoryGround


async def told(stage: Stage) -> list[tuple[str, str, str]]:
    """Type, reason and message of the budget's Events, in the order of their creation."""
    bodies = sorted(
        (await stage.scene.person.all(EVENTS)).values(), key=lambda body: int(body["metadata"]["resourceVersion"])
    )
    (uid,) = {body["metadata"]["uid"] for body in (await stage.scene.person.all(POWER_BUDGETS)).values()}
    about = [body for body in bodies if body["involvedObject"]["kind"] == "PowerBudget"]
    assert all(body["involvedObject"]["uid"] == uid for body in about)
    return [(body["type"], body["reason"], body["message"]) for body in about]


def test_a_budget_that_becomes_infeasible_and_feasible_again_says_so_once_each(ground: Ground) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await told(stage)
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_000}})
        await stage.settle(3)
        (event,) = (await told(stage))[len(before) :]
        assert event[:2] == ("Warning", "BudgetInfeasible")
        assert event[2].startswith("320 W are missing for the floors of its nodes; raise the limit")
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 2_000}})
        await stage.settle(3)
        (event,) = (await told(stage))[len(before) + 1 :]
        assert event == ("Normal", "BudgetFeasible", "every group can be held to its limit")

    played(ground, scenario)


def test_a_new_leader_does_not_repeat_what_was_said() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_000}})
        await stage.settle(2)
        before = await told(stage)
        stage.play.terms += 1
        await stage.settle(2)
        assert await told(stage) == before

    played(MemoryGround(), scenario)


def test_an_unconfirmed_cap_is_not_called_a_floor_above_the_limit() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.turn()
        (event,) = await told(stage)
        assert event[2].startswith("760 W are missing until caps are confirmed on a, b, c; this ends")
        await stage.settle()
        assert [each[1] for each in await told(stage)] == ["BudgetInfeasible", "BudgetFeasible"]

    played(MemoryGround(), scenario)


def test_a_status_that_cannot_be_written_repeats_no_event() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.settle()
        before = await told(stage)

        async def refuse(call: str) -> None:
            if call == "patch powerbudgets/status feed":
                raise ClusterError("no", status=422)

        await stage.scene.person.edit(POWER_BUDGETS, "feed", {"spec": {"watts": 1_000}})
        stage.scene.link.before = refuse
        await stage.settle(2)
        assert await told(stage) == before
        stage.scene.link.before = None
        await stage.settle(2)
        assert len(await told(stage)) == len(before) + 1

    played(MemoryGround(), scenario)
