"""`joulie doctor` finds each planted fault and nothing else, and nothing at all in a healthy cluster."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from joulie.cli.connection import on_connection
from joulie.cli.live import LiveCluster, read_live
from tests.cli.doctor.faults import ADMISSION, APPS, LONG_AGO, NODE, PLANTED, a_node_of_unknown_hardware, status
from tests.cli.doctor.faults_around import (
    AROUND,
    a_device_of_an_earlier_route_stays_capped,
    an_extender_with,
    event_of_agent,
)
from tests.cli.doctor.faults_of_budgets import BUDGETS
from tests.cli.doctor.faults_of_telemetry import TELEMETRY, serving
from tests.cli.installation import ROOT, Installation, own_address
from tests.support.rights import NAMESPACE

LOOKED_AT = "customresourcedefinitions"
EVERYTHING = PLANTED | AROUND | TELEMETRY | BUDGETS


@pytest.fixture(scope="module")
def complete(installed: Installation) -> Iterator[Installation]:
    """With everything that the chart installs."""
    installed.install_objects()
    yield installed
    api = installed.plane.api
    for component, kind in (("operator", "deployments"), ("extender", "deployments"), ("agent", "daemonsets")):
        api.delete(f"{APPS}/{kind}/joulie-{component}")
    for kind in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
        api.delete(f"{ADMISSION}/{kind}/joulie-performance-affinity")
    api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/joulie-extender-0?gracePeriodSeconds=0")


@pytest.fixture(scope="module")
def still(complete: Installation) -> Iterator[Installation]:
    """No process repairs what a test plants."""
    complete.freeze()
    yield complete
    complete.thaw()


def test_a_healthy_installation_has_no_finding(there: Installation, complete: Installation) -> None:
    assert there is complete
    outcome = there.run("doctor", "-o", "json")
    assert outcome.document == {"faults": 0, "warnings": 0, "findings": [], "hints": [], "notLookedAt": []}
    assert outcome.code == 0
    assert "no faults found" in there.run("doctor").out


def test_the_api_server_tells_when_operator_and_agent_wrote(there: Installation) -> None:
    """Each of the two owns its own part of a twin, so a clock that is behind can be told from silence.

    A twin or lease that an earlier test wrote belongs to that test until the operator refreshes it.
    """

    def read() -> LiveCluster:
        return on_connection(str(there.plane.kubeconfig), "", read_live)

    def both_wrote_each() -> bool:
        live = read()
        (lease,) = live.leases or ()
        stamps = [lease.written_at_s, *(at_s for at in live.written.values() for at_s in at)]
        return set(live.written) == set(there.names) and None not in stamps

    there.wait_until(both_wrote_each, "operator and agent have written every twin, and the operator its lease")
    (lease,) = read().leases or ()
    assert abs(lease.ahead_s) < 30


def found(installation: Installation, **env: str) -> tuple[int, list[dict[str, Any]]]:
    installation.renew_lease_unless_planted()
    outcome = installation.run("doctor", "-o", "json", **env)
    document = outcome.document
    assert len(document["findings"]) == document["faults"] + document["warnings"]
    return outcome.code, document["findings"] + document["hints"]


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_planted_fault_is_found_and_nothing_else(
    name: str, still: Installation, request: pytest.FixtureRequest
) -> None:
    planted = EVERYTHING[name]
    kind, severity = planted.kind, planted.severity
    with planted.plant(still):
        code, findings = found(still)
        if planted.follow and findings:
            follow(still, findings[0]["nextStep"], request.getfixturevalue("kubectl"))
            assert found(still) == (0, []), "the next step helps"
    assert [finding["kind"] for finding in findings] == [kind] * planted.number, findings
    first = findings[0]
    assert first["severity"] == severity
    assert planted.said in first["text"]
    assert first["nextStep"]
    assert not first["nextStep"].startswith("joulie doctor"), "that is where one is already"
    assert "secret" not in str(findings)
    assert first["link"] == f"docs/troubleshooting.md#{kind}"
    assert code == (1 if severity == "fault" else 0)


def follow(installation: Installation, step: str, kubectl: Path) -> None:
    """What a person would type."""
    path = f"{kubectl.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "KUBECONFIG": str(installation.plane.kubeconfig), "HOME": str(installation.folder)}
    done = subprocess.run(["/bin/sh", "-c", step], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done


def test_a_node_of_unknown_hardware_is_reported_with_what_is_missing(still: Installation) -> None:
    with a_node_of_unknown_hardware(still):
        _, findings = found(still)
    assert {(finding["kind"], finding["node"]) for finding in findings} == {
        ("hardware-unknown", "strange"),
        ("twin-missing", "strange"),
    }


def test_a_device_that_was_put_back_in_the_end_is_not_told(still: Installation) -> None:
    done = event_of_agent("CapsRestored", "no cap is left that could not be removed", time.time() - 600)
    with a_device_of_an_earlier_route_stays_capped(still), still.added(done):
        assert found(still) == (0, [])


def test_an_extender_whose_metrics_alone_are_closed_is_not_called_down(still: Installation) -> None:
    with (
        serving(404, b"", own_address()) as address,
        an_extender_with(still, metrics=1, extender=int(address.rpartition(":")[2])),
    ):
        still.renew_lease_unless_planted()
        outcome = still.run("doctor", "-o", "json")
    assert (outcome.code, outcome.document["findings"]) == (0, [])
    assert any("metrics of the extender" in line for line in outcome.document["notLookedAt"])


def test_a_selector_that_matches_nothing_is_told(still: Installation) -> None:
    _, findings = found(still, NODE_SELECTOR="no=such")
    assert [finding["kind"] for finding in findings] == ["scope-empty"]


def test_a_user_who_may_see_little_is_told_what_was_not_seen(still: Installation, tmp_path: Path) -> None:
    from testbed.credentials import write_kubeconfig
    from tests.support.rights import Rights

    still.renew_lease()
    token = Rights("operator").grant(still.plane)  # may list nodes, pods and Joulie's objects, and no workloads
    config = write_kubeconfig(tmp_path / "config", still.plane.url, still.plane.ca_file, token)
    outcome = still.run_as(config, "doctor", "-o", "json")
    assert outcome.code == 0
    assert {finding["kind"] for finding in outcome.document["findings"]} == {"forbidden"}
    assert "is not allowed to list deployments.apps" in outcome.out


def test_it_looks_again_until_all_is_well_or_its_time_is_over(still: Installation) -> None:
    def looks() -> int:
        return sum(number for request, number in still.plane.metrics().items() if request.resource == LOOKED_AT)

    with ThreadPoolExecutor(1) as other:
        with status(lastUpdated=LONG_AGO)(still):
            still.renew_lease()
            assert still.run("doctor", "--wait", "1s").code == 1
            before = looks()
            waiting = other.submit(still.run, "doctor", "--wait", "60s")
            still.wait_until(lambda: looks() > before, "it has looked and found the fault")
        still.renew_lease()
        assert waiting.result().code == 0


def test_people_see_what_it_is_the_next_step_and_where_to_read_on(still: Installation) -> None:
    with status(lastUpdated=LONG_AGO)(still):
        still.renew_lease()
        outcome = still.run("doctor")
    assert outcome.code == 1
    assert re.search(rf"fault +{NODE}: its twin is .* days old", outcome.out)
    assert "→ kubectl -n joulie-system logs deployment/joulie-operator" in outcome.out
    assert "docs/troubleshooting.md#twin-stale" in outcome.out
    assert "1 fault, 0 warnings" in outcome.out


def test_every_finding_has_its_section_in_the_troubleshooting_page() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    sections = set(re.findall(r"^### ([a-z-]+)$", page, re.MULTILINE))
    overview = ROOT / "src/joulie/overview"
    sources = [*(ROOT / "src/joulie/cli/doctor").glob("*.py"), *overview.glob("*findings.py")]
    kinds = {
        kind
        for file in sources
        for kind in re.findall(r'(?:Finding|cluster_finding)\(\s*"([a-z-]+)"', file.read_text())
    }
    assert len(kinds) >= 35
    assert kinds <= sections, kinds - sections
    literals = {word for file in sources for word in re.findall(r'"([a-z-]+)"', file.read_text())}
    assert sections <= literals, sections - literals


def test_every_kind_of_finding_is_planted_somewhere() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    sections = set(re.findall(r"^### ([a-z-]+)$", page, re.MULTILINE))
    planted = {one.kind for one in EVERYTHING.values()}
    elsewhere = {"forbidden", "hardware-unknown", "kubernetes-version", "left-behind", "namespace-deleted"}
    by_load = {"hot", "rack-full"}  # of which `doctor` says nothing
    assert sections == planted | elsewhere | by_load
