"""`decide` as a whole: who is in scope, what is left alone, and that nothing else matters."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from joulie.catalogue.lookup import Catalogue, extend
from joulie.control.cycle import decide
from joulie.control.policies.static_partition import StaticPartition
from joulie.model.names import CPU_MODEL_LABEL, DRAINING_LABEL, MANAGED_LABEL, POWER_PROFILE_LABEL
from joulie.model.snapshot import Node
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    NOW,
    assignment_of,
    hardware,
    known_node,
    node,
    performance_nodes,
    plan,
    pod,
    power_of,
    snapshot,
    states,
    status_of,
    twin,
)


class TestScope:
    NODES: ClassVar = [
        node("a"),
        node("b", {"joulie.io/reserved": "true"}),
        node("c", {"joulie.io/reserved": "false"}),
        node("d", {"joulie.io/reserved": "yes"}),
        node("e", {MANAGED_LABEL: "false"}),
        Node("f", {}),
        node("g", cordoned=True),
    ]

    @pytest.mark.parametrize(
        ("env", "planned"),
        [
            pytest.param({}, "acd", id="managed and not reserved"),
            pytest.param({"NODE_SELECTOR": ""}, "acdef", id="the empty selector takes all"),
            pytest.param({"NODE_SELECTOR": "!joulie.io/managed"}, "f", id="any selector"),
            pytest.param({"NODE_SELECTOR": "team=nobody"}, "", id="a selector that takes none"),
            pytest.param({"RESERVED_LABEL_KEY": "joulie.io/managed"}, "", id="another reserved label"),
        ],
    )
    def test_selected_unreserved_uncordoned_nodes_are_planned(self, env: dict[str, str], planned: str) -> None:
        assert set(states(plan(self.NODES, env))) == set(planned)

    def test_twins_are_for_all_in_scope_sorted_by_name(self) -> None:
        assert list(plan(self.NODES[::-1]).twins.nodes) == ["a", "c", "d", "g"]

    def test_reserved_nodes_are_left_alone_altogether(self) -> None:
        decided = plan([node("b", {"joulie.io/reserved": "true"})])
        assert (decided.assignments, decided.left_alone, len(decided.twins)) == ((), (), 0)


class TestCordoned:
    CORDONED = node("c", {POWER_PROFILE_LABEL: "eco"}, cordoned=True)

    def test_it_is_not_counted_in_n(self) -> None:
        alike = [node(name, {CPU_MODEL_LABEL: "X"}) for name in "ab"]
        cordoned = node("c", {CPU_MODEL_LABEL: "X"}, cordoned=True)
        decided = plan([*alike, cordoned], {"STATIC_HP_FRAC": "0.7"})  # 1.4, and 2.1 with the third
        assert states(decided) == {"a": "performance", "b": "eco"}
        assert decided.left_alone == ("c",)

    @pytest.mark.parametrize(
        ("spec", "status", "labels", "state"),
        [
            pytest.param(None, None, {}, "performance", id="nothing known"),
            pytest.param(None, None, {POWER_PROFILE_LABEL: "eco"}, "eco", id="label"),
            pytest.param(None, None, {POWER_PROFILE_LABEL: "eco", DRAINING_LABEL: "true"}, "draining", id="labels"),
            pytest.param({"profile": "eco"}, {}, {}, "eco", id="spec"),
            pytest.param({"profile": "eco"}, {"schedulableClass": "performance"}, {}, "performance", id="status"),
        ],
    )
    def test_it_keeps_its_class(
        self, spec: dict[str, Any] | None, status: dict[str, Any] | None, labels: dict[str, str], state: str
    ) -> None:
        twins = [] if spec is None else [twin("c", spec, status)]
        decided = plan(snapshot([node("c", labels, cordoned=True)], twins=twins), ALL_ECO)
        assert status_of(decided, "c").schedulable_class == state

    def test_a_performance_pod_there_still_counts_as_demand_but_does_not_change_it(self) -> None:
        env = {
            "POLICY_TYPE": "queue_aware_v1",
            "QUEUE_HP_BASE_FRAC": "0",
            "QUEUE_HP_MIN": "0",
            "QUEUE_PERF_PER_HP_NODE": "1",
        }
        decided = plan(snapshot([node("a"), node("b"), self.CORDONED], [pod("p", "c", "performance")]), env)
        assert len(performance_nodes(decided)) == 1
        assert status_of(decided, "c").schedulable_class == "eco"

    def test_its_pods_draw_power_in_its_status(self) -> None:
        decided = plan(snapshot([self.CORDONED], [pod("p", "c", cores=10)]))
        assert power_of(decided, "c").measured_node_power_w == pytest.approx(70 + 24.5)


def test_a_cluster_of_nothing_but_names_is_planned() -> None:
    decided = plan([Node("a", {}), Node("b", {})], {"NODE_SELECTOR": ""})
    assert states(decided) == {"a": "performance", "b": "eco"}
    assert [assignment.machine.family for assignment in decided.assignments] == ["unknown/a", "unknown/b"]
    assert power_of(decided).node_tdp_w == 150


def test_hardware_of_nodes_that_are_not_there_is_passed_over() -> None:
    told = [hardware("gone", cpu={"totalCores": 9999})]
    assert plan(snapshot([node("a")], told=told)) == plan([node("a")])


def test_pods_bound_to_nodes_that_are_not_there_hold_nothing() -> None:
    cluster = snapshot([node("a")], [pod("p", "gone", "performance", cores=5)])
    with_it, without_it = plan(cluster, ALL_ECO), plan([node("a")], ALL_ECO)
    assert (with_it.assignments, with_it.twins) == (without_it.assignments, without_it.twins)
    assert with_it.demand.performance_only == 1, "it still asks for a node"


def test_first_contact_is_a_transition_from_performance() -> None:
    decided = plan([known_node("a")], ALL_ECO)
    change = assignment_of(decided).transition
    assert change is not None
    assert (change.from_state, change.to_state, change.result) == ("performance", "eco", "applied")
    assert assignment_of(plan([known_node("a")], ALL_PERFORMANCE)).transition is None


def test_states_are_counted() -> None:
    nodes = [node(f"n{i}", {CPU_MODEL_LABEL: "X"}) for i in range(5)]
    decided = plan(snapshot(nodes, [pod("p", "n4", "performance")]))
    assert [decided.count(state) for state in ("performance", "eco", "draining")] == [3, 1, 1]


def test_a_catalogue_of_ones_own_is_used() -> None:
    entry = {
        "name": "Own 1",
        "cores": 8,
        "base_ghz": 2,
        "boost_ghz": 3,
        "tdp_w": 65,
        "evidence": "proxy",
        "source": "x",
    }
    own = extend(Catalogue(), {"cpu": [entry]}, "own.toml")
    settings = DecisionSettings()
    decided = decide(
        snapshot([node("a", {CPU_MODEL_LABEL: "own-1"})]),
        settings,
        NOW,
        policy=StaticPartition(),
        cooling=LinearCoolingModel(settings.twin),
        catalogue=own,
    )
    assert power_of(decided).cpu_tdp_w == 65


def test_twin_caps_are_those_of_the_plan() -> None:
    env = {**ALL_ECO, "CPU_ECO_CAP_PCT_OF_MAX": "1"}
    told = [hardware("a", cpu={"capRange": {"minWattsPerSocket": 100, "maxWattsPerSocket": 200}})]
    decided = plan(snapshot([node("a")], told=told), env)
    assert assignment_of(decided).caps.cpu_pct == 50
    assert decided.twins.columns["cpu_pct"] == [50]
    assert power_of(decided).node_capped_power_w == 100
