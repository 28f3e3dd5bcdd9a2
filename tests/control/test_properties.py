"""What holds for any cluster, any settings and any order of objects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from joulie.control.classify import is_performance_only
from joulie.control.cycle import decide
from joulie.control.placement.score_table import NodeScore, score_pod, score_table
from joulie.control.plan import Assignment, Plan
from joulie.model import names
from joulie.model.api import NodeTwin, NodeTwinSpec, NodeTwinStatus
from joulie.model.api.profile import CpuCap, GpuCap, GpuPowerCap, PolicyRef
from joulie.model.api.twin import Scheduling
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings, ScoreSettings
from tests.oracle.answers import Question, score_json
from tests.oracle.random_cases.clusters import random_case
from tests.support.random_clusters import decision_settings, pods, snapshots
from tests.support.small_clusters import BUILTIN_POLICIES, CATALOGUE, NOW

K = TypeVar("K")
V = TypeVar("V")
anywhere = pods(st.just(""))


def decided(cluster: Snapshot, chosen: DecisionSettings, **plan_changes: object) -> Plan:
    if plan_changes:
        changed = dataclasses.replace(chosen.plan, **plan_changes)  # type: ignore[arg-type]
        chosen = dataclasses.replace(chosen, plan=changed)
    policy = BUILTIN_POLICIES[chosen.plan.policy_type]
    return decide(cluster, chosen, NOW, policy=policy, cooling=LinearCoolingModel(chosen.twin))


def scored(cluster: Snapshot, asking: Pod, chosen: DecisionSettings) -> list[NodeScore]:
    table = score_table(cluster, ScoreSettings(), chosen.marginal, chosen.hardware, CATALOGUE, NOW)
    return score_pod(table, asking)


def performance_only_pods(cluster: Snapshot, on: str) -> int:
    return sum(
        pod.node == on and not pod.finished and is_performance_only(pod, names.POWER_PROFILE_LABEL)
        for pod in cluster.pods
    )


@given(snapshots(), decision_settings)
def test_no_cap_is_outside_the_hardwares_range(cluster: Snapshot, chosen: DecisionSettings) -> None:
    for assignment in decided(cluster, chosen).assignments:
        caps, machine = assignment.caps, assignment.machine
        assert (caps.cpu_pct is None) != (caps.cpu_w_each is None)
        if caps.cpu_pct is not None:
            assert min(100, machine.cpu_floor_pct) <= caps.cpu_pct <= 100
        if caps.cpu_w_each is not None:
            assert machine.cpu_max_known
            each_max_w = machine.cpu_max_w / machine.sockets
            assert min(machine.cpu_min_w / machine.sockets, each_max_w) <= caps.cpu_w_each <= each_max_w
            assert caps.cpu_w_each >= (0.0 if machine.cpu_min_w else chosen.hardware.cpu_min_cap_pct / 100 * each_max_w)
        assert (caps.gpu_pct is None) == (machine.gpu_count == 0)
        if caps.gpu_pct is not None:
            assert 0 <= caps.gpu_pct <= 100
            assert caps.gpu_pct >= min(100, machine.gpu_floor_pct) * (1 - 1e-12)
        if caps.gpu_w_each is not None:
            assert machine.gpu_max_known
            low, high = machine.gpu_min_w_each, machine.gpu_max_w_each
            assert min(low, high) <= caps.gpu_w_each <= high
            assert caps.gpu_pct == pytest.approx(100 * caps.gpu_w_each / high)


@given(snapshots(), decision_settings)
def test_every_twin_is_one_that_the_api_server_would_take(cluster: Snapshot, chosen: DecisionSettings) -> None:
    twins = decided(cluster, chosen).twins
    for row in range(len(twins)):
        status = twins.status(row)
        assert msgspec.convert(msgspec.to_builtins(status), NodeTwinStatus) == status  # checks every range
        power = status.power_measurement
        assert power is not None
        assert power.node_tdp_w is not None
        assert 0 <= (power.node_capped_power_w or 0) <= power.node_tdp_w * (1 + 1e-12)
        if power.source == "static":
            assert (power.measured_node_power_w or 0) <= (power.node_capped_power_w or 0)


@given(snapshots(), decision_settings, anywhere)
def test_scores_lie_between_0_and_100_and_are_neutral_without_a_breakdown(
    cluster: Snapshot, chosen: DecisionSettings, asking: Pod
) -> None:
    results = scored(cluster, asking, chosen)
    assert [result.node for result in results] == sorted(cluster.nodes)
    for result in results:
        assert 0 <= result.score <= 100
        assert result.reason
        if result.breakdown is None:
            assert result.score == 50
        else:
            assert all(math.isfinite(term) for term in result.breakdown.values())
            assert abs(result.breakdown["trendBonus"]) <= 25
            assert -30 <= result.breakdown["pressureRelief"] <= 0
            assert result.breakdown["drainingPenalty"] in (0, -30)
            assert 0 <= result.breakdown["coolingTerm"] <= 15


@given(snapshots(), decision_settings, anywhere, st.floats(0, 100))
def test_a_pod_that_asks_for_more_never_scores_more(
    cluster: Snapshot, chosen: DecisionSettings, asking: Pod, more_cores: float
) -> None:
    larger = replace(asking, cpu_cores=asking.cpu_cores + more_cores, gpus=asking.gpus + 1)
    pairs = zip(scored(cluster, asking, chosen), scored(cluster, larger, chosen), strict=True)
    assert all(more.score <= less.score + 1e-9 for less, more in pairs)


def expected_count(total: int, demand: int, chosen: DecisionSettings) -> int:
    plan = chosen.plan
    if plan.policy_type == "rule_swap_v1":
        return max(total - 1, 0)
    if plan.policy_type == "static_partition":
        wanted = math.floor(total * plan.static_hp_frac + 0.5)
    else:
        base = math.floor(total * plan.queue_hp_base_frac + 0.5)
        wanted = max(base, math.ceil(demand / plan.queue_perf_per_hp_node), plan.queue_hp_min)
        wanted = min(wanted, plan.queue_hp_max) if plan.queue_hp_max > 0 else wanted
    return min(max(wanted, 0), total)


@given(snapshots(), decision_settings)
def test_as_many_nodes_are_at_performance_as_the_policy_says_and_each_family_has_one(
    cluster: Snapshot, chosen: DecisionSettings
) -> None:
    unpinned = decided(replace(cluster, pins=()), chosen)
    demand = sum(
        not pod.finished and not pod.terminating and is_performance_only(pod, names.POWER_PROFILE_LABEL)
        for pod in cluster.pods
    )
    count = expected_count(len(unpinned.assignments), demand, chosen)
    kept = [assignment for assignment in unpinned.assignments if assignment.profile == "performance"]
    assert len(kept) == count
    if chosen.plan.policy_type != "rule_swap_v1":
        families = {assignment.machine.family for assignment in unpinned.assignments}
        assert len({assignment.machine.family for assignment in kept}) == min(count, len(families))
    for free, pinned in zip(unpinned.assignments, decided(cluster, chosen).assignments, strict=True):
        assert pinned.chosen_by == "pinned" or pinned == free


@given(snapshots(), decision_settings)
def test_no_node_is_eco_under_a_performance_only_pod_and_draining_keeps_performance_caps(
    cluster: Snapshot, chosen: DecisionSettings
) -> None:
    full = decided(replace(cluster, pins=()), chosen, policy_type="static_partition", static_hp_frac=1.0)
    performance_caps = {assignment.node: assignment.caps for assignment in full.assignments}
    for assignment in decided(cluster, chosen).assignments:
        held = performance_only_pods(cluster, assignment.node) > 0
        assert assignment.draining == (held and assignment.profile == "eco")
        assert assignment.state == ("draining" if assignment.draining else assignment.profile)
        if assignment.draining:
            assert assignment.caps == performance_caps[assignment.node]


def written_back(cluster: Snapshot, plan: Plan) -> Snapshot:
    """The cluster after an operator has written the plan: specs, statuses and labels; the agent's part is kept."""
    nodes, twins = dict(cluster.nodes), dict(cluster.twins)
    assignments = {assignment.node: assignment for assignment in plan.assignments}
    for row, name in enumerate(plan.twins.nodes):
        old = cluster.twins.get(name)
        control = old.status.control_status if old and old.status else None
        spec = old.spec if old else None
        if name in assignments:
            spec = spec_of(assignments[name])
            nodes[name] = labelled(cluster.nodes[name], assignments[name])
        status = replace(plan.twins.status(row), control_status=control)
        twins[name] = NodeTwin(ObjectMeta(name=name), spec, status)
    return replace(cluster, nodes=nodes, twins=twins)


def spec_of(assignment: Assignment) -> NodeTwinSpec:
    caps = assignment.caps
    return NodeTwinSpec(
        node_name=assignment.node,
        profile=assignment.profile,
        cpu=CpuCap(caps.cpu_w_each, caps.cpu_pct),
        gpu=GpuCap(GpuPowerCap("perGpu", caps.gpu_w_each, caps.gpu_pct)) if assignment.machine.gpu_count else None,
        policy=PolicyRef(assignment.chosen_by),
        scheduling=Scheduling(assignment.draining),
    )


def labelled(node: Node, assignment: Assignment) -> Node:
    published = {
        names.POWER_PROFILE_LABEL: assignment.profile,
        names.DRAINING_LABEL: "true" if assignment.draining else "false",
    }
    return replace(node, labels={**node.labels, **published})


@given(snapshots(), decision_settings)
def test_a_plan_that_was_carried_out_is_decided_again_without_any_change(
    cluster: Snapshot, chosen: DecisionSettings
) -> None:
    first = decided(cluster, chosen)
    second = decided(written_back(cluster, first), chosen)
    assert [assignment.transition for assignment in second.assignments] == [None] * len(first.assignments)
    unmoved = tuple(replace(assignment, before=assignment.state) for assignment in first.assignments)
    assert second == replace(first, assignments=unmoved)


@given(snapshots(), decision_settings)
def test_caps_that_were_written_count_the_same_when_their_node_is_cordoned(
    cluster: Snapshot, chosen: DecisionSettings
) -> None:
    first = decided(cluster, chosen)
    after = written_back(cluster, first)
    cordoned = {name: replace(node, unschedulable=True) for name, node in after.nodes.items()}
    second = decided(replace(after, nodes=cordoned), chosen)
    assert second.twins.states == first.twins.states
    for column in ("cpu_pct", "gpu_pct", "capped_w"):
        assert second.twins.columns[column] == pytest.approx(first.twins.columns[column])


def mixed_up(random: st.DataObject, items: Iterable[V]) -> list[V]:
    return random.draw(st.permutations(list(items)))


def mixed_up_keys(random: st.DataObject, mapping: Mapping[K, V]) -> dict[K, V]:
    return dict(mixed_up(random, mapping.items()))


@given(snapshots(), decision_settings, anywhere, st.data())
def test_the_order_of_objects_changes_no_bit(
    cluster: Snapshot, chosen: DecisionSettings, asking: Pod, data: st.DataObject
) -> None:
    other = Snapshot(
        nodes=mixed_up_keys(data, cluster.nodes),
        pods=tuple(mixed_up(data, cluster.pods)),
        hardware=mixed_up_keys(data, cluster.hardware),
        twins=mixed_up_keys(data, cluster.twins),
        pins=tuple(mixed_up(data, cluster.pins)),
        telemetry=cluster.telemetry,
    )
    assert repr(decided(other, chosen)) == repr(decided(cluster, chosen))  # repr tells 0.0 from -0.0
    assert repr(scored(other, asking, chosen)) == repr(scored(cluster, asking, chosen))


@given(snapshots(), decision_settings, st.integers(0, 60), st.integers(1, 20))
def test_queue_aware_never_keeps_fewer_nodes_when_demand_rises(
    cluster: Snapshot, chosen: DecisionSettings, pending: int, more: int
) -> None:
    def kept(count: int) -> set[str]:
        waiting = tuple(Pod("queue", f"p{i}", "", "performance") for i in range(count))
        plan = decided(replace(cluster, pods=waiting, pins=()), chosen, policy_type="queue_aware_v1")
        return {assignment.node for assignment in plan.assignments if assignment.profile == "performance"}

    assert kept(pending) <= kept(pending + more)


@given(snapshots(), decision_settings, st.floats(0.01, 1), st.floats(0.01, 1))
def test_tighter_caps_never_allow_more_power(
    cluster: Snapshot, chosen: DecisionSettings, cpu_share: float, gpu_share: float
) -> None:
    plan = chosen.plan
    loose = decided(replace(cluster, pins=()), chosen)
    tight = decided(
        replace(cluster, pins=()),
        chosen,
        eco_cap_w=plan.eco_cap_w * cpu_share,
        performance_cap_w=plan.performance_cap_w * cpu_share,
        cpu_eco_cap_pct=plan.cpu_eco_cap_pct * cpu_share,
        cpu_performance_cap_pct=plan.cpu_performance_cap_pct * cpu_share,
        gpu_eco_cap_pct=plan.gpu_eco_cap_pct * gpu_share,
        gpu_performance_cap_pct=plan.gpu_performance_cap_pct * gpu_share,
    )
    assert [a.state for a in tight.assignments] == [a.state for a in loose.assignments]
    for column in ("cpu_capped_w", "gpu_capped_w", "capped_w", "cooling_stress"):
        pairs = zip(tight.twins.columns[column], loose.twins.columns[column], strict=True)
        assert all(less <= more for less, more in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_plans_of_realistic_clusters_are_stable_and_independent_of_order(first: int) -> None:
    for seed in range(first, first + 100):
        question = Question.of(random_case(seed, contested=True))
        plan = question.decide()
        after = dataclasses.replace(question, cluster=written_back(question.cluster, plan)).decide()
        assert after.twins == plan.twins, f"seed {seed}"
        assert not any(assignment.transition for assignment in after.assignments), f"seed {seed}"
        backwards = dataclasses.replace(question, cluster=turned_around(question.cluster))
        assert repr(backwards.decide()) == repr(plan), f"seed {seed}"
        assert repr(score_json(backwards)) == repr(score_json(question)), f"seed {seed}"


def turned_around(cluster: Snapshot) -> Snapshot:
    return Snapshot(
        nodes=dict(reversed(cluster.nodes.items())),  # type: ignore[call-overload]
        pods=tuple(cluster.pods)[::-1],
        hardware=dict(reversed(cluster.hardware.items())),  # type: ignore[call-overload]
        twins=dict(reversed(cluster.twins.items())),  # type: ignore[call-overload]
        pins=tuple(cluster.pins)[::-1],
    )
