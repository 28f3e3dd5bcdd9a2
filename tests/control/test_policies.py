"""How many nodes stay at full power, which ones, and what a plug-in may not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from joulie.control.policies import Choice, NodeView, PolicyView
from joulie.control.policies.keeping import round_half_up
from joulie.errors import PluginError
from joulie.model.names import CPU_MODEL_LABEL
from joulie.model.snapshot import Node
from tests.support.small_clusters import NOW, hardware, node, performance_nodes, plan, pod, snapshot, states


def alike(count: int) -> list[Node]:
    """Nodes n0, n1 … of one family and one density."""
    return [node(f"n{i}", {CPU_MODEL_LABEL: "X"}) for i in range(count)]


def kept(count: int, env: dict[str, str], performance_pods: int = 0) -> int:
    pods = [pod(f"p{i}", wants="performance") for i in range(performance_pods)]
    return len(performance_nodes(plan(snapshot(alike(count), pods), env)))


@pytest.mark.parametrize(("value", "rounded"), [(0, 0), (0.49, 0), (0.5, 1), (1.5, 2), (2.5, 3), (3.5, 4), (2.4, 2)])
def test_halves_are_rounded_up_never_to_even(value: float, rounded: int) -> None:
    assert round_half_up(value) == rounded


class TestStaticPartition:
    @pytest.mark.parametrize(
        ("nodes", "share", "count"),
        [
            (5, "0.5", 3), (1, "0.5", 1), (3, "0.5", 2), (4, "0.5", 2), (4, "0", 0), (4, "1", 4), (10, "0.25", 3),
            (10, "0.24", 2), (0, "0.5", 0), (1, "0.49", 0),
        ],
    )  # fmt: skip
    def test_the_share_is_rounded_half_away_from_zero(self, nodes: int, share: str, count: int) -> None:
        assert kept(nodes, {"STATIC_HP_FRAC": share}) == count

    def test_equal_nodes_are_taken_by_name(self) -> None:
        nodes = [node(name, {CPU_MODEL_LABEL: "X"}) for name in ("n9", "n10", "n1", "b")]
        assert performance_nodes(plan(nodes)) == {"b", "n1"}

    def test_the_denser_node_comes_first_whatever_its_name(self) -> None:
        nodes = [node("a", {CPU_MODEL_LABEL: "X"}, cores=10), node("z", {CPU_MODEL_LABEL: "X"}, cores=20)]
        decided = plan(nodes)
        assert [assignment.node for assignment in decided.assignments] == ["z", "a"]
        assert performance_nodes(decided) == {"z"}

    def test_each_family_keeps_its_densest_node_before_any_family_gets_a_second(self) -> None:
        nodes = [
            node("x1", {CPU_MODEL_LABEL: "X"}, cores=90),
            node("x2", {CPU_MODEL_LABEL: "X"}, cores=80),
            node("x3", {CPU_MODEL_LABEL: "X"}, cores=70),
            node("y1", {CPU_MODEL_LABEL: "Y"}, cores=2),
            node("y2", {CPU_MODEL_LABEL: "Y"}, cores=1),
        ]
        assert performance_nodes(plan(nodes, {"STATIC_HP_FRAC": "0.4"})) == {"x1", "y1"}
        assert performance_nodes(plan(nodes, {"STATIC_HP_FRAC": "0.6"})) == {"x1", "x2", "y1"}

    def test_with_more_families_than_performance_nodes_the_densest_families_keep_one(self) -> None:
        nodes = [node(f"n{i}", {CPU_MODEL_LABEL: f"F{i}"}, cores=10 + i) for i in range(6)]
        assert performance_nodes(plan(nodes, {"STATIC_HP_FRAC": "0.34"})) == {"n5", "n4"}

    def test_nodes_of_unknown_hardware_are_each_a_family(self) -> None:
        nodes = [node("a", cores=9), node("b", cores=8), *(node(f"x{i}", {CPU_MODEL_LABEL: "X"}) for i in range(2))]
        assert performance_nodes(plan(nodes, {"STATIC_HP_FRAC": "0.75"})) == {"x0", "a", "b"}

    def test_gpu_nodes_are_grouped_by_gpu_and_the_others_by_cpu(self) -> None:
        same_cpu = {CPU_MODEL_LABEL: "X"}
        nodes = [node("g1", same_cpu, nvidia=8), node("g2", same_cpu, nvidia=8), node("c", same_cpu)]
        told = [hardware(name, gpu={"model": "L40S"}) for name in ("g1", "g2")]
        decided = plan(snapshot(nodes, told=told), {"STATIC_HP_FRAC": "0.6"})
        assert {a.node: a.machine.family for a in decided.assignments} == {"g1": "L40S", "g2": "L40S", "c": "X"}
        assert performance_nodes(decided) == {"g1", "c"}


class TestQueueAware:
    ENV: ClassVar = {"POLICY_TYPE": "queue_aware_v1"}

    @pytest.mark.parametrize(
        ("pods", "env", "count"),
        [
            pytest.param(0, {}, 6, id="base is 0.6 of ten"),
            pytest.param(0, {"QUEUE_HP_BASE_FRAC": "0.25"}, 3, id="base 2.5 is rounded to 3"),
            pytest.param(60, {}, 6, id="ten pods a node: no more than base"),
            pytest.param(61, {}, 7, id="one pod more needs one node more"),
            pytest.param(1000, {}, 10, id="at most all nodes"),
            pytest.param(0, {"QUEUE_HP_BASE_FRAC": "0"}, 1, id="at least the minimum"),
            pytest.param(0, {"QUEUE_HP_BASE_FRAC": "0", "QUEUE_HP_MIN": "0"}, 0, id="a minimum of none"),
            pytest.param(0, {"QUEUE_HP_MIN": "99"}, 10, id="a minimum above all nodes"),
            pytest.param(1000, {"QUEUE_HP_MAX": "4"}, 4, id="the maximum bounds demand"),
            pytest.param(0, {"QUEUE_HP_MAX": "4", "QUEUE_HP_MIN": "8"}, 4, id="the maximum beats the minimum"),
            pytest.param(1000, {"QUEUE_HP_MAX": "0"}, 10, id="0 is no maximum"),
            pytest.param(1000, {"QUEUE_HP_MAX": "-5"}, 10, id="negative is no maximum"),
            pytest.param(7, {"QUEUE_PERF_PER_HP_NODE": "1"}, 7, id="a node for each pod"),
        ],
    )
    def test_count(self, pods: int, env: dict[str, str], count: int) -> None:
        assert kept(10, {**self.ENV, **env}, pods) == count

    def test_pending_pods_and_pods_out_of_scope_count(self) -> None:
        env = {**self.ENV, "QUEUE_HP_BASE_FRAC": "0", "QUEUE_HP_MIN": "0", "QUEUE_PERF_PER_HP_NODE": "1"}
        outside = node("z", {"joulie.io/managed": "false"})
        pods = [pod("p0", wants="performance"), pod("p1", "z", "performance"), pod("p2", "gone", "performance")]
        assert len(performance_nodes(plan(snapshot([*alike(5), outside], pods), env))) == 3

    def test_terminating_finished_and_standard_pods_do_not_count(self) -> None:
        env = {**self.ENV, "QUEUE_HP_BASE_FRAC": "0", "QUEUE_HP_MIN": "0", "QUEUE_PERF_PER_HP_NODE": "1"}
        pods = [
            pod("p0", "n4", "performance", terminating=True),
            pod("p1", "n4", "performance", finished=True),
            pod("p2", "n4", "standard"),
        ]
        assert performance_nodes(plan(snapshot(alike(5), pods), env)) == set()

    def test_families_are_reserved_within_the_count(self) -> None:
        nodes = [node(f"x{i}", {CPU_MODEL_LABEL: "X"}, cores=50) for i in range(3)]
        nodes.append(node("y", {CPU_MODEL_LABEL: "Y"}, cores=1))
        env = {**self.ENV, "QUEUE_HP_BASE_FRAC": "0.5"}
        assert performance_nodes(plan(nodes, env)) == {"x0", "y"}


class TestRuleSwap:
    ENV: ClassVar = {"POLICY_TYPE": "rule_swap_v1", "RECONCILE_INTERVAL": "90s"}

    @pytest.mark.parametrize(
        ("nodes", "now_s", "eco"),
        [
            (3, 0.0, "n0"), (3, 89.9, "n0"), (3, 90.0, "n1"), (3, 180.0, "n0"), (2, 90.0, "n1"), (1, 0.0, "n0"),
            (1, 90.0, "n0"),
        ],
    )  # fmt: skip
    def test_the_first_two_nodes_take_turns_by_the_time_given(self, nodes: int, now_s: float, eco: str) -> None:
        decided = plan(alike(nodes), self.ENV, now_s)
        assert {name for name, state in states(decided).items() if state == "eco"} == {eco}

    def test_no_nodes_make_no_plan(self) -> None:
        assert plan([], self.ENV).assignments == ()


def test_every_choice_carries_its_reason() -> None:
    decided = plan([node(name, {CPU_MODEL_LABEL: "X"}) for name in "abcd"])
    first, second, third, _ = (assignment.reason for assignment in decided.assignments)
    assert first == "rank 1 of 4 by density, densest of family X; 2 kept at performance (0.5 of 4)"
    assert second == "rank 2 of 4 by density; 2 kept at performance (0.5 of 4)"
    assert third == "rank 3 of 4 by density; only 2 kept at performance (0.5 of 4)"
    assert {assignment.chosen_by for assignment in decided.assignments} == {"static_partition"}


class FromOutside:
    """A plug-in that answers what a test tells it to."""

    name = "outside"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: PolicyView | None = None

    def plan(self, view: PolicyView) -> Mapping[str, Choice]:
        self.seen = view
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Mapping[str, Choice] = self.answer
        return answer


class TestContract:
    @pytest.mark.parametrize(
        ("answer", "complaint"),
        [
            pytest.param(RuntimeError("first\nsecond"), "failed: RuntimeError: first second", id="raises"),
            pytest.param({}, "gave no choice for node a: expected performance or eco", id="leaves a node out"),
            pytest.param({"a": ("turbo", "why")}, "gave profile 'turbo' for node a", id="invents a profile"),
            pytest.param({"a": ("draining", "why")}, "gave profile 'draining' for node a", id="a state is no profile"),
            pytest.param({"a": ("e\nco", "why")}, "gave profile 'e\\nco' for node a", id="two lines"),
            pytest.param({"a": "eco"}, "returned 'eco' for node a: expected a Choice, as in", id="no reason"),
            pytest.param({"a": ("eco",)}, "returned ('eco',) for node a: expected a Choice", id="half a choice"),
            pytest.param({"a": None}, "gave no choice for node a: ", id="a choice of nothing"),
            pytest.param({"a": ([], "why")}, "gave profile [] for node a", id="a profile that is no word"),
            pytest.param(None, "returned None: expected a Choice for each node, by name", id="answers nothing"),
            pytest.param(["eco"], "returned ['eco']: expected a Choice for each node, by name", id="a list"),
        ],
    )
    def test_a_policy_that_breaks_it_is_named_in_one_line(self, answer: Any, complaint: str) -> None:
        with pytest.raises(PluginError) as raised:
            plan([node("a")], policy=FromOutside(answer))
        message = str(raised.value)
        assert message.startswith("policy outside ")
        assert complaint in message
        assert "\n" not in message

    def test_a_policy_may_answer_plain_pairs_and_more_than_it_was_asked(self) -> None:
        decided = plan([node("a")], policy=FromOutside({"a": ("eco", "because"), "elsewhere": ("eco", "x")}))
        [assignment] = decided.assignments
        assert (assignment.node, assignment.state, assignment.reason) == ("a", "eco", "because")
        assert (assignment.chosen_by, decided.policy) == ("outside", "outside")

    def test_a_policy_sees_eligible_nodes_in_order_with_state_pods_and_watts(self) -> None:
        policy = FromOutside({"a": Choice("eco", ""), "b": Choice("eco", "")})
        nodes = [
            node("a", {"joulie.io/power-profile": "eco"}, cores=10),
            node("b", nvidia=2),
            node("c", cordoned=True),
            node("d", {"joulie.io/reserved": "true"}),
        ]
        pods = [
            pod("p1", "a", "performance"),
            pod("p2", "a", "performance", terminating=True),
            pod("p3", wants="performance"),
        ]
        plan(snapshot(nodes, pods), policy=policy)
        assert policy.seen is not None
        assert (policy.seen.performance_pods, policy.seen.now_s) == (2, NOW)
        b, a = policy.seen.nodes
        assert (a.name, a.state, a.performance_pods, a.density) == ("a", "eco", 2, 0.1)
        assert a.labels["joulie.io/power-profile"] == "eco"
        expected = NodeView("b", 2.0, "unknown/b", b.labels, "performance", 0, 350.0, 700.0, None)
        assert b == expected
