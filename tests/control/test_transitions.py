"""The downgrade guard: nothing is capped under a performance-only pod."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.control.policies.interface import Profile, State
from joulie.control.transitions import Transition, current_state, guarded_state, transition
from joulie.model.names import DRAINING_LABEL, POWER_PROFILE_LABEL
from joulie.model.selector import Requirement
from joulie.model.snapshot import Pod
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    assignment_of,
    known_node,
    node,
    plan,
    pod,
    snapshot,
    status_of,
    twin,
)

GPU_NODE = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-NVL", 4)


@pytest.mark.parametrize(
    ("wanted", "pods", "state"),
    [
        ("performance", 0, "performance"),
        ("performance", 3, "performance"),
        ("eco", 0, "eco"),
        ("eco", 1, "draining"),
        ("eco", 3, "draining"),
    ],
)
def test_eco_waits_for_performance_only_pods(wanted: Profile, pods: int, state: State) -> None:
    assert guarded_state(wanted, pods) == state


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ("performance", "draining", "deferred"),
        ("performance", "eco", "applied"),
        ("draining", "eco", "applied"),
        ("draining", "performance", "applied"),
        ("eco", "performance", "applied"),
        ("eco", "draining", "deferred"),
    ],
)
def test_every_change_is_reported_and_says_whether_it_had_to_wait(before: State, after: State, result: str) -> None:
    assert transition(before, after) == Transition(before, after, result)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["performance", "eco", "draining"])
def test_staying_is_no_transition(state: State) -> None:
    assert transition(state, state) is None


@pytest.mark.parametrize(
    ("spec", "status", "labels", "state"),
    [
        pytest.param(None, None, {}, "performance", id="nothing known"),
        pytest.param(None, None, {POWER_PROFILE_LABEL: "performance"}, "performance", id="label performance"),
        pytest.param(None, None, {POWER_PROFILE_LABEL: "eco"}, "eco", id="label eco"),
        pytest.param(None, None, {POWER_PROFILE_LABEL: "eco", DRAINING_LABEL: "false"}, "eco", id="label not draining"),
        pytest.param(None, None, {POWER_PROFILE_LABEL: "eco", DRAINING_LABEL: "true"}, "draining", id="both labels"),
        pytest.param(None, None, {DRAINING_LABEL: "true"}, "performance", id="draining label alone"),
        pytest.param(None, None, {POWER_PROFILE_LABEL: "turbo"}, "performance", id="unknown label value"),
        pytest.param({"profile": "eco"}, None, {}, "eco", id="spec"),
        pytest.param({"profile": "eco", "scheduling": {"draining": True}}, None, {}, "draining", id="draining spec"),
        pytest.param(
            {"profile": "performance", "scheduling": {"draining": True}}, None, {}, "performance", id="only eco drains"
        ),
        pytest.param(
            {"profile": "performance"}, None, {POWER_PROFILE_LABEL: "eco"}, "performance", id="spec beats label"
        ),
        pytest.param({"profile": "eco"}, {"schedulableClass": "draining"}, {}, "draining", id="status beats spec"),
        pytest.param({"profile": "eco"}, {"schedulableClass": "unknown"}, {}, "eco", id="unknown says nothing"),
        pytest.param({"profile": "eco"}, {"schedulableClass": ""}, {}, "eco", id="empty says nothing"),
        pytest.param({}, {}, {POWER_PROFILE_LABEL: "eco"}, "eco", id="an empty twin says nothing"),
    ],
)
def test_the_state_is_read_from_the_objects(
    spec: dict[str, Any] | None, status: dict[str, Any] | None, labels: dict[str, str], state: str
) -> None:
    written = None if spec is None and status is None else twin("a", spec, status)
    assert current_state(written, labels, POWER_PROFILE_LABEL) == state


def test_a_draining_node_is_eco_by_profile_and_has_performance_caps() -> None:
    settings = {**ALL_ECO, "CPU_PERFORMANCE_CAP_PCT_OF_MAX": "95", "GPU_PERFORMANCE_CAP_PCT_OF_MAX": "90"}
    decided = plan(snapshot([GPU_NODE], [pod("p", "a", "performance")]), settings)
    assignment = assignment_of(decided)
    assert (assignment.profile, assignment.state, assignment.draining) == ("eco", "draining", True)
    assert (assignment.caps.cpu_pct, assignment.caps.gpu_pct) == (95, 90)
    status = status_of(decided)
    assert status.schedulable_class == "draining"
    assert status.effective_cap_state is not None
    assert (status.effective_cap_state.cpu_pct, status.effective_cap_state.gpu_pct) == (95, 90)
    assert "1 performance-only pod still here" in assignment.reason
    assert "only 0 kept at performance" in assignment.reason


def test_draining_keeps_performance_watts_in_absolute_mode() -> None:
    env = {**ALL_ECO, "CPU_WRITE_ABSOLUTE_CAPS": "true", "PERFORMANCE_CAP_WATTS": "350"}
    decided = plan(snapshot([GPU_NODE], [pod("p", "a", "performance")]), env)
    assert assignment_of(decided).caps.cpu_w_each == 350


def eco_excluded(*terms: list[Requirement], **more: Any) -> Pod:
    return Pod("default", "p", "a", "standard", required_terms=tuple(tuple(term) for term in terms), **more)


NOT_ECO = Requirement(POWER_PROFILE_LABEL, "NotIn", ("eco",))
ANYWHERE = Requirement("zone", "Exists")


@pytest.mark.parametrize(
    ("holder", "state"),
    [
        pytest.param(pod("p", "a", "performance"), "draining", id="class performance"),
        pytest.param(pod("p", "a", "performance", terminating=True), "draining", id="terminating holds the guard"),
        pytest.param(pod("p", "a", "performance", finished=True), "eco", id="finished holds nothing"),
        pytest.param(
            pod("p", "a", "performance", finished=True, terminating=True), "eco", id="finished and terminating"
        ),
        pytest.param(pod("p", "a", "standard"), "eco", id="standard"),
        pytest.param(pod("p", "", "performance"), "eco", id="pending elsewhere"),
        pytest.param(pod("p", "b", "performance"), "eco", id="on another node"),
        pytest.param(eco_excluded([NOT_ECO]), "draining", id="affinity excludes eco"),
        pytest.param(eco_excluded([NOT_ECO], [ANYWHERE]), "eco", id="one term allows eco"),
        pytest.param(eco_excluded([NOT_ECO, ANYWHERE], [NOT_ECO]), "draining", id="every term excludes eco"),
    ],
)
def test_what_holds_the_guard(holder: Pod, state: str) -> None:
    decided = plan(snapshot([node("a")], [holder]), ALL_ECO)
    assert assignment_of(decided).state == state


def test_the_guard_looks_at_the_label_that_the_settings_name() -> None:
    own = Requirement("example.com/profile", "NotIn", ("eco",))
    cluster = snapshot([node("a")], [eco_excluded([own])])
    assert assignment_of(plan(cluster, ALL_ECO)).state == "eco"
    assert assignment_of(plan(cluster, {**ALL_ECO, "POWER_PROFILE_LABEL": "example.com/profile"})).state == "draining"


def test_a_performance_pod_that_turns_up_on_an_eco_node_puts_it_back_to_draining() -> None:
    eco = twin("a", {"profile": "eco"}, {"schedulableClass": "eco"})
    decided = plan(snapshot([GPU_NODE], [pod("p", "a", "performance")], twins=[eco]), ALL_ECO)
    assignment = assignment_of(decided)
    assert assignment.transition == Transition("eco", "draining", "deferred")
    assert assignment.caps.cpu_pct == 100


def test_a_draining_node_is_let_go_when_its_last_performance_pod_has_left() -> None:
    draining = twin("a", {"profile": "eco", "scheduling": {"draining": True}}, {"schedulableClass": "draining"})
    decided = plan(snapshot([GPU_NODE], [pod("p", "a")], twins=[draining]), ALL_ECO)
    assert assignment_of(decided).transition == Transition("draining", "eco", "applied")
    assert assignment_of(decided).caps.cpu_pct == 60


def test_a_draining_node_returns_to_performance_when_the_plan_wants_it_back() -> None:
    draining = twin("a", status={"schedulableClass": "draining"})
    decided = plan(snapshot([GPU_NODE], [pod("p", "a", "performance")], twins=[draining]), ALL_PERFORMANCE)
    assert assignment_of(decided).transition == Transition("draining", "performance", "applied")


def test_the_earlier_state_does_not_change_what_a_node_becomes() -> None:
    def outcome(said: str) -> tuple[Any, ...]:
        cluster = snapshot(
            [GPU_NODE], [pod("p", "a", "performance")], twins=[twin("a", status={"schedulableClass": said})]
        )
        assignment = assignment_of(plan(cluster, ALL_ECO))
        return assignment.state, assignment.profile, assignment.caps, assignment.reason

    assert outcome("performance") == outcome("eco") == outcome("draining") == outcome("unknown")
