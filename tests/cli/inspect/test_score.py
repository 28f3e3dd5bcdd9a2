"""`joulie score`: the stable JSON, and what options change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from joulie.control.scoring import TERMS
from tests.support.cli_runner import DEMO, NOW, PERFORMANCE, joulie, node, pod, write

BREAKDOWN = ["headroomScore", *(term.key for term in TERMS), "podMarginalW", "recentPodsW"]
RELEASED = {"coolingTerm", "trendBonus", "profileBonus", "drainingPenalty", "pressureRelief"}


def twin(name: str, updated: str = "2026-11-01T12:00:00Z", **status: Any) -> dict[str, Any]:
    power = {"measuredNodePowerW": 200, "nodeCappedPowerW": 800}
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "status": {
            "schedulableClass": "performance",
            "predictedCoolingStressScore": 20,
            "powerMeasurement": power,
            "lastUpdated": updated,
            **status,
        },
    }


def test_score_json_has_exactly_the_stable_shape(tmp_path: Path) -> None:
    file = write(tmp_path, node("b"), node("a"), twin("a"), pod("p"))
    outcome = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--now", "2026-11-01T12:01:00Z")
    assert (outcome.code, outcome.err) == (0, "")
    document = outcome.document
    assert list(document) == ["pod", "workloadClass", "nodes"]
    assert (document["pod"], document["workloadClass"]) == ("team/p", "standard")
    assert [item["node"] for item in document["nodes"]] == ["a", "b"]
    known, unknown = document["nodes"]
    assert list(known) == ["node", "feasible", "reason", "score", "breakdown"]
    assert list(known["breakdown"]) == BREAKDOWN
    assert set(BREAKDOWN) >= RELEASED, "programs know these names"
    added_w = 0.7 * 224 * 4 / 64
    assert known["breakdown"]["podMarginalW"] == pytest.approx(added_w)
    headroom = (800 - 200 - added_w) / 800 * 100
    assert known["breakdown"]["headroomScore"] == pytest.approx(headroom)
    assert known["score"] == pytest.approx(0.7 * headroom + 0.15 * 80 - 0.3 * 25)
    assert (unknown["score"], unknown["breakdown"]) == (50.0, None)


def test_a_pod_from_a_file_scores_like_the_same_pod_among_the_objects(tmp_path: Path) -> None:
    objects = [node("a"), twin("a"), node("b")]
    inside = write(tmp_path, *objects, pod("p"))
    outside = write(tmp_path, *objects, name="without.json")
    only_pod = write(tmp_path, pod("p"), name="pod.json")
    now = ("--now", "2026-11-01T12:01:00Z", "-o", "json")
    expected = joulie("score", "-f", inside, "--pod", "team/p", *now)
    assert joulie("score", "-f", outside, "--pod-file", only_pod, *now) == expected
    text = Path(only_pod).read_bytes()
    assert joulie("score", "-f", outside, "--pod-file", "-", *now, stdin=text) == expected


def test_every_pod_bound_since_the_twin_was_written_counts_also_the_scored_one(tmp_path: Path) -> None:
    bound_at = {
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T12:00:30Z"}]
    }
    file = write(
        tmp_path,
        node("a"),
        twin("a"),
        {**pod("p", on="a"), "status": bound_at},
        {**pod("q", on="a"), "status": bound_at},
    )
    outcome = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--now", "2026-11-01T12:01:00Z")
    breakdown = outcome.document["nodes"][0]["breakdown"]
    assert breakdown["recentPodsW"] == pytest.approx(2 * breakdown["podMarginalW"])


def test_a_stale_twin_is_neutral_and_now_decides_what_is_stale(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), twin("a"), pod("p"))
    fresh = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--now", "2026-11-01T12:05:00Z")
    stale = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--now", "2026-11-01T12:05:01Z")
    assert fresh.document["nodes"][0]["breakdown"] is not None
    assert stale.document["nodes"][0]["breakdown"] is None


def test_performance_pods_are_kept_off_eco_nodes(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), twin("a", schedulableClass="eco"), pod("p", **PERFORMANCE))
    outcome = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--now", "2026-11-01T12:01:00Z")
    found = outcome.document["nodes"][0]
    assert found["feasible"] is False
    assert found["reason"] == "node is eco, and the pod's class is performance"
    assert found["score"] > 0


def test_what_if_scores_against_the_twins_that_would_be_written(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), node("b"), twin("a", schedulableClass="draining"), pod("p"))
    outcome = joulie("score", "-f", file, "--pod", "team/p", "-o", "json", "--what-if")
    by_node = {item["node"]: item for item in outcome.document["nodes"]}
    assert by_node["a"]["reason"].startswith("performance node, ")
    assert by_node["b"]["reason"].startswith("eco node, ")
    assert by_node["b"]["breakdown"]["profileBonus"] == 10.0


def test_what_if_takes_the_pod_off_its_node_first(tmp_path: Path) -> None:
    here = write(tmp_path, node("a"), pod("p", on="a", cpu="32"))
    pending = write(tmp_path, node("a"), pod("p", cpu="32"), name="pending.json")
    arguments = ("--pod", "team/p", "-o", "json", "--what-if", *NOW)
    assert joulie("score", "-f", here, *arguments) == joulie("score", "-f", pending, *arguments)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("team/trian", "pod 'team/trian' is not in the files; did you mean team/train?"),
        ("other/train", "pod 'other/train' is not in the files; did you mean team/train?"),
        ("train", "pod 'train' has no namespace: write NAMESPACE/NAME; did you mean team/train?"),
        ("zzz/yyy", "pod 'zzz/yyy' is not in the files"),
    ],
)
def test_a_pod_that_is_not_there_is_answered_with_what_comes_near(asked: str, said: str, tmp_path: Path) -> None:
    outcome = joulie("score", "-f", write(tmp_path, node("a"), pod("train")), "--pod", asked)
    assert (outcome.code, outcome.complaint) == (2, said)


def test_a_pod_file_must_hold_one_pod(tmp_path: Path) -> None:
    cluster = write(tmp_path, node("a"))
    empty = write(tmp_path, node("x"), name="empty.json")
    outcome = joulie("score", "-f", cluster, "--pod-file", empty)
    assert (outcome.code, outcome.complaint) == (2, f"{empty}: contains no Pod, but exactly one is needed")


def test_score_table_lists_takers_first_and_says_what_keeps_the_others() -> None:
    lines = joulie("score", "-f", DEMO, "--pod", "ml/finetune-0", *NOW).out.splitlines()
    assert lines[0] == "ml/finetune-0: performance, 16 cores, 2 GPUs"
    assert [line.split()[0] for line in lines[2:6]] == ["gpu-c2", "gpu-c1", "gpu-b2", "gpu-b1"]
    assert lines[6].split()[0] == "gpu-b3"
    assert lines[6].endswith("rejected: eco node")
    assert any(line.startswith("cpu-a1") and line.endswith("no GPU") for line in lines)
    assert any(line.startswith("gpu-c4") and line.endswith("0 of 8 GPUs free") for line in lines)


def test_neutral_scores_come_with_the_way_to_real_ones(tmp_path: Path) -> None:
    file = write(tmp_path, node("a", managed=False), pod("p"))
    without = joulie("score", "-f", file, "--pod", "team/p")
    assert without.out.splitlines()[-1].endswith("for real numbers: --what-if")
    out_of_scope = joulie("score", "-f", file, "--pod", "team/p", "--what-if")
    assert out_of_scope.out.splitlines()[-1].endswith("to select all nodes: --selector ''")
    real = joulie("score", "-f", file, "--pod", "team/p", "--what-if", "--selector", "")
    assert "neutral" not in real.out
