"""The same looks at objects in files, and commands that only a live cluster has an answer for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runner import joulie, node, write

NOW = ("--now", "2026-11-01T12:00:00Z")
Object = dict[str, Any]


def twin(name: str, power_w: float, **status: Any) -> Object:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": "performance", "cpu": {"packagePowerCapPctOfMax": 100}},
        "status": {
            "schedulableClass": "performance",
            "powerMeasurement": {"measuredNodePowerW": power_w, "nodeCappedPowerW": 500, "source": "http"},
            "lastUpdated": "2026-11-01T11:59:00Z",
            "controlStatus": {"cpu": {"result": "applied", "updatedAt": "2026-11-01T11:59:00Z"}},
            **status,
        },
    }


@pytest.fixture
def file(tmp_path: Path) -> str:
    nodes = [node("a", rack="r1"), node("b", rack="r2"), node("c", managed=False)]
    return write(tmp_path, *nodes, twin("a", 120.0), twin("b", 300.0, predictedCoolingStressScore=95))


def test_status_of_files(file: str) -> None:
    view = joulie("status", "-f", file, *NOW, "-o", "json").document
    assert (view["nodes"], view["unmanaged"], view["powerW"], view["enforced"]) == (2, 1, 420.0, 2)
    assert [rack["name"] for rack in view["racks"]] == ["r1", "r2"]
    shown = joulie("status", "-f", file, *NOW).out
    assert "Joulie · files · 2 nodes · 1 not managed" in shown
    assert "420 W drawn, 1.0 kW allowed" in shown
    assert "warning  b: cooling stress 95 %" in shown


def test_top_of_files_prints_once(file: str) -> None:
    lines = joulie("top", "-f", file, *NOW).out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("a ", "b ", "c "))] == ["b", "a"]


def test_a_plan_of_files_shows_everything_or_the_difference(file: str) -> None:
    env = {"STATIC_HP_FRAC": "0.5"}
    whole = joulie("plan", "-f", file, *NOW, env=env).out
    difference = joulie("plan", "-f", file, *NOW, "--diff", env=env).out
    assert {line.split()[0] for line in whole.splitlines() if line.startswith(("a ", "b "))} == {"a", "b"}
    assert [line.split()[0] for line in difference.splitlines() if line.startswith(("a ", "b "))] == ["b"]
    assert "1 node would change, 1 unchanged (--all shows every node)" in difference


def test_a_cluster_without_managed_nodes_is_told_how_to_begin(tmp_path: Path) -> None:
    outcome = joulie("status", "-f", write(tmp_path, node("a", managed=False)), *NOW)
    assert outcome.code == 0
    assert "to manage one: kubectl label node NAME joulie.io/managed=true" in outcome.out


def test_many_nodes_with_the_same_trouble_are_one_line(tmp_path: Path) -> None:
    objects = [item for name in "abcdefgh" for item in (node(name), twin(name, 1, lastUpdated="2026-11-01T11:00:00Z"))]
    lines = joulie("status", "-f", write(tmp_path, *objects), *NOW).out.splitlines()
    assert [line.strip() for line in lines if "its twin is" in line] == [
        "fault    8 nodes (a, b, c, d, …): its twin is 60 min old"
    ]


def test_names_that_try_to_move_the_cursor_are_shown_as_text(tmp_path: Path) -> None:
    evil = twin("a", 1, controlStatus={"cpu": {"result": "error", "message": "\x1b[2J", "updatedAt": NOW[1]}})
    rack = node("a")
    rack["metadata"]["labels"]["joulie.io/rack"] = "\x1b[31mr"
    for command in ("status", "top"):
        outcome = joulie(command, "-f", write(tmp_path, rack, evil), *NOW)
        assert outcome.code == 0
        assert "\x1b" not in outcome.out


@pytest.mark.parametrize("command", [["doctor"], ["pin", "a", "eco"], ["unpin", "a"], ["cleanup", "--yes"]])
def test_without_a_cluster_there_is_one_line_that_says_so(command: list[str], tmp_path: Path) -> None:
    outcome = joulie(*command, env={"HOME": str(tmp_path)})
    assert outcome.code == 2
    assert outcome.complaint.endswith("set KUBECONFIG or use --kubeconfig; this command needs a live cluster")


WRONG = {
    ("pin", "a", "fast"): "'fast' is not one of 'performance', 'eco'",
    ("pin", "a", "eco", "--for", "soon"): "'soon' cannot be used: allowed is a duration such as 90s, 5m or 1h30m",
    ("pin", "a", "eco", "--cpu-pct", "101"): "'101' cannot be used: allowed is a number above 0 up to 100",
    ("pin", "a", "eco", "--gpu-watts", "-5"): "'-5' cannot be used: allowed is a number above 0 up to 1e+06",
    ("pin", "a", "eco", "--cpu-watts", "nan"): "'nan' cannot be used",
    ("pin", "a", "eco", "--cpu-watts", "inf"): "'inf' cannot be used",
    ("pin", "a"): "missing argument",
    ("top", "--sort", "age"): "'age' is not one of 'power', 'headroom', 'heat', 'name'",
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.items(), ids=lambda value: str(value)[:50])
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    outcome = joulie(*arguments)
    assert outcome.code == 2
    assert said in outcome.complaint.lower() or said in outcome.complaint
