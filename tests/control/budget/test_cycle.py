"""`decide_budgets` on snapshots: who counts where, who gives first, and what is said of each budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from joulie.control.budget.counting import Confirmation, Order
from joulie.control.budget.cycle import BudgetTurn, decide_budgets, short_form
from joulie.control.budget.groups import Readings
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.memory import LEAVING_S, BudgetMemory
from joulie.control.budget.messages import confirmation_to_write, order_to_write
from joulie.model.api import NodeTwin, NodeTwinSpec, NodeTwinStatus, PowerBudget
from joulie.model.api.twin import TwinControlStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.names import FORGET_ANNOTATION, PAUSED_ANNOTATION, RACK_LABEL
from joulie.model.snapshot import Node, Pod, PowerReading, Telemetry
from joulie.settings import DecisionSettings, load
from tests.support.small_clusters import ALL_PERFORMANCE, NOW, known_node, plan, pod, snapshot

NOTHING = Readings({}, {}, {})


def budget(watts: float = 2_000, annotations: dict[str, str] | None = None, **spec: Any) -> PowerBudget:
    parts = {"metadata": {"name": "feed", "annotations": annotations or {}}, "spec": {"watts": watts, **spec}}
    return msgspec.convert(parts, PowerBudget)


class Cluster:
    """Nodes with agents that follow every order at once; each has two packages of at most 400 W."""

    def __init__(self, *names: str, labels: Mapping[str, str] | None = None) -> None:
        self.nodes = {name: known_node(name) for name in names}
        self.nodes = {
            name: Node(name, {**node.labels, **(labels or {})}, False, 192.0) for name, node in self.nodes.items()
        }
        self.twins: dict[str, NodeTwin] = {}
        self.pods: list[Pod] = []
        self.measured_w: dict[str, float] = {}
        self.memory = BudgetMemory()
        self.now_s = NOW
        self.sequence = 0
        self.env: dict[str, str] = dict(ALL_PERFORMANCE)

    def turn(self, *budgets: PowerBudget, readings: Readings = NOTHING, may_raise: bool = True) -> BudgetTurn:
        power = {name: PowerReading("kepler", watts, self.now_s) for name, watts in self.measured_w.items()}
        seen = snapshot(self.nodes.values(), self.pods, telemetry=Telemetry(power=power))
        seen = msgspec.structs.replace(seen, twins=dict(self.twins))
        given = BudgetInput(seen, plan(seen, self.env, self.now_s), load(DecisionSettings, self.env), self.now_s)
        turn, self.memory = decide_budgets(given, budgets, self.memory, readings, may_raise=may_raise)
        return turn

    def follow(self, turn: BudgetTurn) -> None:
        for write in turn.plan.writes:
            self.order(write.node, write.order, write.reason)

    def order(self, name: str, order: Order, reason: str = "") -> None:
        self.sequence += 1
        uid = f"uid-{name}{'-new' * (self.sequence < 0)}"
        told, failsafe = order_to_write(order, reason)
        held = None if order.released else order.caps
        said = confirmation_to_write(Confirmation(uid, order.number, "", 1, self.sequence, held))
        self.twins[name] = NodeTwin(
            ObjectMeta(name, uid=uid),
            NodeTwinSpec(node_name=name, budget=told, failsafe=failsafe),
            NodeTwinStatus(control_status=TwinControlStatus(budget=said)),
        )

    def settle(self, *budgets: PowerBudget, turns: int = 6) -> BudgetTurn:
        """Turns, each with its orders followed, until nothing changes any more."""
        for _ in range(turns):
            turn = self.turn(*budgets)
            self.follow(turn)
            self.now_s += 5.0
        turn = self.turn(*budgets)
        assert turn.plan.writes == ()
        return turn

    def caps(self) -> dict[str, float]:
        """Of each package."""
        return {name: twin.spec.budget.caps.cpu_watts_per_package for name, twin in sorted(self.twins.items())}  # type: ignore[union-attr, misc]


def states(turn: BudgetTurn) -> list[tuple[str, float, str]]:
    (report,) = turn.reports
    return [(status.value, status.nodes, status.state) for status in report.statuses]


def test_caps_and_rest_of_all_nodes_add_up_to_no_more_than_the_limit() -> None:
    cluster = Cluster("a", "b", "c")
    turn = cluster.settle(budget(2_000))
    rest_w = 0.15 * 800
    assert sum(2 * watts + rest_w for watts in cluster.caps().values()) <= 2_000
    assert states(turn) == [("", 3, "within")]


def gpu_cluster() -> Cluster:
    """Two nodes with eight boards of 700 W each."""
    cluster = Cluster()
    cluster.nodes = {name: known_node(name, gpu="H100-SXM", gpus=8) for name in "ab"}
    return cluster


def gpu_caps(cluster: Cluster) -> list[tuple[float, float]]:
    caps = [twin.spec.budget.caps for _, twin in sorted(cluster.twins.items())]  # type: ignore[union-attr]
    return [(each.cpu_watts_per_package or 0.0, each.gpu_watts_per_gpu or 0.0) for each in caps]


@pytest.mark.parametrize(
    ("stated", "rest_w", "follows"), [({}, 0.196 * 5_600, 0.23), ({"restWattsPerNode": 900}, 900, 0)]
)
def test_a_stated_rest_is_all_that_no_cap_limits_and_counts_once(
    stated: dict[str, Any], rest_w: float, follows: float
) -> None:
    cluster = gpu_cluster()
    turn = cluster.settle(budget(12_000, restartReserve=0, **stated))
    counted_w = sum(2 * cpu_w + 8 * gpu_w * (1.05 + follows) + rest_w for cpu_w, gpu_w in gpu_caps(cluster))
    assert 11_900 <= counted_w <= 12_000
    assert turn.reports[0].statuses[0].allocated_watts == pytest.approx(counted_w, abs=0.1)


def test_a_node_in_a_group_that_states_no_rest_is_within_both_limits() -> None:
    cluster = gpu_cluster()
    other = msgspec.structs.replace(budget(12_000, restWattsPerNode=900), metadata=ObjectMeta("other"))
    cluster.settle(budget(12_000), other)
    for rest_w, follows in ((0.196 * 5_600, 0.23), (900, 0)):
        assert sum(2 * cpu_w + 8 * gpu_w * (1.05 + follows) + rest_w for cpu_w, gpu_w in gpu_caps(cluster)) <= 12_000


def test_performance_pods_are_served_before_others_and_those_before_empty_nodes() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.pods = [pod("p", "b", "performance", cores=100), pod("q", "c", cores=100)]
    cluster.settle(budget(1_900))
    caps = cluster.caps()
    assert caps["b"] > caps["c"] >= caps["a"]


def test_what_a_node_draws_is_what_it_asks_for() -> None:
    cluster = Cluster("a", "b")
    cluster.pods = [pod("p", "a", cores=100), pod("q", "b", cores=100)]
    cluster.measured_w = {"a": 320.0, "b": 600.0}
    cluster.settle(budget(1_650))
    assert cluster.caps()["b"] > cluster.caps()["a"]


def test_without_a_selector_only_nodes_in_scope_count_and_with_one_every_node_that_it_takes() -> None:
    cluster = Cluster("a", "b")
    cluster.nodes["c"] = Node("c", {RACK_LABEL: "r1"}, False, 64.0)  # not managed
    assert states(cluster.turn(budget(5_000))) == [("", 2, "settling")]
    everything = budget(5_000, nodeSelector={"matchExpressions": [{"key": "any", "operator": "DoesNotExist"}]})
    turn = cluster.turn(everything)
    assert states(turn)[0][1] == 3
    assert "c" not in {write.node for write in turn.plan.writes}  # it counts at its maximum, and is not ordered about


def test_groups_hold_apart_and_a_node_without_the_label_is_named() -> None:
    cluster = Cluster("a", labels={RACK_LABEL: "r1"})
    cluster.nodes |= Cluster("b", labels={RACK_LABEL: "r2"}).nodes | Cluster("c").nodes
    turn = cluster.turn(budget(1_200, groupBy=RACK_LABEL, groups=[{"value": "r2", "mode": "report"}]))
    assert [(value, nodes) for value, nodes, _ in states(turn)] == [("r1", 1), ("r2", 1)]
    assert states(turn)[1][2] == "reported"
    said = {each.type: (each.status, each.message) for each in turn.reports[0].statements}
    assert said["Feasible"][0] == "False"
    assert "count nowhere: c" in said["Feasible"][1]


def test_a_reported_budget_orders_nothing_and_says_what_caps_allow() -> None:
    cluster = Cluster("a", "b")
    turn = cluster.turn(short_form(1_000, "report"))
    assert turn.plan.writes == ()
    (status,) = turn.reports[0].statuses
    assert status.state == "reported"
    assert status.allocated_watts == pytest.approx(2 * (800 + 120))


def test_a_budget_that_is_gone_releases_its_nodes() -> None:
    cluster = Cluster("a", "b")
    cluster.settle(budget(1_500))
    turn = cluster.turn()
    assert [(write.node, write.order.released) for write in turn.plan.writes] == [("a", True), ("b", True)]
    cluster.follow(turn)
    assert cluster.turn().plan.writes == ()


def test_a_new_leader_raises_and_releases_nothing_at_first() -> None:
    cluster = Cluster("a", "b")
    cluster.settle(budget(1_500))
    cluster.memory = BudgetMemory()
    assert cluster.turn(budget(1_900), may_raise=False).plan.writes == ()
    assert cluster.turn(may_raise=False).plan.writes == ()


def test_a_paused_budget_cuts_but_does_not_raise() -> None:
    cluster = Cluster("a", "b")
    cluster.settle(budget(1_500))
    before = cluster.caps()
    paused = {PAUSED_ANNOTATION: "true"}
    cluster.settle(budget(1_900, paused))
    assert cluster.caps() == before
    cluster.settle(budget(1_300, paused))
    assert all(cluster.caps()[name] < before[name] for name in before)
    cluster.settle(budget(1_500))
    assert cluster.caps() == before


def deleted(cluster: Cluster) -> float:
    """What "b" gets of a budget of which "a" was deleted together with its twin."""
    cluster.settle(budget(1_500))
    for objects in (cluster.nodes, cluster.twins):
        del objects["a"]
    return cluster.caps()["b"]


def test_a_deleted_node_counts_for_a_while() -> None:
    cluster = Cluster("a", "b")
    before = deleted(cluster)
    cluster.settle(budget(1_500))
    assert cluster.caps()["b"] <= before
    cluster.now_s += LEAVING_S
    cluster.settle(budget(1_500))
    assert cluster.caps()["b"] > before


def test_a_deleted_node_can_be_forgotten() -> None:
    cluster = Cluster("a", "b")
    before = deleted(cluster)
    cluster.settle(budget(1_500, {FORGET_ANNOTATION: "x, a"}))
    assert cluster.caps()["b"] > before


def test_a_node_that_exists_cannot_be_forgotten() -> None:
    cluster = Cluster("a", "b")
    turn = cluster.settle(budget(1_500, {FORGET_ANNOTATION: "a"}))
    assert states(turn) == [("", 2, "within")]


def test_hardware_of_unknown_maximum_makes_a_budget_infeasible_and_names_the_label() -> None:
    cluster = Cluster("a")
    cluster.nodes["b"] = Node(
        "b", dict(cluster.nodes["a"].labels) | {"joulie.io/hw.cpu-model": "Mystery 1"}, False, 8.0
    )
    said = {each.type: each for each in cluster.turn(budget(5_000)).reports[0].statements}
    assert (said["Feasible"].status, said["Feasible"].reason) == ("False", "MaximumUnknown")
    assert "joulie.io/max-watts" in said["Feasible"].message


def test_bound_pods_are_asked_for_before_they_are_measured() -> None:
    cluster = Cluster("a", "b")
    cluster.measured_w = {"a": 250.0, "b": 250.0}
    cluster.pods = [pod("p", "a", cores=150, scheduled_at_s=NOW + 1e6), pod("q", "b", cores=150, scheduled_at_s=0.0)]
    cluster.settle(budget(1_600))
    assert cluster.caps()["a"] > cluster.caps()["b"]


def test_shares_do_not_depend_on_the_order_of_objects() -> None:
    def shares(names: Sequence[str]) -> dict[str, float]:
        cluster = Cluster(*names)
        cluster.settle(budget(3_000))
        return cluster.caps()

    assert shares("abcde") == shares("edcba")


def test_orders_go_on_above_what_an_agent_has_followed_after_a_restored_backup() -> None:
    cluster = Cluster("a", "b")
    cluster.settle(budget(1_500))
    old = dict(cluster.twins)
    cluster.settle(budget(1_300))
    followed = {name: twin.status for name, twin in cluster.twins.items()}
    cluster.twins = {name: msgspec.structs.replace(twin, status=followed[name]) for name, twin in old.items()}
    writes = cluster.turn(budget(1_100)).plan.writes
    assert writes
    for write in writes:
        told = followed[write.node].control_status.budget  # type: ignore[union-attr]
        assert write.order.number > told.order  # type: ignore[union-attr]
        assert write.after == old[write.node].spec.budget.order  # type: ignore[union-attr]


def test_confirmations_of_a_twin_that_was_made_anew_count_whatever_came_before() -> None:
    cluster = Cluster("a", "b")
    cluster.settle(budget(1_500))
    cluster.twins.clear()
    cluster.sequence = -1_000
    assert states(cluster.settle(budget(1_500))) == [("", 2, "within")]
