"""Files, times and sizes at the edge: one line that says so, never a plan of something else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.cli_runner import joulie, node, pod, write

NOON = "2026-11-01T12:00:00Z"


def test_an_empty_file_name_does_not_stand_for_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, node("n"))
    monkeypatch.chdir(tmp_path)
    outcome = joulie("plan", "-f", "", "-o", "json")
    assert (outcome.code, outcome.complaint) == (2, "a file name is empty")


def test_a_link_in_a_folder_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, node("n"))
    (tmp_path / "pods.yaml").symlink_to("gone.yaml")
    outcome = joulie("plan", "-f", str(tmp_path), "-o", "json")
    assert outcome.code == 2
    assert outcome.complaint == f"{tmp_path / 'pods.yaml'}: cannot be read: No such file or directory"


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_list_whose_kind_is_cut_off_is_no_unknown_object(cut: int) -> None:
    whole = yaml.safe_dump({"apiVersion": "v1", "items": [node("n")], "kind": "List"}).rstrip()
    outcome = joulie("plan", "-f", "-", stdin=whole[:-cut])
    assert outcome.code == 2
    assert outcome.complaint.endswith("has items but is not a List: is the file truncated?")


@pytest.mark.parametrize("now", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "9999-12-31T23:59:60Z"])
def test_a_time_outside_the_calendar_is_wrong_usage(now: str) -> None:
    outcome = joulie("twin", "-f", "-", "--now", now)
    assert outcome.code == 2
    assert "its year is out of range" in outcome.complaint


def test_nanoseconds_do_not_round_a_time_up_into_the_next_second(tmp_path: Path) -> None:
    cluster = write(tmp_path, node("n"))
    outcome = joulie("twin", "-f", cluster, "-o", "json", "--selector", "", "--now", "2026-11-01T12:00:00.999999999Z")
    assert outcome.document[0]["status"]["lastUpdated"] == NOON


@pytest.mark.parametrize("resource", ["cpu", "nvidia.com/gpu"])
def test_a_node_larger_than_any_twin_could_say_is_refused(resource: str) -> None:
    large = {**node("n"), "status": {"capacity": {resource: "1M"}}}
    outcome = joulie("twin", "-f", "-", stdin=yaml.safe_dump(large))
    assert (
        outcome.complaint == f"standard input: Node/n: status.capacity.{resource}: 1e+06 is out of range (up to 65536)"
    )


@pytest.mark.parametrize(("closed", "code"), [("<&-", 2), (">&-", 0)])
def test_a_closed_stream_is_an_empty_one(closed: str, code: int, tmp_path: Path) -> None:
    cluster = "-" if closed == "<&-" else write(tmp_path, node("n"))
    command = f'"{sys.executable}" -m joulie plan -f "{cluster}" -o json {closed}'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "unexpected" not in done.stderr


def test_a_scheduled_condition_without_a_status_still_has_its_time(tmp_path: Path) -> None:
    twin = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": "n"},
        "status": {"lastUpdated": NOON, "powerMeasurement": {"measuredNodePowerW": 1, "nodeCappedPowerW": 2}},
    }
    condition = {"type": "PodScheduled", "lastTransitionTime": NOON}
    recent = pod("recent", cpu="1")
    recent["spec"]["nodeName"] = "n"
    recent["status"] = {"conditions": [condition]}
    machine = {**node("n"), "status": {"capacity": {"cpu": "100"}}}
    cluster = write(tmp_path, machine, twin, recent, pod("waiting"))
    outcome = joulie("score", "-f", cluster, "-o", "json", "--now", NOON, "--pod", "team/waiting")
    assert outcome.document["nodes"][0]["breakdown"]["recentPodsW"] == pytest.approx(0.7 * 3.5)


def test_a_pin_says_when_its_watts_cannot_be_used(tmp_path: Path) -> None:
    pin = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodePowerProfile",
        "metadata": {"name": "quiet"},
        "spec": {"nodeName": "n", "profile": "eco", "cpu": {"packagePowerCapWatts": 90}},
    }
    outcome = joulie("plan", "-f", write(tmp_path, node("n"), pin), "-o", "json", "--selector", "")
    planned = outcome.document["nodes"][0]
    assert planned["cpu"] == {"capPct": 60.0, "capWatts": None, "capWattsPerPackage": None}
    assert planned["reason"].endswith("its CPU watts cannot be used: the maximum is not known")
