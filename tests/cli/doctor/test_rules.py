"""Rules of `joulie doctor` that no cluster of ours can show: old servers, wrong clocks, and rights that drift."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from joulie.cli.doctor.installation_rules import examine
from joulie.cli.doctor.permissions import needed
from joulie.cli.doctor.survey import InstallationSurvey, RunningComponent
from joulie.cli.installation.operator_lease import OperatorLease
from joulie.cli.live import LiveCluster
from joulie.cli.options import ObjectSource
from joulie.cluster.crds.definitions import crds
from joulie.model.snapshot import Node, Snapshot
from tests.support.rights import NAMESPACE, Rights

NOW_S = 1_793_534_400.0


def look(*, server_s: float = NOW_S, version: tuple[int, int] = (1, 36)) -> InstallationSurvey:
    """An empty cluster with an operator that leads."""
    live = LiveCluster(Snapshot(nodes={}), "test", leases=(OperatorLease(NAMESPACE, "operator", server_s - 1, 15),))
    return InstallationSurvey(live, NOW_S, server_s, version)


def kinds(found: InstallationSurvey) -> dict[str, str]:
    return {finding.kind: finding.severity for finding in examine(found, ObjectSource((), NOW_S))}


def test_nothing_is_wrong_with_an_empty_cluster_that_is_led() -> None:
    assert kinds(look()) == {}


@pytest.mark.parametrize(("version", "told"), [((1, 33), True), ((1, 34), False), ((1, 36), False), ((1, 37), True)])
def test_untested_versions_are_reported(version: tuple[int, int], told: bool) -> None:
    assert kinds(look(version=version)) == ({"kubernetes-version": "warning"} if told else {})


@pytest.mark.parametrize(
    ("ahead_s", "severity"), [(0.0, None), (4.0, None), (30.0, "warning"), (-30.0, "warning"), (600.0, "fault")]
)
def test_a_wrong_clock_is_told_and_does_not_make_the_leader_look_dead(ahead_s: float, severity: str | None) -> None:
    expected = {} if severity is None else {"clock-skew": severity}
    assert kinds(look(server_s=NOW_S - ahead_s)) == expected


def test_a_leader_that_gave_its_lease_back_is_told_from_one_that_died() -> None:
    found = look()
    ended = LiveCluster(Snapshot(nodes={}), "test", leases=(OperatorLease(NAMESPACE, "", NOW_S - 1, 1),))
    (finding,) = examine(InstallationSurvey(ended, NOW_S, NOW_S, found.version), ObjectSource((), NOW_S))
    assert "shut down cleanly and none took over" in finding.text


def test_labels_that_were_left_behind_are_told() -> None:
    node = Node("n", {"joulie.io/power-profile": "eco"})
    other = Node("m", {"joulie.io/managed": "true"})
    found = look()
    live = LiveCluster(Snapshot(nodes={"n": node, "m": other}), "test", leases=found.live.leases)
    findings = examine(InstallationSurvey(live, NOW_S, NOW_S, found.version), ObjectSource((), NOW_S))
    (left,) = [finding for finding in findings if finding.kind == "labels-out-of-step"]
    assert left.next_step == "kubectl label node n joulie.io/power-profile- joulie.io/draining-"


@pytest.mark.parametrize("component", ["operator", "agent", "extender"])
def test_the_rights_that_are_asked_for_are_those_that_are_shipped(component: str) -> None:
    shipped = {(right.group, right.resource, right.verb, right.name) for right in Rights(component).all()}
    asked = {(right.group, right.resource, right.verb, right.name) for right in needed(component, NAMESPACE)}
    assert asked == shipped


def operator(namespace: str = NAMESPACE, **more: Any) -> RunningComponent:
    return RunningComponent("Deployment", namespace, "joulie-operator", "operator", **{"wanted": 1, "ready": 1, **more})


def agents(name: str, wanted: int) -> RunningComponent:
    return RunningComponent("DaemonSet", NAMESPACE, name, "agent", wanted, wanted)


def test_a_kind_of_agent_without_nodes_is_no_fault_as_long_as_another_has_some() -> None:
    found = look()
    found.workloads = [operator(), agents("joulie-agent", 3), agents("joulie-agent-nvidia", 0)]
    assert kinds(found) == {}
    found.workloads = [operator(), agents("joulie-agent", 0), agents("joulie-agent-nvidia", 0)]
    assert kinds(found) == {"component-not-ready": "fault"}


def test_the_newest_version_is_told_by_its_numbers() -> None:
    found = look()
    found.workloads = [operator(version="99.9.0"), replace(agents("joulie-agent", 3), version="99.10.0")]
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert finding.kind == "mixed-versions"
    assert finding.next_step.startswith("pip install joulie==99.10.0; helm upgrade --install joulie ")
    found.workloads = [operator(version="99.9.0")]
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert finding.next_step == "pip install joulie==99.9.0"
    found.workloads = [operator(version="0.0.1")]
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert finding.next_step.startswith("helm upgrade --install joulie ")


def test_a_second_operator_is_told_even_while_it_does_not_lead() -> None:
    found = look()
    found.workloads = [operator(), operator("other")]
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("several-operators", "fault")
    assert "joulie-system/joulie-operator, other/joulie-operator" in finding.text
    found.workloads = [operator(), operator("other", wanted=0, ready=0)]
    assert kinds(found) == {}


def test_a_lease_from_the_future_is_told_and_counts_for_no_second_leader() -> None:
    found = look()
    ahead = OperatorLease("other", "gone", NOW_S + 86400 * 9, 15)
    found.live = replace(found.live, leases=(*(found.live.leases or ()), ahead))
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("clock-skew", "fault")
    assert "the lease of gone in other is from 9 days in the future" in finding.text
    assert "kubectl -n other delete lease joulie-operator" in finding.next_step


def test_a_cleanup_that_keeps_the_lease_is_no_leader() -> None:
    found = look()
    found.live = replace(found.live, leases=(OperatorLease(NAMESPACE, "joulie-cleanup_1234", NOW_S - 100, 600),))
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("no-leader", "fault")
    assert "joulie-cleanup_1234 holds the lease" in finding.text


def test_a_cluster_without_joulie_is_told_how_to_install_it() -> None:
    found = look()
    found.live, found.workloads = replace(found.live, leases=()), []
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert finding.next_step.startswith("helm upgrade --install joulie ")


@pytest.mark.parametrize(
    "env", [{"NODE_SELECTOR": "a in ((("}, {"POLICY_TYPE": "not_installed_here"}, {"POWER_BUDGET_WATTS": "much"}]
)
def test_settings_of_the_operator_that_cannot_be_used_are_told_and_stop_nothing(env: dict[str, str]) -> None:
    found = look()
    found.live = replace(found.live, operator_settings=env)
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("operator-settings", "warning")  # it leads, so it can use them
    assert next(iter(env)) in finding.text
    found.live = replace(found.live, leases=())
    assert kinds(found) == {"operator-settings": "fault", "no-leader": "fault"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda version: version.update(served=False), "does not serve v1alpha1"),
        (lambda version: version.update(name="v1alpha9"), "does not serve v1alpha1"),
        (lambda version: version.pop("subresources"), "missing or different: the status subresource"),
    ],
)
def test_a_definition_that_cannot_be_used_as_it_is_is_told(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    found = look()
    found.definitions = {one["metadata"]["name"]: deepcopy(one) for one in crds()}
    assert kinds(found) == {}
    change((found.definitions["nodetwins.joulie.io"] or {})["spec"]["versions"][0])
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("crd-outdated", "fault")
    assert said in finding.text


def test_a_service_that_leads_to_no_ready_extender_is_told() -> None:
    found = look()
    pod = RunningComponent("Pod", NAMESPACE, "joulie-extender-0", "extender", 1, 1, labels={"a": "b", "c": "d"})
    found.pods = [pod]
    found.extender_services = [(NAMESPACE, "joulie-extender", {"a": "b"})]
    assert kinds(found) == {}
    found.extender_services = [(NAMESPACE, "joulie-extender", {"a": "x"})]
    (finding,) = examine(found, ObjectSource((), NOW_S))
    assert (finding.kind, finding.severity) == ("extender-unreachable", "fault")
    found.pods = [replace(pod, ready=0)]  # then it is not the Service that is wrong
    assert kinds(found) == {"extender-down": "fault"}
