"""Nodes, twins and pods as an API server and kube-scheduler write them."""

from __future__ import annotations

from typing import Any

from joulie.model.rfc3339 import format_time
from tests.support.small_clusters import NOW

Body = dict[str, Any]
PROFILE = "joulie.io/power-profile"


def node(name: str, profile: str = "", cores: int = 100, labels: dict[str, str] | None = None) -> Body:
    """100 cores of an unknown CPU make a maximum of 350 W."""
    shown = {**(labels or {}), **({PROFILE: profile} if profile else {})}
    return {"metadata": {"name": name, "labels": shown}, "status": {"capacity": {"cpu": str(cores)}}}


def twin(name: str, state: str = "performance", at_s: float = NOW, measured_w: float = 300, **status: Any) -> Body:
    """Half of its 600 W in use, flat trend."""
    power = {"measuredNodePowerW": measured_w, "nodeCappedPowerW": 600, "powerTrendWPerMin": 0}
    written = {"schedulableClass": state, "lastUpdated": format_time(at_s), "powerMeasurement": power}
    return {"metadata": {"name": name}, "spec": {"nodeName": name}, "status": written | status}


def pod(name: str = "asking", *, performance: bool = False, cpu: str = "10", on: str = "", at_s: float = NOW) -> Body:
    """One that waits, or one that was bound at that time."""
    annotations = {"joulie.io/workload-class": "performance"} if performance else {}
    body: Body = {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "work", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Pending"},
    }
    if on:
        body["spec"]["nodeName"] = on
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(at_s)}
        body["status"] = {"phase": "Running", "conditions": [bound]}
    return body


_KINDS = {"nodes": ("v1", "Node"), "twins": ("joulie.io/v1alpha1", "NodeTwin"), "pods": ("v1", "Pod")}


def as_objects(**parts: list[Body]) -> list[Body]:
    """nodes=, twins=, pods=: with their kinds, as in a file."""
    return [
        {"apiVersion": _KINDS[part][0], "kind": _KINDS[part][1], **body}
        for part, bodies in parts.items()
        for body in bodies
    ]
