"""Labels, pod constraints and fields of the documents that this software was made from, under the names they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from joulie.cluster.crds.definitions import crds
from tests.support.cli_runner import joulie

PROFILE, DRAINING = "joulie.io/power-profile", "joulie.io/draining"
FIELDS = {
    "NodeTwin": [
        "spec.nodeName",
        "spec.profile",
        "spec.cpu.packagePowerCapWatts",
        "spec.cpu.packagePowerCapPctOfMax",
        "spec.gpu.powerCap.capWattsPerGpu",
        "spec.gpu.powerCap.capPctOfMax",
        "status.schedulableClass",
        "status.predictedPowerHeadroomScore",
        "status.predictedCoolingStressScore",
        "status.predictedPsuStressScore",
        "status.hardwareDensityScore",
        "status.estimatedPUE",
        "status.lastUpdated",
        *(
            f"status.powerMeasurement.{name}"
            for name in (
                *("source", "measuredNodePowerW", "powerTrendWPerMin"),
                *("cpuCappedPowerW", "gpuCappedPowerW", "nodeCappedPowerW", "cpuTdpW", "gpuTdpW", "nodeTdpW"),
            )
        ),
    ],
    "NodeHardware": [
        "status.cpu.model",
        "status.cpu.sockets",
        "status.cpu.totalCores",
        "status.cpu.capRange.maxWattsPerSocket",
        "status.gpu.model",
        "status.gpu.count",
        "status.gpu.capRangePerGpu.maxWatts",
        "status.memory.totalBytes",
    ],
    "NodePowerProfile": [
        "spec.nodeName",
        "spec.profile",
        "spec.cpu.packagePowerCapWatts",
        "spec.cpu.packagePowerCapPctOfMax",
        "spec.gpu.powerCap.capWattsPerGpu",
        "spec.gpu.powerCap.capPctOfMax",
    ],
    "TelemetryProfile": [
        "status.control.cpu.result",
        "status.control.gpu.result",
        "spec.sources.cpu.type",
        "spec.sources.gpu.type",
        "spec.controls.cpu.type",
        "spec.controls.gpu.type",
    ],
}


def _at(schema: Any, path: str) -> Any:
    """What the definition says of a field; None where there is no such."""
    for part in path.split("."):
        schema = (schema or {}).get("properties", {}).get(part)
    return schema


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_is_there_under_its_name(kind: str) -> None:
    (definition,) = (each for each in crds() if each["spec"]["names"]["kind"] == kind)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [path for path in FIELDS[kind] if _at(schema, path) is None] == []


def test_results_and_classes_are_the_words_that_are_named() -> None:
    kinds = {each["spec"]["names"]["kind"]: each["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for each in crds()}
    for device in ("cpu", "gpu"):
        result = _at(kinds["TelemetryProfile"], f"status.control.{device}.result")
        assert set(result["enum"]) == {"applied", "blocked", "error", "none"}
    told = _at(kinds["NodeTwin"], "status.schedulableClass")
    assert set(told["enum"]) >= {"performance", "eco", "draining"}


def _node(name: str, labels: dict[str, str], capacity: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": {"cpu": "64", **(capacity or {})}, "allocatable": {"cpu": "64", **(capacity or {})}},
    }


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "x"}]
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _required(*expressions: dict[str, Any]) -> dict[str, Any]:
    term = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}


def _rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def _plan(folder: Path, *items: dict[str, Any]) -> Any:
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    outcome = joulie("plan", "-f", str(file), "-o", "json")
    assert outcome.code == 0, outcome.err
    return outcome.document


def test_labels_choose_nodes_and_name_hardware_where_no_agent_does(tmp_path: Path) -> None:
    managed = {"joulie.io/managed": "true"}
    planned = _plan(
        tmp_path,
        _node("cpu", {**managed, "joulie.io/hw.cpu-model": "AMD_EPYC_9654"}),
        _node("gpu", {**managed, "joulie.io/hw.gpu-model": "NVIDIA-H100-NVL", "joulie.io/hw.gpu-count": "8"}),
        _node("plain", managed),
        _node("nvidia", managed, {"nvidia.com/gpu": "4"}),
        _node("amd", managed, {"amd.com/gpu": "4"}),
        _node("reserved", {**managed, "joulie.io/reserved": "true"}),
        _node("cordoned", managed, unschedulable=True),
        _node("stranger", {}),
    )
    by_name = {each["node"]: each for each in planned["nodes"]}
    assert planned["summary"]["eligible"] == 5
    assert by_name["cpu"]["family"] == "EPYC 9654"
    assert by_name["gpu"]["family"] == "H100 NVL"
    assert min(by_name["nvidia"]["density"], by_name["amd"]["density"]) > by_name["plain"]["density"]
    assert planned["nodes"][0]["node"] == "gpu", "the densest comes first"


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (_required(_rule(PROFILE, "NotIn", "eco")), "performanceOnly"),
        (_required(_rule(PROFILE, "In", "performance")), "performanceOnly"),
        ({"nodeSelector": {PROFILE: "performance"}}, "performanceOnly"),
        ({"nodeSelector": {PROFILE: "eco"}}, "ecoOnly"),
        (_required(_rule(PROFILE, "In", "eco"), _rule(DRAINING, "NotIn", "true")), "ecoOnly"),
        (_required(_rule(PROFILE, "In", "performance", "eco")), "general"),
        ({}, "general"),
    ],
)
def test_pods_are_told_apart_by_their_scheduling_constraints(spec: dict[str, Any], kind: str, tmp_path: Path) -> None:
    planned = _plan(tmp_path, _node("a", {"joulie.io/managed": "true"}), _pod("p", **spec))
    assert {name for name, number in planned["summary"]["pods"].items() if number} == {kind}
