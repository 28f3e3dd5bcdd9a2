"""`joulie doctor` finds each planted fault and nothing else, and nothing at all in a healthy cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_live.faults import ADMISSION, APPS, LONG_AGO, NODE, PLANTED, a_node_that_nobody_knows, status
from tests.cli_live.installation import ROOT, Installation
from tests.rights import NAMESPACE

if TYPE_CHECKING:
    from pathlib import Path


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
    """Nobody repairs what a test plants."""
    complete.freeze()
    yield complete
    complete.thaw()


def test_a_healthy_installation_has_no_finding(there: Installation, complete: Installation) -> None:
    assert there is complete
    outcome = there.run("doctor", "-o", "json")
    assert outcome.document == {"faults": 0, "warnings": 0, "findings": [], "notLookedAt": []}
    assert outcome.code == 0
    assert "no fault found" in there.run("doctor").out


def found(installation: Installation, **env: str) -> tuple[int, list[dict[str, Any]]]:
    installation.renew_lease_unless_planted()
    outcome = installation.run("doctor", "-o", "json", **env)
    return outcome.code, outcome.document["findings"]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_nothing_else(name: str, still: Installation) -> None:
    plant, kind, severity, said = PLANTED[name]
    with plant(still):
        code, findings = found(still)
    assert {finding["kind"] for finding in findings} == {kind}, findings
    first = findings[0]
    assert first["severity"] == severity
    assert said in first["text"]
    assert first["nextStep"]
    assert not first["nextStep"].startswith("joulie doctor"), "that is where one is already"
    assert first["link"] == f"docs/troubleshooting.md#{kind}"
    assert code == (1 if severity == "fault" else 0)


def test_a_node_that_nobody_knows_is_told_with_what_is_missing(still: Installation) -> None:
    with a_node_that_nobody_knows(still):
        _, findings = found(still)
    assert {(finding["kind"], finding["node"]) for finding in findings} == {
        ("hardware-unknown", "strange"),
        ("twin-missing", "strange"),
    }


def test_a_selector_that_matches_nothing_is_told(still: Installation) -> None:
    _, findings = found(still, NODE_SELECTOR="no=such")
    assert [finding["kind"] for finding in findings] == ["scope-empty"]


def test_whoever_may_see_little_is_told_what_was_not_seen(still: Installation, tmp_path: Path) -> None:
    from testbed.kubeconfig import write_kubeconfig
    from tests.rights import Rights

    still.renew_lease()
    token = Rights("operator").grant(still.plane)  # may list nodes, pods and Joulie's objects, and no workloads
    config = write_kubeconfig(tmp_path / "config", still.plane.url, still.plane.ca_file, token)
    outcome = still.run_as(config, "doctor", "-o", "json")
    assert outcome.code == 0
    assert {finding["kind"] for finding in outcome.document["findings"]} == {"forbidden"}
    assert "is not allowed to list deployments.apps" in outcome.out


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
    sources = [*(ROOT / "src/joulie/cli").glob("doctor_*.py"), ROOT / "src/joulie/overview/findings.py"]
    kinds = {kind for file in sources for kind in re.findall(r'(?:Finding|whole)\(\s*"([a-z-]+)"', file.read_text())}
    assert len(kinds) >= 20
    assert kinds <= sections, kinds - sections
