"""The CustomResourceDefinitions of Joulie's kinds, generated from the classes that decode them.

The table below adds what a class does not have: names for kubectl and the columns of `kubectl get`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from joulie.cluster.crds.schemas import Schema, schema_of
from joulie.model.api import NodeHardware, NodePowerProfile, NodeTwin, PowerBudget, TelemetryProfile

GROUP = "joulie.io"
VERSION = "v1alpha1"
HEADER = "# Generated from src/joulie/model/api; after a change run: make generate\n"


class Column(NamedTuple):
    """One column of `kubectl get`. Type integer drops decimals, which suits watts."""

    name: str
    type: str
    path: str
    description: str
    priority: int = 0  # 1: only with -o wide

    def manifest(self) -> dict[str, Any]:
        manifest = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return manifest | ({"priority": self.priority} if self.priority else {})


class ApiKind(NamedTuple):
    """Names and columns of one kind."""

    api_class: type
    plural: str
    short: str
    columns: tuple[Column, ...]

    @property
    def kind(self) -> str:
        return self.api_class.__name__


def _condition(type_: str, description: str, priority: int = 0) -> Column:
    """A column with the status of a condition."""
    return Column(type_, "string", f'.status.conditions[?(@.type=="{type_}")].status', description, priority)


def _reason(type_: str, priority: int = 1) -> Column:
    path = f'.status.conditions[?(@.type=="{type_}")].reason'
    return Column(f"{type_}-Reason", "string", path, f"Why {type_} is what it is.", priority)


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
            _condition("Discovered", "Whether the hardware could be found out.", 1),
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
            Column("CPU-Cap-W", "integer", ".spec.cpu.packagePowerCapWatts", "CPU cap of each package, watts.", 1),
            Column("GPU-Cap-W", "integer", ".spec.gpu.powerCap.capWattsPerGpu", "Cap of each GPU, watts.", 1),
            # As text: kubectl shows dates as ages, and a future date has none.
            Column("Expires", "string", ".spec.expiresAt", "When the pin ends by itself."),
            _condition("Accepted", "Whether the pin counts."),
            _condition("Enforced", "Whether its caps hold on the node."),
            _reason("Accepted"),
            _reason("Enforced"),
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
            _condition("Enforced", "Whether every cap that is wanted holds."),
            _reason("Enforced"),
            Column("Control", "string", ".status.controlStatus.cpu.result", "What became of the CPU cap.", 1),
            Column("GPU-Control", "string", ".status.controlStatus.gpu.result", "What became of the GPU cap.", 1),
            Column("PSU", "integer", ".status.predictedPsuStressScore", "The rack's supply in use, percent.", 1),
            Column("Trend-W/min", "integer", f"{_POWER}.powerTrendWPerMin", "Slope of the power.", 1),
            Column("Source", "string", f"{_POWER}.source", "Where the power value comes from.", 1),
            Column("Policy", "string", ".spec.policy.name", "What chose the profile."),
            Column("Updated", "date", ".status.lastUpdated", "When the operator last wrote the status."),
        ),
    ),
    ApiKind(
        PowerBudget,
        "powerbudgets",
        "pb",
        (
            Column("Watts", "integer", ".spec.watts", "Limit of each group, watts."),
            Column("Group-By", "string", ".spec.groupBy", "The label whose values are groups."),
            Column("Mode", "string", ".spec.mode", "enforce, or report."),
            _condition("Feasible", "Whether every group can be held to its limit."),
            _condition("Enforced", "Whether confirmed caps hold every group to its limit."),
            _condition("WithinLimit", "Whether every group draws less than its limit."),
            Column("Until", "string", ".status.until", "When a window or forecast next changes a limit."),
            _reason("Feasible"),
            _reason("Enforced"),
            _AGE,
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
            _condition("Accepted", "Whether it routes any node."),
            _condition("Working", "Whether every cap that goes this way holds."),
            Column("Nodes", "integer", ".status.nodes.routed", "Nodes that it routes."),
            Column("Applied", "integer", ".status.nodes.applied", "Nodes where every cap was applied.", 1),
            Column("Blocked", "integer", ".status.nodes.blocked", "Nodes where a cap cannot be applied.", 1),
            Column("Error", "integer", ".status.nodes.error", "Nodes where applying a cap failed.", 1),
            Column("CPU-Result", "string", ".status.control.cpu.result", "What became of CPU caps.", 1),
            Column("GPU-Result", "string", ".status.control.gpu.result", "What became of GPU caps.", 1),
            _AGE,
        ),
    ),
)

# Rules over more than one field, by kind and path: (CEL expression, message).
RULES: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("PowerBudget", "spec"): (
        ("has(self.groupBy) || !has(self.groups)", "groups needs groupBy"),
        ("has(self.share) || !has(self.failoverShare)", "failoverShare needs share"),
        ("!has(self.failoverShare) || self.failoverShare >= self.share", "failoverShare is at least share"),
    ),
    ("PowerBudget", "spec.nodeSelector.matchExpressions[]"): (
        (
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "In and NotIn need values, Exists and DoesNotExist take none",
        ),
    ),
    ("PowerBudget", "spec.windows[]"): (("self.from != self.to", "a window ends at another time than it begins"),),
    ("PowerBudget", "spec.signal"): (("has(self.query) != has(self.forecast)", "give either query or forecast"),),
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
        "metadata": {"type": "object"},  # defined by the API server, which rejects a description here
    }
    schema["properties"] = frame | {name: part for name, part in schema["properties"].items() if name != "metadata"}
    required = [name for name in schema.pop("required", ()) if name != "metadata"]
    if required:
        schema["required"] = required
    for (named, path), rules in RULES.items():
        if named == kind.kind:
            part = schema
            for step in path.split("."):
                part = part["properties"][step.removesuffix("[]")]
                part = part["items"] if step.endswith("[]") else part
            part["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return schema
