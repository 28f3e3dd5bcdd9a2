"""A plan becomes exactly the writes that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from joulie.cluster.port import NODE_TWINS, NODES
from joulie.control.cycle import decide
from joulie.control.plan import Plan
from joulie.model.api import NodeTwin, NodeTwinStatus
from joulie.model.api.results import Condition, ControlState, ControlStatus
from joulie.model.names import DRAINING_LABEL, POWER_PROFILE_LABEL
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.operator.deadband import applied_status, moved, refresh_is_due
from joulie.operator.twin_conditions import SilentAgents, twin_statements
from joulie.operator.writes import Job, jobs, removals, spec_of
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import OperatorSettings, load
from tests.support.small_clusters import ALL_ECO, ALL_PERFORMANCE, BUILTIN_POLICIES, NOW, known_node, pod


class Cluster:
    """Objects that take writes as an API server would, so that a second decision can be made on them."""

    def __init__(self, *nodes: Node, env: Mapping[str, str] | None = None) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.twins: dict[str, NodeTwin] = {}
        self.pods: list[Pod] = []
        self.settings = load(OperatorSettings, env or {})

    def plan(self, now_s: float = NOW) -> Plan:
        decision = self.settings.decision
        return decide(
            Snapshot(self.nodes, self.pods, twins=self.twins),
            decision,
            now_s,
            policy=BUILTIN_POLICIES[decision.plan.policy_type],
            cooling=LinearCoolingModel(decision.twin),
        )

    def jobs(self, now_s: float = NOW) -> list[Job]:
        plan = self.plan(now_s)
        gone = removals(self.nodes, self.twins, plan.twins.nodes, POWER_PROFILE_LABEL)
        return gone + jobs(plan, self.nodes, self.twins, self.settings, now_s)

    def apply(self, now_s: float = NOW) -> list[Job]:
        done = self.jobs(now_s)
        for write in (write for job in done for write in job.writes):
            if write.verb == "delete":
                del self.twins[write.name]
            elif write.resource is NODES:
                node = self.nodes[write.name]
                labels = _merged(node.labels, write.body["metadata"]["labels"])
                self.nodes[write.name] = msgspec.structs.replace(node, labels=labels)
            else:
                there = msgspec.to_builtins(self.twins[write.name]) if write.name in self.twins else {}
                after = _merged(there, write.body)
                if not write.status:
                    after["metadata"] = after["metadata"] | {"generation": after["metadata"].get("generation", 0) + 1}
                self.twins[write.name] = msgspec.convert(after, NodeTwin)
        return done


def _merged(there: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(there)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            before = result.get(key)
            result[key] = _merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def _targets(job: Job) -> list[str]:
    return [f"{write.verb} {write.resource.plural}{'/status' * write.status}" for write in job.writes]


def test_first_contact_is_three_writes_a_node_and_no_transition() -> None:
    first = Cluster(known_node("a"), known_node("b")).jobs()
    assert [_targets(job) for job in first] == [["create nodetwins", "patch nodetwins/status", "patch nodes"]] * 2
    assert all(job.transition is None for job in first)


def test_nothing_is_written_when_nothing_changed() -> None:
    cluster = Cluster(known_node("a"), known_node("b"))
    cluster.apply()
    assert cluster.jobs(NOW + 1) == []


def test_going_eco_tells_the_scheduler_before_it_caps() -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    cluster.settings = load(OperatorSettings, ALL_ECO)
    (job,) = cluster.apply(NOW + 1)
    assert _targets(job) == ["patch nodes", "patch nodetwins/status", "patch nodetwins"]
    assert job.transition is not None
    assert (job.transition.from_state, job.transition.to_state, job.transition.result) == (
        "performance",
        "eco",
        "applied",
    )


def test_going_performance_uncaps_before_it_tells_the_scheduler() -> None:
    cluster = Cluster(known_node("a"), env=ALL_ECO)
    cluster.apply()
    cluster.settings = load(OperatorSettings, ALL_PERFORMANCE)
    (job,) = cluster.apply(NOW + 1)
    assert _targets(job) == ["patch nodetwins", "patch nodetwins/status", "patch nodes"]


def test_draining_labels_eco_and_keeps_the_performance_caps() -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    cluster.settings = load(OperatorSettings, ALL_ECO)
    cluster.pods = [pod("p", "a", "performance")]
    (job,) = cluster.apply(NOW + 1)
    assert job.transition is not None
    assert job.transition.result == "deferred"
    spec = cluster.twins["a"].spec
    assert spec is not None
    assert spec.profile == "eco"
    assert spec.cpu is not None
    assert spec.cpu.package_power_cap_pct_of_max == 100
    assert cluster.nodes["a"].labels[POWER_PROFILE_LABEL] == "eco"
    assert cluster.nodes["a"].labels[DRAINING_LABEL] == "true"


def test_switching_to_watts_removes_the_percentage() -> None:
    cluster = Cluster(known_node("a"), env=ALL_ECO)
    cluster.apply()
    cluster.settings = load(OperatorSettings, {**ALL_ECO, "CPU_WRITE_ABSOLUTE_CAPS": "true", "ECO_CAP_WATTS": "240"})
    writes = [write for job in cluster.apply(NOW + 1) for write in job.writes]
    assert [write.body["spec"]["cpu"] for write in writes if "spec" in write.body] == [
        {"packagePowerCapWatts": 240.0, "packagePowerCapPctOfMax": None}
    ]


def test_a_node_out_of_scope_loses_its_labels_and_then_its_twin() -> None:
    cluster = Cluster(known_node("a"), known_node("b"))
    cluster.apply()
    cluster.nodes["a"] = msgspec.structs.replace(
        cluster.nodes["a"], labels={**cluster.nodes["a"].labels, "joulie.io/reserved": "true"}
    )
    job = next(job for job in cluster.apply(NOW + 1) if job.node == "a")
    assert _targets(job) == ["patch nodes", "delete nodetwins"]
    assert POWER_PROFILE_LABEL not in cluster.nodes["a"].labels
    assert DRAINING_LABEL not in cluster.nodes["a"].labels


def test_a_deleted_nodes_twin_goes_and_labels_are_not_asked_for() -> None:
    cluster = Cluster(known_node("a"), known_node("b"))
    cluster.apply()
    del cluster.nodes["a"]
    job = next(job for job in cluster.jobs(NOW + 1) if job.node == "a")
    assert _targets(job) == ["delete nodetwins"]


def test_a_cordoned_node_keeps_its_target_and_still_gets_a_status() -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    before = cluster.twins["a"].spec
    cluster.settings = load(OperatorSettings, ALL_ECO)
    cluster.nodes["a"] = msgspec.structs.replace(cluster.nodes["a"], unschedulable=True)
    later = NOW + 10 * 60
    assert [_targets(job) for job in cluster.apply(later)] == [["patch nodetwins/status"]]
    assert cluster.twins["a"].spec == before


def test_a_label_changed_by_hand_is_put_back_alone() -> None:
    cluster = Cluster(known_node("a"), env=ALL_ECO)
    cluster.apply()
    labels = {**cluster.nodes["a"].labels, POWER_PROFILE_LABEL: "performance"}
    cluster.nodes["a"] = msgspec.structs.replace(cluster.nodes["a"], labels=labels)
    (job,) = cluster.jobs(NOW + 1)
    assert [write.body for write in job.writes] == [{"metadata": {"labels": {POWER_PROFILE_LABEL: "eco"}}}]
    assert job.transition is None


def test_control_status_of_the_agent_is_never_named_in_a_patch() -> None:
    cluster = Cluster(known_node("a"), env=ALL_ECO)
    cluster.apply()
    patch = {"status": {"controlStatus": {"cpu": {"result": "blocked", "backend": "rapl"}}}}
    cluster.twins["a"] = msgspec.convert(_merged(msgspec.to_builtins(cluster.twins["a"]), patch), NodeTwin)
    (job,) = cluster.apply(NOW + 1)  # the cap counts as 100 % now
    assert [write.resource for write in job.writes] == [NODE_TWINS]
    assert "controlStatus" not in job.writes[0].body["status"]
    status = cluster.twins["a"].status
    assert status is not None
    assert status.control_status is not None


def test_the_written_spec_reads_back_as_the_plan_says() -> None:
    cluster = Cluster(known_node("g", gpu="H100-SXM", gpus=8), env=ALL_ECO)
    plan = cluster.plan()
    cluster.apply()
    assert cluster.twins["g"].spec == spec_of(plan.assignments[0])


@pytest.mark.parametrize(("pods", "written"), [(1, False), (12, True)], ids=["within", "past"])
def test_measured_power_is_written_only_past_its_deadband(pods: int, written: bool) -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    cluster.pods = [pod(f"p{number}", "a", cores=2.0) for number in range(pods)]  # 2 of 192 cores: 5.8 W of 800 W
    assert bool(cluster.jobs(NOW + 1)) == written


def test_scores_move_past_two_points() -> None:
    cluster = Cluster(known_node("a"))
    status = cluster.plan().twins.status(0)
    score = status.predicted_cooling_stress_score
    assert score is not None
    near = msgspec.structs.replace(status, predicted_cooling_stress_score=score + 2)
    far = msgspec.structs.replace(status, predicted_cooling_stress_score=score + 2.01)
    assert not moved(near, status, 2)
    assert moved(far, status, 2)


@pytest.mark.parametrize(
    ("before", "now", "written"),
    [
        (0.0, 29.9, False),
        (0.0, 30.0, True),  # 30 W/min are five points
        (0.0, -30.0, True),
        (-10.0, 19.9, False),
        (-15.0, 15.0, True),
        (140.0, 149.0, False),
        (150.0, 400.0, False),  # the bonus has its limit
        (-400.0, -121.0, False),
        (-400.0, -120.0, True),
        (None, 0.0, True),
    ],
)
def test_a_trend_is_written_when_it_moves_its_bonus_by_five_points(
    before: float | None, now: float, written: bool
) -> None:
    """On a node of 10 kW two per cent would be 200 W/min: more than the whole range of the bonus."""
    status = Cluster(known_node("g", gpu="H100-SXM", gpus=8)).plan().twins.status(0)

    def moving(trend: float | None) -> NodeTwinStatus:
        measured = status.power_measurement
        assert measured is not None
        changed = msgspec.structs.replace(measured, power_trend_w_per_min=trend, node_tdp_w=10_000.0)
        return msgspec.structs.replace(status, power_measurement=changed)

    assert moved(moving(now), moving(before), 2) is written


def test_refreshes_come_once_an_interval_and_are_spread_over_the_ticks() -> None:
    settings = load(OperatorSettings, {"RECONCILE_INTERVAL": "1m", "TWIN_REFRESH_INTERVAL": "10m"})
    names = [f"node-{number}" for number in range(1000)]
    written = dict.fromkeys(names, NOW)
    per_tick = []
    for tick in range(1, 21):
        now_s = NOW + 60 * tick
        due = [name for name in names if refresh_is_due(name, written[name], now_s, settings)]
        per_tick.append(len(due))
        for name in due:
            assert now_s - written[name] <= 600
            written[name] = now_s
    assert all(60 <= count <= 140 for count in per_tick), per_tick


def test_a_status_is_applied_whole_and_names_nothing_of_the_agent() -> None:
    status = Cluster(known_node("a")).plan().twins.status(0)
    reported = msgspec.structs.replace(status, control_status=ControlStatus(ControlState("rapl", "applied")))
    applied = applied_status(reported, None, [], NOW)
    assert applied == msgspec.to_builtins(status) | {"conditions": []}


# Conditions


def _conditions(cluster: Cluster) -> dict[str, tuple[str, str, int | None, str]]:
    status = cluster.twins["a"].status
    assert status is not None
    return {
        each.type: (each.status, each.reason or "", each.observed_generation, each.last_transition_time or "")
        for each in status.conditions or ()
    }


def test_draining_is_a_condition_of_the_spec_that_belongs_to_it() -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    assert _conditions(cluster) == {"Draining": ("False", "NotDraining", 1, format_time(NOW))}
    cluster.settings = load(OperatorSettings, ALL_ECO)
    cluster.pods = [pod("p", "a", "performance")]
    cluster.apply(NOW + 60)
    assert cluster.twins["a"].metadata.generation == 2
    assert _conditions(cluster) == {"Draining": ("True", "PerformancePods", 2, format_time(NOW + 60))}
    cluster.pods = []
    cluster.apply(NOW + 120)
    assert _conditions(cluster) == {"Draining": ("False", "NotDraining", 3, format_time(NOW + 120))}
    assert cluster.jobs(NOW + 121) == []


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    cluster = Cluster(known_node("a"), env=ALL_PERFORMANCE)
    cluster.apply()
    cluster.settings = load(OperatorSettings, ALL_ECO)
    cluster.apply(NOW + 60)
    assert _conditions(cluster) == {"Draining": ("False", "NotDraining", 2, format_time(NOW))}


def test_twins_of_an_older_version_get_their_conditions_with_the_refreshes() -> None:
    cluster = Cluster(known_node("a"))
    cluster.apply()
    twin = cluster.twins["a"]
    assert twin.status is not None
    old = msgspec.structs.replace(twin.status, conditions=None)
    cluster.twins["a"] = msgspec.structs.replace(twin, status=old)
    (job,) = cluster.apply(NOW + 1)
    assert job.refresh_only
    assert _targets(job) == ["patch nodetwins/status"]
    assert cluster.jobs(NOW + 2) == []


def _reported(cluster: Cluster, at_s: float, *conditions: Condition) -> None:
    """The agent's report, as it is in the twin."""
    twin = cluster.twins["a"]
    assert twin.status is not None
    control = ControlStatus(ControlState("rapl", "applied", updated_at=format_time(at_s)))
    draining = [each for each in twin.status.conditions or () if each.type == "Draining"]
    status = msgspec.structs.replace(twin.status, control_status=control, conditions=[*draining, *conditions])
    cluster.twins["a"] = msgspec.structs.replace(twin, status=status)


def test_an_agent_is_silent_when_no_new_report_was_seen_for_long_whatever_its_clock_says() -> None:
    cluster, agents = Cluster(known_node("a")), SilentAgents()
    cluster.apply()
    assert agents.names(cluster.twins, 0.0) == set()  # there is no agent, which is not silence
    assert agents.names(cluster.twins, 1_000.0) == set()
    _reported(cluster, NOW - 86_400)  # a clock that is a day behind
    assert agents.names(cluster.twins, 1_000.0) == set()
    assert agents.names(cluster.twins, 1_299.0) == set()
    assert agents.names(cluster.twins, 1_301.0) == {"a"}
    _reported(cluster, NOW - 86_000)
    assert agents.names(cluster.twins, 1_302.0) == set()


def test_the_operator_says_that_an_agent_is_silent_until_the_agent_speaks() -> None:
    cluster = Cluster(known_node("a"))
    cluster.apply()
    enforced = Condition("Enforced", "True", "Applied", "", format_time(NOW), 1)
    _reported(cluster, NOW, enforced)
    plan = cluster.plan(NOW + 1)
    (job,) = jobs(plan, cluster.nodes, cluster.twins, cluster.settings, NOW + 1, silent={"a"})
    assert job.refresh_only
    (_, unknown) = job.writes[0].body["status"]["conditions"]
    assert (unknown["type"], unknown["status"], unknown["reason"]) == ("Enforced", "Unknown", "AgentSilent")
    assert unknown["lastTransitionTime"] == format_time(NOW + 1)
    _reported(cluster, NOW, msgspec.convert(unknown, Condition))
    assert cluster.jobs(NOW + 2) == []  # nothing new
    restarted = applied_status(
        plan.twins.status(0),
        cluster.twins["a"].status,
        twin_statements(plan.twins.status(0), cluster.twins["a"], spec_changes=False, silent=False),
        NOW + 3,
    )
    assert unknown in restarted["conditions"]  # an entry that is let go of would lose half its fields
    _reported(cluster, NOW + 4, enforced)
    assert cluster.jobs(NOW + 4) == []
