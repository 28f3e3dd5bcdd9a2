"""Rules of `joulie doctor` that no cluster of ours can show: old servers, wrong clocks, and rights that drift."""

from __future__ import annotations

import pytest

from joulie.cli.doctor_findings import examine
from joulie.cli.doctor_look import Look
from joulie.cli.doctor_rights import needed
from joulie.cli.live import Live
from joulie.cli.operator_lease import OperatorLease
from joulie.cli.options import Source
from joulie.model.snapshot import Node, Snapshot
from tests.rights import NAMESPACE, Rights

NOW_S = 1_793_534_400.0


def look(*, server_s: float = NOW_S, version: tuple[int, int] = (1, 36)) -> Look:
    """An empty cluster with an operator that leads."""
    live = Live(Snapshot(nodes={}), "test", leases=(OperatorLease(NAMESPACE, "operator", server_s - 1, 15),))
    return Look(live, NOW_S, server_s, version)


def kinds(found: Look) -> dict[str, str]:
    return {finding.kind: finding.severity for finding in examine(found, Source((), NOW_S))}


def test_nothing_is_wrong_with_an_empty_cluster_that_is_led() -> None:
    assert kinds(look()) == {}


@pytest.mark.parametrize(("version", "told"), [((1, 33), True), ((1, 34), False), ((1, 36), False), ((1, 37), True)])
def test_versions_that_nobody_tested_are_told(version: tuple[int, int], told: bool) -> None:
    assert kinds(look(version=version)) == ({"kubernetes-version": "warning"} if told else {})


@pytest.mark.parametrize(
    ("ahead_s", "severity"), [(0.0, None), (4.0, None), (30.0, "warning"), (-30.0, "warning"), (600.0, "fault")]
)
def test_a_wrong_clock_is_told_and_does_not_make_the_leader_look_dead(ahead_s: float, severity: str | None) -> None:
    expected = {} if severity is None else {"clock-skew": severity}
    assert kinds(look(server_s=NOW_S - ahead_s)) == expected


def test_a_leader_that_gave_its_lease_back_is_told_from_one_that_died() -> None:
    found = look()
    ended = Live(Snapshot(nodes={}), "test", leases=(OperatorLease(NAMESPACE, "", NOW_S - 1, 1),))
    (finding,) = examine(Look(ended, NOW_S, NOW_S, found.version), Source((), NOW_S))
    assert "ended in good order and none took over" in finding.text


def test_labels_that_were_left_behind_are_told() -> None:
    node = Node("n", {"joulie.io/power-profile": "eco"})
    other = Node("m", {"joulie.io/managed": "true"})
    found = look()
    live = Live(Snapshot(nodes={"n": node, "m": other}), "test", leases=found.live.leases)
    findings = examine(Look(live, NOW_S, NOW_S, found.version), Source((), NOW_S))
    (left,) = [finding for finding in findings if finding.kind == "labels-out-of-step"]
    assert left.next_step == "kubectl label node n joulie.io/power-profile- joulie.io/draining-"


@pytest.mark.parametrize("component", ["operator", "agent", "extender"])
def test_the_rights_that_are_asked_for_are_those_that_are_shipped(component: str) -> None:
    """But for those on one object alone, which an access review would have to name."""
    shipped = {(right.group, right.resource, right.verb) for right in Rights(component).all() if not right.name}
    asked = {(right.group, right.resource, right.verb) for right in needed(component, NAMESPACE)}
    assert asked == shipped
