"""Of several operators one acts at a time, whatever becomes of it: told by the API server's own audit log.

Every process has an account of its own, so the log says who wrote what and when it arrived. Lease times are the real
ones: 15 s granted, relied on for 10 s, tried every 2 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.operator.processes.processes import AuditLog, RunningOperator, wait_until
from tests.support.rights import NAMESPACE

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

LEASE_S, RETRY_S = 15.0, 2.0
NODES = 150
# Twins are refreshed all the time, so that an operator which leads is always in the middle of a write.
BUSY = {
    "RECONCILE_INTERVAL": "200ms",
    "TWIN_REFRESH_INTERVAL": "200ms",
    "KUBE_CLIENT_QPS": "5000",
    "KUBE_CLIENT_BURST": "5000",
}
SLACK_S = 5.0  # for a machine that does other things, too


class Stage:
    """A control plane with nodes and an audit log, where operators come and go."""

    def __init__(self, plane: ControlPlane, audit: AuditLog, folder: Path) -> None:
        self.plane = plane
        self.audit = audit
        self._folder = folder

    def operator(self, letter: str, **env: str) -> RunningOperator:
        from testbed.processes import free_port

        return RunningOperator(self.plane, f"joulie-operator-{letter}", self._folder, free_port(), **{**BUSY, **env})

    def wait_for_acts(self, operator: RunningOperator, since_s: float = 0.0, timeout_s: float = 30.0) -> float:
        """When the first write that the operator made since then arrived."""
        what = f"{operator.account} writes; its log: {operator.log_file.read_text()[-2000:]}"
        wait_until(lambda: bool(self.audit.acts(operator.account, since_s)), timeout_s, what)
        return self.audit.acts(operator.account, since_s)[0].at_s

    def lease(self) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-operator"
        spec: dict[str, Any] = self.plane.api.get(path)["spec"]
        return spec


@pytest.fixture(scope="module")
def audited_plane(
    control_plane_binaries: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ControlPlane, AuditLog]]:
    from testbed.control_plane import ControlPlane

    audit = AuditLog(tmp_path_factory.mktemp("audit"))
    with ControlPlane(apiserver_flags=audit.flags) as plane:
        plane.install_crds()
        yield plane, audit


@pytest.fixture
def stage(audited_plane: tuple[ControlPlane, AuditLog], tmp_path: Path) -> Stage:
    from testbed.cleaning import clear
    from testbed.objects import fill

    plane, audit = audited_plane
    clear(plane)
    fill(plane, NODES, 0, kinds={"Node"})
    return Stage(plane, audit, tmp_path)


def test_of_two_operators_one_acts_and_the_other_waits(stage: Stage) -> None:
    began_s = time.time()
    with stage.operator("a") as first, stage.operator("b") as second:
        wait_until(lambda: len(stage.audit.writes(began_s)) > 3 * NODES, 30, "an operator has made first contact")
        for operator in (first, second):
            wait_until(lambda o=operator: _says(o, "leader seen"), 30, f"{operator.account} has looked at the Lease")  # type: ignore[misc]
        time.sleep(2 * RETRY_S)
        actors = {written.account for written in stage.audit.writes(began_s) if written.acts}
        assert len(actors) == 1
        (leader,) = (operator for operator in (first, second) if operator.account in actors)
        (waiting,) = (operator for operator in (first, second) if operator.account not in actors)
        assert _says(leader, "this operator is the leader now")
        assert not _says(waiting, "this operator is the leader now")
        # The one that waits watches all the same: it is ready to act from one moment to the next.
        leader.kill()


def test_when_the_leader_is_killed_the_other_acts_within_the_lease_time(stage: Stage) -> None:
    with stage.operator("a") as first:
        stage.wait_for_acts(first, time.time())
        with stage.operator("b") as second:
            wait_until(lambda: _says(second, "leader seen"), 30, "the second has looked at the Lease")
            killed_s = first.kill()
            acted_s = stage.wait_for_acts(second, killed_s, LEASE_S + RETRY_S + SLACK_S)
            # Not at once either: the first could have been merely slow. The second may have seen the last renewal up
            # to one try later, and the first made it up to one try before its end.
            assert LEASE_S - RETRY_S - 1 < acted_s - killed_s < LEASE_S + RETRY_S + SLACK_S
            assert stage.audit.acts(first.account, killed_s + 1) == []


def test_a_leader_that_was_frozen_past_its_lease_writes_nothing_before_it_leads_again(stage: Stage) -> None:
    with stage.operator("a") as first:
        began_s = stage.wait_for_acts(first, time.time())
        with stage.operator("b") as second:
            wait_until(lambda: _says(second, "leader seen"), 30, "the second has looked at the Lease")
            wait_until(lambda: len(stage.audit.acts(first.account, began_s)) > 4 * NODES, 30, "the first is busy")
            frozen_s = first.freeze()
            stage.wait_for_acts(second, frozen_s, LEASE_S + RETRY_S + SLACK_S)
            thawed_s = first.thaw()
            wait_until(
                lambda: _says(first, "this operator is no longer the leader"), 10, "the first knows that it was frozen"
            )
            time.sleep(2 * RETRY_S)
            assert stage.audit.acts(first.account, thawed_s) == []
            assert len(stage.audit.acts(second.account, thawed_s)) > NODES  # the second does act
            stopped_s = second.ask_to_stop()
            stage.wait_for_acts(first, stopped_s, 2 * RETRY_S + SLACK_S)
        since = [written for written in stage.audit.writes(thawed_s) if written.account == first.account]
        taken_s = next(written.at_s for written in since if written.takes_lease)
        assert [written for written in since if written.acts and written.at_s < taken_s] == []


def test_a_clean_stop_hands_over_at_once(stage: Stage) -> None:
    with stage.operator("a") as first:
        stage.wait_for_acts(first, time.time())
        with stage.operator("b") as second:
            wait_until(lambda: _says(second, "leader seen"), 30, "the second has looked at the Lease")
            stopped_s = first.ask_to_stop()
            assert first.process.wait(SLACK_S) == 0
            acted_s = stage.wait_for_acts(second, stopped_s)
            assert acted_s - stopped_s < RETRY_S + SLACK_S < LEASE_S / 2
            released_s = max(w.at_s for w in stage.audit.writes(stopped_s) if w.account == first.account)
            assert [w for w in stage.audit.acts(first.account, stopped_s) if w.at_s > acted_s] == []
            assert released_s < acted_s


def test_a_clean_stop_in_the_middle_of_many_writes_does_not_wait_for_them(stage: Stage) -> None:
    slow = {"KUBE_CLIENT_QPS": "5", "KUBE_CLIENT_BURST": "1"}  # first contact would take 90 s
    began_s = time.time()
    with stage.operator("a", **slow) as first:
        stage.wait_for_acts(first, began_s)
        stopped_s = first.ask_to_stop()
        assert first.process.wait(SLACK_S) == 0
        assert 0 < len(stage.audit.acts(first.account, began_s)) < NODES
        assert stage.lease()["holderIdentity"] == ""
        with stage.operator("b") as second:  # and the next one finishes it
            stage.wait_for_acts(second, stopped_s)
            path = "/apis/joulie.io/v1alpha1/nodetwins"
            wait_until(lambda: len(stage.plane.api.get(path)["items"]) == NODES, 30, "all twins are there")


def _says(operator: RunningOperator, message: str) -> bool:
    return any(line["message"] == message for line in operator.log())
