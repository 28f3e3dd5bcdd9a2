"""The CustomResourceDefinitions of Joulie's API objects, made from the classes that also decode them.

What a class cannot know stands in the table below: how kubectl calls a kind and what it shows in a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from joulie.cluster.schemas import Schema, schema_of
from joulie.model.api import NodeHardware, NodePowerProfile, NodeTwin, TelemetryProfile

GROUP = "joulie.io"
VERSION = "v1alpha1"
HEADER = "# Generated from src/joulie/model/api; after a change run: make generate\n"


class Column(NamedTuple):
    """One column of `kubectl get`. Type integer cuts decimals off, which is what a person wants of watts."""

    name: str
    type: str
    path: str
    description: str
    priority: int = 0  # 1: only with -o wide

    def manifest(self) -> dict[str, Any]:
        manifest = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return manifest | ({"priority": self.priority} if self.priority else {})


class ApiKind(NamedTuple):
    """How one kind is called and listed."""

    api_class: type
    plural: str
    short: str
    columns: tuple[Column, ...]

    @property
    def kind(self) -> str:
        return self.api_class.__name__


_AGE = Column("Age", "date", ".metadata.creationTimestamp", "Since when the object is there.")
_CAP, _POWER = ".status.effectiveCapState", ".status.powerMeasurement"
_CPU, _GPU = ".status.cpu", ".status.gpu"

KINDS: tuple[ApiKind, ...] = (
    ApiKind(
        NodeHardware,
        "nodehardwares",
        "nhw",
        (
            Column("CPU", "string", f"{_CPU}.model", "CPU model as the catalogue names it."),
            Column("Sockets", "integer", f"{_CPU}.sockets", "Number of sockets."),
            Column("Cores", "integer", f"{_CPU}.totalCores", "Cores of all sockets together."),
            Column("Socket-W", "integer", f"{_CPU}.capRange.maxWattsPerSocket", "Highest cap of a socket, watts."),
            Column("GPU", "string", f"{_GPU}.model", "GPU model as the catalogue names it."),
            Column("GPUs", "integer", f"{_GPU}.count", "Number of GPU boards."),
            Column("GPU-W", "integer", f"{_GPU}.capRangePerGpu.maxWatts", "Highest cap of a GPU board, watts."),
            Column("Quality", "string", ".status.quality.overall", "How far the discovery can be trusted."),
            Column("CPU-Control", "boolean", ".status.capabilities.cpuControl", "CPU caps can be set.", 1),
            Column("GPU-Control", "boolean", ".status.capabilities.gpuControl", "GPU caps can be set.", 1),
            Column("Driver", "string", f"{_CPU}.driverFamily", "Frequency driver.", 1),
            Column("Updated", "date", ".status.updatedAt", "When the agent last looked."),
        ),
    ),
    ApiKind(
        NodePowerProfile,
        "nodepowerprofiles",
        "npp",
        (
            Column("Node", "string", ".spec.nodeName", "The node that is pinned."),
            Column("Profile", "string", ".spec.profile", "What it is pinned to."),
            Column("CPU-Cap%", "integer", ".spec.cpu.packagePowerCapPctOfMax", "CPU cap, percent of maximum."),
            Column("GPU-Cap%", "integer", ".spec.gpu.powerCap.capPctOfMax", "GPU cap, percent of maximum."),
            Column("CPU-Cap-W", "integer", ".spec.cpu.packagePowerCapWatts", "CPU cap of the node, watts.", 1),
            Column("GPU-Cap-W", "integer", ".spec.gpu.powerCap.capWattsPerGpu", "Cap of each GPU, watts.", 1),
            # As text: kubectl shows dates as ages, and a date to come has none.
            Column("Expires", "string", ".spec.expiresAt", "When the pin ends by itself."),
            _AGE,
        ),
    ),
    ApiKind(
        NodeTwin,
        "nodetwins",
        "nt",
        (
            Column("Profile", "string", ".spec.profile", "Profile that the operator wants."),
            Column("State", "string", ".status.schedulableClass", "What the scheduler may place here."),
            Column("CPU-Cap%", "integer", f"{_CAP}.cpuPct", "CPU cap that counts, percent of maximum."),
            Column("GPU-Cap%", "integer", f"{_CAP}.gpuPct", "GPU cap that counts, percent of maximum."),
            Column("Power-W", "integer", f"{_POWER}.measuredNodePowerW", "Power the node draws now, watts."),
            Column("Budget-W", "integer", f"{_POWER}.nodeCappedPowerW", "Power allowed by the caps, watts."),
            Column("Headroom", "integer", ".status.predictedPowerHeadroomScore", "Room for more work, 0 to 100."),
            Column("Cooling", "integer", ".status.predictedCoolingStressScore", "Cooling capacity in use, percent."),
            Column("Control", "string", ".status.controlStatus.cpu.result", "What became of the CPU cap."),
            Column("GPU-Control", "string", ".status.controlStatus.gpu.result", "What became of the GPU cap.", 1),
            Column("PSU", "integer", ".status.predictedPsuStressScore", "The rack's supply in use, percent.", 1),
            Column("Trend-W/min", "integer", f"{_POWER}.powerTrendWPerMin", "Slope of the power.", 1),
            Column("Source", "string", f"{_POWER}.source", "Where the power value comes from.", 1),
            Column("Policy", "string", ".spec.policy.name", "Who chose the profile."),
            Column("Updated", "date", ".status.lastUpdated", "When the operator last wrote the status."),
        ),
    ),
    ApiKind(
        TelemetryProfile,
        "telemetryprofiles",
        "tp",
        (
            Column("Scope", "string", ".spec.target.scope", "One node, or the cluster."),
            Column("Node", "string", ".spec.target.nodeName", "The node, with scope node."),
            Column("CPU-Source", "string", ".spec.sources.cpu.type", "Where CPU power is read."),
            Column("GPU-Source", "string", ".spec.sources.gpu.type", "Where GPU power is read."),
            Column("CPU-Control", "string", ".spec.controls.cpu.type", "Where CPU caps go."),
            Column("GPU-Control", "string", ".spec.controls.gpu.type", "Where GPU caps go."),
            Column("CPU-Result", "string", ".status.control.cpu.result", "What became of CPU caps.", 1),
            Column("GPU-Result", "string", ".status.control.gpu.result", "What became of GPU caps.", 1),
            _AGE,
        ),
    ),
)

# Rules over more than one field, by kind and path: (CEL expression, what it says when it does not hold).
RULES: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("TelemetryProfile", "spec.target"): (
        ("self.scope != 'node' || has(self.nodeName)", "nodeName is needed with scope node"),
    ),
}


def crds() -> list[dict[str, Any]]:
    """All definitions, by name."""
    return [_crd(kind) for kind in KINDS]


def crds_yaml() -> str:
    """All definitions as YAML documents, for `kubectl apply -f -`."""
    return "---\n".join(crd_yaml(crd) for crd in crds())


def crd_yaml(crd: dict[str, Any]) -> str:
    import yaml

    return HEADER + yaml.safe_dump(crd, sort_keys=False, width=120, allow_unicode=True)


def _crd(kind: ApiKind) -> dict[str, Any]:
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": [kind.short],
        "categories": ["joulie"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.manifest() for column in kind.columns],
        "schema": {"openAPIV3Schema": _object_schema(kind)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def _object_schema(kind: ApiKind) -> Schema:
    schema = schema_of(kind.api_class)
    frame: Schema = {
        "apiVersion": {"description": f"{GROUP}/{VERSION}", "type": "string"},
        "kind": {"description": kind.kind, "type": "string"},
        "metadata": {"type": "object"},  # the API server knows it, and refuses a description
    }
    schema["properties"] = frame | {name: part for name, part in schema["properties"].items() if name != "metadata"}
    required = [name for name in schema.pop("required", ()) if name != "metadata"]
    if required:
        schema["required"] = required
    for (named, path), rules in RULES.items():
        if named == kind.kind:
            part = schema
            for step in path.split("."):
                part = part["properties"][step]
            part["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return schema
