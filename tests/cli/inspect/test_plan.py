"""`joulie plan`: the stable JSON for programs, a table for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_runner import DEMO, NOW, PERFORMANCE, joulie, node, pod, write

EPYC: dict[str, Any] = {"hw__cpu_model": "EPYC 9654", "hw__cpu_sockets": "2"}


@pytest.fixture
def small(tmp_path: Path) -> str:
    """One GPU node, two equal CPU nodes of which one hosts a performance pod."""
    gpu = node("g", **EPYC, hw__gpu_model="H100 SXM", hw__gpu_count="8")
    return write(tmp_path, gpu, node("a", **EPYC), node("b", **EPYC), pod("p", on="b", **PERFORMANCE))


def test_json_has_exactly_the_stable_shape(small: str) -> None:
    outcome = joulie("plan", "-f", small, "-o", "json")
    assert (outcome.code, outcome.err) == (0, "")
    reason = "rank 1 of 3 by density, densest of family H100 SXM; 2 kept at performance (0.5 of 3)"
    assert outcome.document["policy"] == "static_partition"
    assert outcome.document["summary"] == {
        "eligible": 3,
        "performance": 2,
        "eco": 0,
        "draining": 1,
        "pods": {"performanceOnly": 1, "ecoOnly": 0, "general": 0},
    }
    assert outcome.document["nodes"][0] == {
        "node": "g",
        "profile": "performance",
        "state": "performance",
        "draining": False,
        "density": 2.0,
        "family": "H100 SXM",
        "cpu": {"capPct": 100.0, "capWatts": None, "capWattsPerPackage": None},
        "gpu": {"capPct": 100.0, "capWattsPerGpu": None},
        "reason": reason,
    }
    draining = outcome.document["nodes"][2]
    assert (draining["node"], draining["profile"], draining["state"], draining["draining"]) == (
        "b", "eco", "draining", True,
    )  # fmt: skip
    assert draining["cpu"] == {"capPct": 100.0, "capWatts": None, "capWattsPerPackage": None}
    assert draining["gpu"] is None
    assert list(outcome.document) == ["policy", "summary", "nodes"]


def test_absolute_caps_are_watts_for_cpus_and_both_for_gpus(small: str) -> None:
    env = {"CPU_WRITE_ABSOLUTE_CAPS": "true", "GPU_WRITE_ABSOLUTE_CAPS": "true", "STATIC_HP_FRAC": "0"}
    outcome = joulie("plan", "-f", small, "-o", "json", env=env)
    gpu_node = outcome.document["nodes"][0]
    assert gpu_node["cpu"] == {"capPct": None, "capWatts": 320.0, "capWattsPerPackage": 160.0}
    assert gpu_node["gpu"] == {"capPct": 60.0, "capWattsPerGpu": 420.0}


def test_yaml_holds_the_same_as_json(small: str) -> None:
    as_yaml = joulie("plan", "-f", small, "-o", "yaml")
    assert (as_yaml.code, as_yaml.err) == (0, "")
    assert yaml.safe_load(as_yaml.out) == joulie("plan", "-f", small, "-o", "json").document


def test_numbers_are_not_rounded(tmp_path: Path) -> None:
    file = write(tmp_path, node("a", cores=7), node("b", cores=3))
    density = joulie("plan", "-f", file, "-o", "json").document["nodes"][1]["density"]
    assert density == 0.428571429


def test_the_order_of_objects_and_files_does_not_matter(tmp_path: Path) -> None:
    objects = [node(name, **EPYC) for name in "cab"] + [pod("p", on="b", **PERFORMANCE)]
    first = joulie("plan", "-f", write(tmp_path, *objects), "-o", "json")
    other = [write(tmp_path, item, name=f"{place}.json") for place, item in enumerate(reversed(objects))]
    split = joulie("plan", *(word for path in other for word in ("-f", path)), "-o", "json")
    assert split == first


def test_a_folder_and_standard_input_hold_objects_too(small: str, tmp_path: Path) -> None:
    expected = joulie("plan", "-f", small, "-o", "json")
    assert joulie("plan", "-f", str(tmp_path), "-o", "json") == expected
    assert joulie("plan", "-f", "-", "-o", "json", stdin=Path(small).read_bytes()) == expected


def test_policy_option_overrides_the_environment(small: str) -> None:
    outcome = joulie("plan", "-f", small, "-o", "json", "--policy", "rule_swap_v1", env={"POLICY_TYPE": "nonsense"})
    assert outcome.document["policy"] == "rule_swap_v1"


@pytest.mark.parametrize(("now", "eco"), [("2026-11-01T12:00:00Z", "g"), ("2026-11-01T12:01:00Z", "a")])
def test_now_fixes_the_time(small: str, now: str, eco: str) -> None:
    outcome = joulie("plan", "-f", small, "-o", "json", "--policy", "rule_swap_v1", "--now", now)
    assert [item["node"] for item in outcome.document["nodes"] if item["profile"] == "eco"] == [eco]


def test_selector_option_overrides_the_environment_and_empty_takes_all(tmp_path: Path) -> None:
    file = write(tmp_path, node("a", rack="x"), node("b", managed=False))

    def planned(*more: str) -> list[str]:
        document: Any = joulie("plan", "-f", file, "-o", "json", *more).document
        return sorted(item["node"] for item in document["nodes"])

    assert planned() == ["a"]
    assert planned("--selector", "") == ["a", "b"]
    assert planned("--selector", "!joulie.io/managed") == ["b"]
    assert joulie("plan", "-f", file, "-o", "json", env={"NODE_SELECTOR": ""}).document["summary"]["eligible"] == 2


def test_a_selector_that_matches_nothing_is_said_with_the_way_out(tmp_path: Path) -> None:
    file = write(tmp_path, node("a", managed=False), node("b", managed=False))
    outcome = joulie("plan", "-f", file, "-o", "json")
    assert outcome.code == 0
    assert outcome.document["nodes"] == []
    assert outcome.err == (
        "joulie: the selector 'joulie.io/managed=true' matches none of 2 nodes; to plan all nodes: --selector ''\n"
    )
    reserved = write(tmp_path, node("a", reserved="true"), name="reserved.json")
    assert "(1 of 1 node) are reserved or cordoned" in joulie("plan", "-f", reserved).err
    nothing = write(tmp_path, pod("p"), name="pods.json")
    assert joulie("plan", "-f", nothing).err == "joulie: the objects contain no Node\n"


def test_warnings_go_to_standard_error_and_a_flood_is_counted(tmp_path: Path) -> None:
    pins = [
        {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodePowerProfile",
            "metadata": {"name": f"pin-{number:02}"},
            "spec": {"nodeName": "gone", "profile": "eco"},
        }
        for number in range(30)
    ]
    outcome = joulie("plan", "-f", write(tmp_path, node("a"), *pins), "-o", "json")
    lines = outcome.err.splitlines()
    assert outcome.code == 0
    assert len(lines) == 21
    assert lines[0].startswith("joulie: warning: NodePowerProfile/pin-00: spec.nodeName: gone is not in the cluster")
    assert lines[-1] == "joulie: warning: … and 10 more like these"
    assert json.loads(outcome.out)["summary"]["eligible"] == 1


def test_the_table_says_state_caps_and_reason_of_every_node() -> None:
    outcome = joulie("plan", "-f", DEMO, *NOW)
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert lines[0].split() == ["node", "was", "state", "density", "family", "CPU", "cap", "GPU", "cap", "why"]
    line = next(line for line in lines if line.startswith("gpu-b2"))
    assert "performance →  ■ draining" in line
    assert "1 performance-only pod still here" in line
    assert next(line for line in lines if line.startswith("cpu-a4")).split()[3:9] == [
        "0.18", "Xeon", "Gold", "6530", "70", "%",
    ]  # fmt: skip
    assert lines[-2].startswith("static_partition: 11 nodes, 5 performance, 5 eco, 1 draining")
    assert lines[-1] == "caps allow 34.2 kW of 40.5 kW uncapped (-15 %)"


def test_the_earlier_state_has_a_column_only_where_an_object_tells_another(small: str, tmp_path: Path) -> None:
    assert "was" not in joulie("plan", "-f", small).out.splitlines()[0].split()
    labelled = write(tmp_path, node("a", power_profile="eco"), name="labelled.json")
    outcome = joulie("plan", "-f", labelled)
    assert outcome.out.splitlines()[1].split()[:4] == ["a", "eco", "→", "■"]


def test_a_table_of_many_nodes_shows_them_all(tmp_path: Path) -> None:
    file = write(tmp_path, *(node(f"node-{number:04}") for number in range(450)))
    lines = joulie("plan", "-f", file).out.splitlines()
    assert sum(line.startswith("node-") for line in lines) == 450


@pytest.mark.parametrize("columns", [80, 100, 132, 200])
def test_tables_fit_the_terminal(columns: int) -> None:
    for command in (["plan"], ["twin"], ["score", "--pod", "ml/finetune-0"]):
        outcome = joulie(*command, "-f", DEMO, *NOW, env={"COLUMNS": str(columns)})
        too_long = [line for line in outcome.out.splitlines() if len(line) > columns and not line.startswith("static")]
        assert not too_long, "\n".join(too_long)


def test_colours_are_for_terminals_that_want_them() -> None:
    wants = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    coloured = joulie("plan", "-f", DEMO, *NOW, env=wants)
    plain = joulie("plan", "-f", DEMO, *NOW)
    assert "\x1b[38;2;0;114;178m■ performance" in coloured.out
    assert "\x1b" not in plain.out
    for outcome in (
        joulie("plan", "-f", DEMO, *NOW, "--no-color", env=wants),
        joulie("plan", "-f", DEMO, *NOW, env={**wants, "NO_COLOR": "1"}),
    ):
        assert "\x1b[3" not in outcome.out
        assert "38;2" not in outcome.out


def test_names_that_would_move_a_terminals_cursor_are_made_harmless(tmp_path: Path) -> None:
    hardware = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeHardware",
        "metadata": {"name": "a"},
        "status": {"cpu": {"model": "evil\u001b[2J\nCPU"}},
    }
    outcome = joulie("plan", "-f", write(tmp_path, node("a"), hardware))
    assert "\x1b" not in outcome.out
    assert "evil�[2J CPU" in outcome.out


def test_pods_that_run_on_eco_alone_are_told_apart_in_plan_and_status(tmp_path: Path) -> None:
    """Written as the documentation shows it: eco, but no node that still drains."""
    settled = [
        {"key": "joulie.io/power-profile", "operator": "In", "values": ["eco"]},
        {"key": "joulie.io/draining", "operator": "NotIn", "values": ["true"]},
    ]
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": settled}]}
    }
    patient = pod("patient")
    patient["spec"]["affinity"] = {"nodeAffinity": required}
    finished = {**pod("finished"), "status": {"phase": "Succeeded"}}
    finished["spec"]["nodeSelector"] = {"joulie.io/power-profile": "eco"}
    file = write(tmp_path, node("a", **EPYC), patient, finished, pod("fast", **PERFORMANCE), pod("any", on="a"))
    counts = {"performanceOnly": 1, "ecoOnly": 1, "general": 1}
    assert joulie("plan", "-f", file, "-o", "json").document["summary"]["pods"] == counts
    assert joulie("status", "-f", file, "-o", "json").document["pods"] == counts
    for command in ("plan", "status"):
        assert "pods: 1 performance-only, 1 eco-only, 1 on either" in joulie(command, "-f", file).out
