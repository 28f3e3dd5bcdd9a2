"""The demo's data centre: forty nodes of six kinds in four racks, on two feeds and in two cooling zones. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from joulie.demo.scenario.feeds import FEED_LABEL, feed_of
from joulie.demo.scenario.jobs import GPU_TAINT, label_of
from joulie.model import names

RACKS, RACKS_PER_ZONE = 4, 2
CLUSTER = "demo"
# This node has an agent of its own, which the story lets die.
OWN_AGENT_LABEL = "joulie.io/demo-own-agent"
LONELY_NODE = "l40s-3"
PINNED_NODE = "genoa-4"


class MachineKind(NamedTuple):
    """Nodes of one make."""

    prefix: str
    nodes: int
    cpu: str
    cores: int  # of both sockets
    gpu: str = ""
    gpus: int = 0


KINDS = (
    MachineKind("turin", 8, "EPYC 9965", 384),
    MachineKind("genoa", 10, "EPYC 9654", 192),
    MachineKind("xeon", 6, "Xeon Gold 6530", 64),
    MachineKind("h100", 6, "EPYC 9654", 192, "H100 SXM", 8),
    MachineKind("mi300", 4, "EPYC 9654", 192, "MI300X", 8),
    MachineKind("l40s", 6, "EPYC 9654", 192, "L40S", 4),
)


class NodePlace(NamedTuple):
    """What the demo's scheduler knows of a node."""

    name: str
    cores: float
    gpus: float
    gpu_model: str


@lru_cache(maxsize=1)
def places() -> tuple[NodePlace, ...]:
    """Every node, by name."""
    made = [NodePlace(f"{k.prefix}-{n}", k.cores, k.gpus, k.gpu) for k in KINDS for n in range(1, k.nodes + 1)]
    return tuple(sorted(made))


def node_manifests() -> list[dict[str, Any]]:
    """The nodes as an administrator would have labelled them, spread evenly over the racks."""
    manifests: list[dict[str, Any]] = []
    for kind in KINDS:
        for number in range(1, kind.nodes + 1):
            rack = len(manifests) % RACKS
            manifests.append(_manifest(kind, f"{kind.prefix}-{number}", rack))
    return manifests


def _manifest(kind: MachineKind, name: str, rack: int) -> dict[str, Any]:
    labels = {
        names.MANAGED_LABEL: "true",
        names.RACK_LABEL: f"rack-{rack}",
        FEED_LABEL: feed_of(rack),
        names.COOLING_ZONE_LABEL: "north" if rack < RACKS_PER_ZONE else "south",
        names.CPU_MODEL_LABEL: label_of(kind.cpu),
        names.CPU_SOCKETS_LABEL: "2",
    }
    capacity = {"cpu": str(kind.cores), "memory": "768Gi", "pods": "110"}
    spec: dict[str, Any] = {}
    if kind.gpu:
        labels |= {names.GPU_MODEL_LABEL: label_of(kind.gpu), names.GPU_COUNT_LABEL: str(kind.gpus)}
        capacity[names.AMD_GPU if kind.gpu.startswith("MI") else names.NVIDIA_GPU] = str(kind.gpus)
        spec["taints"] = [{"key": GPU_TAINT, "effect": "NoSchedule"}]
    if name == LONELY_NODE:
        labels[OWN_AGENT_LABEL] = "true"
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
