"""`joulie explain`: where facts come from, what made a node what it is, why a pod goes where it goes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runner import DEMO, NOW, PERFORMANCE, joulie, node, pod, write

ALL_DEMO_NODES = [f"cpu-a{n}" for n in range(1, 6)] + [f"gpu-b{n}" for n in range(1, 4)] + [
    f"gpu-c{n}" for n in range(1, 5)
]  # fmt: skip


def explained(*arguments: str, **env: str) -> Any:
    outcome = joulie("explain", *arguments, "-o", "json", env=env)
    assert outcome.code == 0, outcome.err
    return outcome.document


def sources(document: Any) -> dict[str, str]:
    return {name: fact["source"] for name, fact in document["hardware"].items()}


def test_a_node_known_from_its_agent_says_so() -> None:
    document = explained("node", "gpu-b1", "-f", DEMO, *NOW)
    assert sources(document) == {
        "cpu": "NodeHardware cpu.rawModel",
        "sockets": "NodeHardware cpu.sockets",
        "cores": "NodeHardware cpu.totalCores",
        "cpuMaximum": "NodeHardware cpu.capRange × sockets",
        "cpuMinimum": "unknown",
        "idle": "catalogue curve + 20 % of the GPU maximum",
        "gpus": "NodeHardware gpu",
        "gpu": "NodeHardware gpu.rawModel",
        "gpuMaximum": "NodeHardware gpu.capRangePerGpu",
        "gpuMinimum": "NodeHardware gpu.capRangePerGpu",
    }
    assert document["hardware"]["gpuMinimum"] == {
        "value": 200.0,
        "unit": "W each",
        "source": "NodeHardware gpu.capRangePerGpu",
    }


def test_a_node_known_from_labels_says_so() -> None:
    found = sources(explained("node", "gpu-b2", "-f", DEMO, *NOW))
    assert found["cpu"] == "label joulie.io/hw.cpu-model"
    assert found["gpu"] == "label nvidia.com/gpu.product"
    assert found["gpus"] == "Node capacity"
    assert (found["cpuMaximum"], found["gpuMaximum"]) == ("catalogue × sockets", "catalogue")


def test_a_gpu_range_from_the_settings_says_so() -> None:
    caps = '{"H100 SXM": {"minCapWatts": 300, "maxCapWatts": 650}}'
    document = explained("node", "gpu-b2", "-f", DEMO, *NOW, GPU_MODEL_CAPS_JSON=caps)
    assert document["hardware"]["gpuMaximum"] == {"value": 650.0, "unit": "W each", "source": "GPU_MODEL_CAPS_JSON"}
    assert document["hardware"]["gpuMinimum"]["value"] == 300.0


def test_unknown_hardware_is_called_an_estimate(tmp_path: Path) -> None:
    document = explained("node", "a", "-f", write(tmp_path, node("a", cores=100)))
    assert document["hardware"]["cpuMaximum"]["value"] == 350.0
    found = sources(document)
    assert found["cpuMaximum"] == "estimate: 3.5 W per core, at least 150 W"
    assert (found["cpu"], found["sockets"], found["cores"]) == ("unknown", "assumed", "Node capacity")


def test_the_decision_names_rank_policy_pin_and_guard() -> None:
    draining = explained("node", "gpu-b2", "-f", DEMO, *NOW)
    assert (draining["policy"], draining["rank"], draining["eligible"]) == ("static_partition", 4, 11)
    assert (draining["before"], draining["assignment"]["state"]) == ("performance", "draining")
    assert draining["guardPods"] == ["ml/pretrain-1"]
    pinned = explained("node", "cpu-a4", "-f", DEMO, *NOW)
    assert pinned["pin"] == "quiet-xeon"
    assert pinned["assignment"]["cpu"]["capPct"] == 70.0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cpu-a5", "cordoned: twin, label and caps stay unchanged"),
        ("db-c5", "out of scope: it is reserved (label joulie.io/reserved=true)"),
    ],
)
def test_a_node_that_is_left_alone_says_why(name: str, said: str) -> None:
    document = explained("node", name, "-f", DEMO, *NOW)
    assert (document["leftOut"], document["assignment"]) == (said, None)
    assert joulie("explain", "node", name, "-f", DEMO, *NOW).out.splitlines()[0] == f"{name} · {said}"


def test_a_node_outside_the_selector_says_so(tmp_path: Path) -> None:
    document = explained("node", "a", "-f", write(tmp_path, node("a", managed=False)))
    assert document["leftOut"] == "out of scope: the selector 'joulie.io/managed=true' does not match it"
    assert document["twin"] is None


def test_a_cap_that_the_agent_could_not_set_is_told() -> None:
    outcome = joulie("explain", "node", "cpu-a3", "-f", DEMO, *NOW)
    assert "the CPU cap of 60 % is not enforced: blocked, limit locked by the BIOS; it counts as 100 %" in outcome.out


@pytest.mark.parametrize("ambient", ["20", "34.5"])
@pytest.mark.parametrize("name", ALL_DEMO_NODES)
def test_the_filled_in_formulas_give_the_numbers_beside_them(name: str, ambient: str) -> None:
    document = explained("node", name, "-f", DEMO, *NOW, "--ambient", ambient)
    assert len(document["formulas"]) == 6
    for formula in document["formulas"].values():
        assert evaluated(formula["formula"]) == pytest.approx(formula["value"], rel=2e-3, abs=0.01), formula


def evaluated(text: str) -> float:
    """The value of a formula as it is shown to people: words are left out, what remains is Python."""
    if text.startswith("mean of "):
        parts = text.removeprefix("mean of ").removesuffix(", each at most 100").split(" and ")
        return sum(evaluated(f"{part}, at most 100") for part in parts) / len(parts)
    text, _, limit = text.partition(", at most ")
    text = re.sub(r"drawn by .*? /", "/", text.split("   (")[0])
    text = re.sub(r" for \d+ pods?", "", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    text = re.sub(r"°C|\b(?!max\b|min\b)[A-Za-z]\w*", "", re.sub(r"(\d) %", r"\1 / 100", text))
    value = float(eval(text.replace("×", "*").replace("−", "-"), {"max": max, "min": min}))
    return min(value, float(limit)) if limit else value


def test_a_node_that_is_not_there_is_answered_with_what_comes_near() -> None:
    outcome = joulie("explain", "node", "gpu-b22", "-f", DEMO)
    assert outcome.code == 2
    assert outcome.complaint.startswith("node 'gpu-b22' is not in the files; did you mean gpu-b2, ")


def test_a_pods_story_names_its_place_and_compares_the_best_two() -> None:
    lines = joulie("explain", "pod", "ml/finetune-0", "-f", DEMO, "--what-if", *NOW).out.splitlines()
    assert lines[0] == "ml/finetune-0 · performance, 16 cores, 2 GPUs · would go to gpu-c1 (score 24.6)"
    assert [line.split()[0] for line in lines[2:7]] == ["gpu-c1", "gpu-b1", "gpu-c2", "gpu-b2", "gpu-b3"]
    assert lines[-1] == ("why not gpu-b1? 23.9 points less: 1 % of its power budget left with the pod, against 22.2 %")


def test_a_pods_story_as_json_adds_the_place_and_what_keeps_it_elsewhere() -> None:
    document = explained("pod", "ml/finetune-0", "-f", DEMO, "--what-if", *NOW)
    assert (document["best"], document["cpuCores"], document["gpus"]) == ("gpu-c1", 16.0, 2.0)
    by_node = {item["node"]: item for item in document["nodes"]}
    assert by_node["cpu-a1"]["misfit"] == "no GPU"
    assert by_node["gpu-c4"]["misfit"] == "0 of 8 GPUs free"
    assert by_node["cpu-a5"]["misfit"] == "cordoned"
    assert by_node["gpu-c1"]["misfit"] is None
    assert by_node["gpu-c1"]["headroomBefore"] > by_node["gpu-c1"]["breakdown"]["headroomScore"]


def twin(name: str, **status: Any) -> dict[str, Any]:
    power = {"measuredNodePowerW": 200, "nodeCappedPowerW": 800, **status.pop("power", {})}
    known = {"schedulableClass": "performance", "predictedCoolingStressScore": 20, **status}
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "status": {**known, "powerMeasurement": power, "lastUpdated": "2026-11-02T09:00:00Z"},
    }


@pytest.mark.parametrize(
    ("worse", "words"),
    [
        ({"power": {"measuredNodePowerW": 700}}, "of its power budget left with the pod, against 73.8 %"),
        ({"predictedCoolingStressScore": 70}, "70 % of its cooling in use, against 20 %"),
        ({"power": {"powerTrendWPerMin": 30}}, "its power changes by 30 W per minute"),
        ({"schedulableClass": "unknown"}, "it is not an eco node, which standard pods prefer"),
        ({"schedulableClass": "draining"}, "it is draining and should not get new work"),
    ],
)
def test_the_comparison_names_the_largest_difference(worse: dict[str, Any], words: str, tmp_path: Path) -> None:
    best_class = "eco" if "schedulableClass" in worse else "performance"
    twins = [twin("a", schedulableClass=best_class), twin("b", **worse)]
    file = write(tmp_path, node("a"), node("b"), *twins, pod("p"))
    sentence = explained("pod", "team/p", "-f", file, *NOW)["whyNot"]
    assert re.fullmatch(r"why not b\? \d+\.\d points less: .*", sentence)
    assert sentence.endswith(words)


def test_equal_nodes_are_called_equal(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), node("b"), twin("a"), twin("b"), pod("p"))
    sentence = explained("pod", "team/p", "-f", file, *NOW)["whyNot"]
    assert sentence == "why not b? the same score; kube-scheduler's other plug-ins decide"


def test_a_node_without_a_twin_is_compared_as_neutral(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), node("b"), twin("a"), pod("p"))
    sentence = explained("pod", "team/p", "-f", file, *NOW)["whyNot"]
    assert sentence.endswith("points less; b has no fresh twin, so its score is neutral")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("gpu-b2", "why not gpu-b2? rejected: node is draining, and the pod's class is performance"),
        ("cpu-a1", "why not cpu-a1? kube-scheduler: no GPU"),
        ("gpu-c1", "why not gpu-c1? it is the best"),
    ],
)
def test_why_not_compares_with_the_node_that_is_asked_about(wanted: str, said: str) -> None:
    document = explained("pod", "ml/finetune-0", "-f", DEMO, "--what-if", "--why-not", wanted, *NOW)
    assert document["whyNot"] == said


def test_why_not_an_unknown_node_is_an_error() -> None:
    outcome = joulie("explain", "pod", "ml/finetune-0", "-f", DEMO, *NOW, "--why-not", "gpu-x9")
    assert outcome.code == 2
    assert "--why-not 'gpu-x9' is not a node in the files" in outcome.err


def test_a_pod_that_fits_nowhere_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, node("a", cores=8), pod("big", cpu="6", on="a"), pod("p", cpu="4"))
    lines = joulie("explain", "pod", "team/p", "-f", file).out.splitlines()
    assert lines[0].endswith("no node would take it")
    assert lines[2].endswith("2 of 8 cores free")
    without_nodes = joulie("explain", "pod", "team/p", "-f", write(tmp_path, pod("p"), name="pods.json"))
    assert without_nodes.out == "team/p · standard, 4 cores · there are no nodes\n"


def test_a_long_story_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    file = write(tmp_path, *(node(f"n{number:03}") for number in range(100)), pod("p", **PERFORMANCE))
    lines = joulie("explain", "pod", "team/p", "-f", file, "--what-if").out.splitlines()
    assert len(lines) < 30
    assert lines[-2] == "… and 82 more; joulie score shows them all"
    assert math.isfinite(float(lines[2].split()[3]))


def test_nodes_that_kube_scheduler_would_refuse_for_taints_or_labels_are_not_named_as_the_best(tmp_path: Path) -> None:
    fake = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
    soft = {"key": "busy", "effect": "PreferNoSchedule"}
    tainted, preferred, plain = node("tainted"), node("preferred"), node("plain")
    tainted["spec"] = {"taints": [fake]}
    preferred["spec"] = {"taints": [soft]}
    preferred["metadata"].setdefault("labels", {})["disk"] = "fast"
    picky, tolerant, anything = pod("picky"), pod("tolerant"), pod("anything")
    picky["spec"]["nodeSelector"] = {"disk": "fast"}
    tolerant["spec"]["tolerations"] = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
    terms = [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    anything["spec"]["affinity"] = {"nodeAffinity": required}
    file = write(tmp_path, tainted, preferred, plain, picky, tolerant, anything)

    def misfits(name: str) -> dict[str, str | None]:
        document = explained("pod", f"team/{name}", "-f", file, *NOW)
        assert document["best"] != "tainted" or name == "tolerant"
        return {line["node"]: line["misfit"] for line in document["nodes"]}

    labels = "its labels do not match the pod's node selector or affinity"
    refused = "taint kwok.x-k8s.io/node=fake:NoSchedule not tolerated"
    assert misfits("picky") == {"tainted": refused, "preferred": None, "plain": labels}
    assert misfits("tolerant") == {"tainted": None, "preferred": None, "plain": None}
    assert misfits("anything") == {"tainted": refused, "preferred": labels, "plain": None}


def test_a_node_that_waits_for_its_first_power_cap_says_so(tmp_path: Path) -> None:
    new = node("new")
    new["spec"] = {"taints": [{"key": "joulie.io/uncapped", "effect": "NoSchedule"}]}
    document = explained("pod", "team/one", "-f", write(tmp_path, new, node("old"), pod("one")), *NOW)
    assert document["best"] == "old"
    assert {line["node"]: line["misfit"] for line in document["nodes"]} == {
        "new": "no power cap of it is confirmed yet (taint joulie.io/uncapped:NoSchedule)",
        "old": None,
    }


def test_a_pod_that_fits_no_longer_into_a_budget_hears_of_the_group_and_its_watts(tmp_path: Path) -> None:
    """Two nodes alike, one of them in a full rack."""
    status = {"measuredNodePowerW": 500, "nodeCappedPowerW": 800, "powerTrendWPerMin": 0}
    objects: list[Any] = []
    for name, group in (("full", "racks/r1"), ("roomy", "racks/r2")):
        twin = {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodeTwin",
            "metadata": {"name": name},
            "spec": {
                "nodeName": name,
                "budget": {"order": 1, "caps": {"cpuWattsPerPackage": 400}, "groups": [group]},
            },
            "status": {
                "schedulableClass": "performance",
                "predictedCoolingStressScore": 20,
                "lastUpdated": NOW[1],
                "powerMeasurement": status,
            },
        }
        objects += [node(name), twin]
    groups = [
        {
            "value": value,
            "nodes": 1,
            "limitWatts": 1000,
            "allocatedWatts": 1000,
            "measuredWatts": drawn,
            "floorWatts": 400,
        }
        | {"state": "within"}
        for value, drawn in (("r1", 990), ("r2", 400))
    ]
    budget = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "PowerBudget",
        "metadata": {"name": "racks"},
        "spec": {"watts": 1000, "groupBy": "joulie.io/rack"},
        "status": {"groups": groups},
    }
    file = write(tmp_path, *objects, budget, pod("asking", cpu="32"))
    told = joulie("explain", "pod", "team/asking", "-f", file, *NOW)
    assert "would go to roomy" in told.out, told.out
    assert "racks/r1" in told.out, told.out
