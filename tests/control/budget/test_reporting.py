"""What is said of a budget: watts of each group as the limit sees them, and conditions that name what to do."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from joulie.control.budget.envelopes import Pair
from joulie.control.budget.groups import BudgetGroup
from joulie.control.budget.members import demand_of, weight_of
from joulie.control.budget.planning import BudgetPlan, plan
from joulie.control.budget.reporting import NodeWatts, group_statuses, statements
from joulie.model.api.budget import BudgetGroupStatus, PowerBudget, PowerBudgetSpec
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Utilisation
from tests.control.budget.actors import MACHINES
from tests.control.budget.test_planning import Scene

BUDGET = PowerBudget(ObjectMeta("cluster", generation=4), PowerBudgetSpec(1_500))


def planned(scene: Scene) -> tuple[list[BudgetGroup], BudgetPlan]:
    world = scene.world
    operator = next(each for each in world.operators if each.leads_until_s >= world.now_s)
    result, _ = plan(world._members(operator), operator.view.limits, operator.memory, world.now_s, may_raise=True)
    names = tuple(sorted(world.nodes))
    groups = [
        BudgetGroup(name, "", names, limit, True, "its spec", None) for name, limit in operator.view.limits.items()
    ]
    return groups, result


def said(scene: Scene, measured_w: dict[str, float] | None = None) -> tuple[BudgetGroupStatus, dict[str, str]]:
    groups, result = planned(scene)
    measured = {name: NodeWatts(watts) for name, watts in (measured_w or {}).items()}
    statuses = group_statuses(groups, result, {}, measured)
    conditions = statements(BUDGET, groups, statuses, [])
    assert all(condition.generation == 4 for condition in conditions)
    return statuses[0], {each.type: f"{each.status} {each.reason}" for each in conditions}


def test_a_budget_that_is_kept_says_how_much_is_given_out() -> None:
    scene = Scene(limit_w=1_500)
    status, conditions = said(scene, dict.fromkeys(scene.world.nodes, 200.0))
    assert (status.nodes, status.limit_watts, status.state) == (6, 1_500, "within")
    assert status.allocated_watts == pytest.approx(scene.drawn_w())
    assert status.floor_watts == pytest.approx(6 * 160)  # rest included
    assert (status.measured_watts, status.reason) == (1_200, "set by its spec")
    assert conditions == {"Feasible": "True Feasible", "Enforced": "True Confirmed", "WithinLimit": "True Within"}


def test_floors_above_the_limit_say_how_many_watts_are_missing() -> None:
    status, conditions = said(Scene(limit_w=900))
    assert (status.state, status.reason) == ("infeasible", "60 W are missing for the floors of its nodes")
    assert conditions["Feasible"] == "False FloorsAboveLimit"
    assert conditions["WithinLimit"] == "Unknown NotMeasured"


def test_a_node_without_a_confirmed_cap_is_named() -> None:
    scene = Scene(limit_w=2_000)
    scene.world.reboot(scene.world.agents["n3"])
    scene.world.operators[0].view.nodes["n3"] = scene.world.nodes["n3"]
    status, conditions = said(scene)
    assert status.state == "exceeded"
    assert "n3" in (status.reason or "")
    assert conditions["Enforced"] == "False Settling"


def test_a_group_whose_restart_is_not_covered_says_so() -> None:
    scene = Scene(limit_w=500, restarts=1, nodes=2)
    assert "a restart is not covered by" in (said(scene)[0].reason or "")


def test_more_power_than_the_limit_is_an_alarm_whatever_the_caps_say() -> None:
    scene = Scene(limit_w=1_500)
    assert said(scene, dict.fromkeys(scene.world.nodes, 300.0))[1]["WithinLimit"] == "False Exceeded"


def test_a_group_that_is_only_reported_counts_what_caps_allow() -> None:
    scene = Scene(limit_w=1_500)
    groups, result = planned(scene)
    watched = BudgetGroup("row", "", ("n0", "n1"), replace(groups[0].limit, name="row"), False, "its spec", None)
    status = group_statuses([watched], result, {"n0": NodeWatts(260.0, 40.0), "n1": NodeWatts(250.0)}, {})[0]
    assert (status.state, status.allocated_watts) == ("reported", 550)
    stated = replace(watched, limit=replace(watched.limit, rest_w_per_node=70.0))
    drawn = {"n0": NodeWatts(260.0, 40.0), "n1": NodeWatts(250.0, 10.0)}
    assert group_statuses([stated], result, {}, drawn)[0].measured_watts == 260 + 250 + 2 * 70
    conditions = statements(BUDGET, [watched], [status], ["spec.groups means nothing without spec.groupBy"], [])
    assert [(each.type, each.reason) for each in conditions] == [
        *(("Feasible", "Unclear"), ("Enforced", "ReportOnly"), ("WithinLimit", "NotMeasured"))
    ]
    assert statements(BUDGET, [watched], [status], [], ["n0"])[0].message.endswith("draw at most: n0")


def test_demand_is_what_busy_devices_draw_and_a_little_more() -> None:
    machine = MACHINES[1]  # a package of 50 to 150 W, four boards of 100 to 400 W
    idle_cpu = demand_of(machine, machine.top, 1_250.0, Utilisation(0.0, cpu=0.0, gpu=1.0), Pair(0, 0))
    assert idle_cpu.cpu_w_each + 4 * idle_cpu.gpu_w_each == pytest.approx(1_250 * 1.15)
    assert idle_cpu.gpu_w_each > 300
    assert idle_cpu.cpu_w_each < 70
    more = demand_of(machine, machine.top, 1_250.0, Utilisation(0.0, cpu=0.0, gpu=1.0), Pair(30, 200))
    assert (more.cpu_w_each - idle_cpu.cpu_w_each, more.gpu_w_each - idle_cpu.gpu_w_each) == pytest.approx((30, 50))
    assert demand_of(machine, Pair(90, 300), None, None, Pair(0, 0)) == Pair(90, 300)
    assert demand_of(MACHINES[0], MACHINES[0].top, 200.0, None, Pair(0, 0)) == pytest.approx((115, 0))


def test_boards_that_pods_hold_are_not_capped_to_the_mean_with_those_that_idle() -> None:
    machine, half = MACHINES[1], Utilisation(0.0, cpu=0.0, gpu=0.5)
    mean = demand_of(machine, machine.top, 850.0, half, Pair(0, 0))
    held = demand_of(machine, machine.top, 850.0, half, Pair(0, 0), 2)
    boards_w = 850.0 - mean.cpu_w_each / 1.15
    assert mean.gpu_w_each == pytest.approx(boards_w / 4 * 1.15)
    assert held.gpu_w_each == pytest.approx((boards_w - 2 * 0.1 * 400) / 2 * 1.15)
    assert held.cpu_w_each == mean.cpu_w_each
    assert demand_of(machine, machine.top, 850.0, half, Pair(0, 0), 9) == mean
    assert demand_of(machine, machine.top, 850.0, half, Pair(0, 0), 0) == mean


def test_performance_work_weighs_more_than_other_work_and_an_empty_node_least() -> None:
    assert weight_of(1, 3) == weight_of(0, 0, is_pinned_to_performance=True) < weight_of(0, 3) < weight_of(0, 0)
