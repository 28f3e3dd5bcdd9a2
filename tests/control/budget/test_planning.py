"""Turns of the budget loop where nothing goes wrong: watts are shared, cuts hold at once, and a quiet loop is quiet."""

from __future__ import annotations

import pytest

from joulie.control.budget import planning
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.memory import GroupLimit
from tests.control.budget.actors import MACHINES
from tests.control.budget.machine import BudgetMachine
from tests.control.budget.world import World

CPU_NODE = MACHINES[0]  # 2 packages of 60 to 200 W, 40 W rest


class Scene:
    """A world that works, with six CPU nodes in two racks under one limit."""

    def __init__(self, limit_w: float, *, restarts: int = 0, nodes: int = 6) -> None:
        self.machine = BudgetMachine()
        self.world: World = self.machine.world
        for number in range(nodes):
            self.world.set_node(f"n{number}", ("cluster", f"rack-{'ab'[number % 2]}"), CPU_NODE)
            self.world.make_twin(f"n{number}")
        self.limit("cluster", limit_w, restarts=restarts)
        self.rounds(8)

    def limit(self, group: str, limit_w: float, *, restarts: int = 0, lowest_w: float | None = None) -> None:
        self.world.set_limit(group, GroupLimit(group, limit_w, lowest_w or limit_w, restarts=restarts))

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.machine.all_components_do_their_work(5.0)
            self.machine.no_limit_that_was_kept_is_exceeded()

    def device_w(self, *names: str) -> list[float]:
        """Of each package."""
        return [self.world.agents[name].device.cpu_w_each for name in names or sorted(self.world.agents)]

    def drawn_w(self, group: str = "cluster") -> float:
        return sum(self.world.charge_w(agent, agent.device) for agent in self.world.members_of(group))

    def writes(self) -> int:
        """How many orders the next turn would write."""
        operator = next(each for each in self.world.operators if each.leads_until_s >= self.world.now_s)
        members = self.world._members(operator)
        return len(
            planning.plan(members, operator.view.limits, operator.memory, self.world.now_s, may_raise=True)[0].writes
        )


def test_a_limit_is_shared_out_and_a_quiet_loop_writes_nothing() -> None:
    scene = Scene(limit_w=1_500)
    assert 1_480 <= scene.drawn_w() <= 1_500
    assert scene.writes() == 0
    scene.world.demand = {name: Pair(101) for name in scene.world.agents}
    scene.rounds(6)
    scene.world.demand = {name: Pair(102) for name in scene.world.agents}
    assert scene.writes() == 0


def test_watts_go_to_the_node_that_needs_them_within_three_turns() -> None:
    scene = Scene(limit_w=1_500)
    scene.world.demand = {name: Pair(60) for name in scene.world.agents} | {"n0": Pair(190)}
    scene.rounds(3)
    assert scene.device_w("n0")[0] >= 190
    assert scene.drawn_w() <= 1_500


def test_a_cut_of_a_third_is_in_force_after_one_turn() -> None:
    scene = Scene(limit_w=2_000)
    scene.limit("cluster", 1_400)
    scene.rounds(1)
    assert scene.drawn_w() <= 1_400


def test_each_of_overlapping_limits_holds() -> None:
    scene = Scene(limit_w=2_400)
    scene.limit("rack-a", 600)
    scene.rounds(8)
    assert scene.drawn_w("rack-a") <= 600
    assert scene.device_w("n1", "n3", "n5") == [200, 200, 200]


def test_a_node_that_joins_without_a_cap_is_covered_by_the_others() -> None:
    scene = Scene(limit_w=1_500, nodes=3)
    scene.world.set_node("n9", ("cluster",), CPU_NODE)
    scene.world.agents["n9"].runs = False
    scene.rounds(3)
    assert scene.device_w("n9") == [200]
    assert scene.drawn_w() <= 1_500
    scene.world.start_agent(scene.world.agents["n9"])
    scene.rounds(6)
    assert scene.device_w("n9")[0] < 200
    assert scene.drawn_w() > 1_450


def test_the_reserve_covers_one_node_that_restarts() -> None:
    scene = Scene(limit_w=2_000, restarts=1)
    assert scene.drawn_w() > 1_800
    scene.world.reboot(scene.world.agents["n0"])
    assert scene.device_w("n0") == [200]
    assert scene.drawn_w() <= 2_000


def test_the_first_to_confirm_a_new_budget_do_not_pay_for_those_on_their_way() -> None:
    scene = Scene(limit_w=2_400)
    quick, slow = ("n6", "n7"), ("n8", "n9")
    for name in (*quick, *slow):
        scene.world.set_node(name, ("rack-c",), CPU_NODE)
        scene.world.make_twin(name)
    scene.rounds(2)  # all agents say that they hold to no order
    for name in slow:
        scene.world.agents[name].runs = False
    scene.limit("rack-c", 1_200)
    scene.rounds(2)  # ordered, and confirmed by two of them
    cut = scene.device_w(*quick)
    assert cut < [200, 200]
    scene.rounds(1)  # within ten seconds of the orders
    assert scene.device_w(*quick) == cut
    scene.rounds(3)
    assert scene.device_w(*quick) < cut


def test_an_order_that_is_never_confirmed_makes_the_others_pay() -> None:
    scene = Scene(limit_w=2_400)
    scene.world.agents["n0"].runs = False
    scene.limit("cluster", 1_500)
    scene.rounds(4)
    assert scene.device_w("n0")[0] > scene.device_w("n1")[0]
    assert scene.drawn_w() <= 1_500


def test_floors_above_the_limit_are_said_in_watts_and_held_at_floors() -> None:
    scene = Scene(limit_w=900)
    operator = next(each for each in scene.world.operators if each.leads_until_s >= scene.world.now_s)
    result, _ = planning.plan(
        scene.world._members(operator), operator.view.limits, operator.memory, scene.world.now_s, may_raise=True
    )
    assert result.allocation.missing_w.tolist() == [60.0]  # six nodes of 2 × 60 W and 40 W rest
    assert scene.device_w() == [60] * 6


def test_failsafe_caps_add_up_to_no_more_than_the_lowest_limit_of_any_window() -> None:
    scene = Scene(limit_w=2_400)
    scene.limit("cluster", 2_400, lowest_w=1_300)
    scene.rounds(6)
    kept = [agent.kept for agent in scene.world.agents.values()]
    safe = [each.order.failsafe for each in kept if each is not None and each.order.failsafe is not None]
    assert 1_250 < sum(2 * each.cpu_w_each + 40 for each in safe) <= 1_300
    scene.world.leader = (9, 1e9)  # nothing more is heard of any operator
    scene.world.now_s += 61
    for agent in scene.world.agents.values():
        scene.world.agent_acts(agent)
    assert scene.drawn_w() <= 1_300


def test_the_last_budget_that_goes_releases_its_nodes() -> None:
    scene = Scene(limit_w=1_500)
    scene.world.set_limit("cluster", None)
    scene.rounds(2)
    assert scene.device_w() == [200] * 6
    assert scene.writes() == 0


@pytest.mark.parametrize("ending", ["stop", "twin gone"])
def test_nothing_but_a_release_lifts_a_budgets_cap(ending: str) -> None:
    scene = Scene(limit_w=1_500)
    agent, before = scene.world.agents["n0"], scene.device_w("n0")[0]
    if ending == "stop":
        scene.world.stop_agent(agent)
    else:
        scene.world.delete_twin("n0")
        while agent.view.coming["twins"]:
            agent.view.take("twins")
        scene.world.agent_acts(agent)
    assert scene.device_w("n0")[0] <= before
