"""Kubernetes Events about nodes and power budgets, as `kubectl describe` lists them."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

from joulie.model.names import API_VERSION
from joulie.model.rfc3339 import format_time

NAMESPACE = "default"  # where Kubernetes itself keeps the events of cluster-scoped objects
_MAX_MESSAGE_CHARS = 1000  # the API server refuses more than 1,024
_MAX_PREFIX_CHARS = 230  # of a name, which may have 253 characters with the digest


class EventDetails(NamedTuple):
    """What happened, and which process reports it."""

    component: str  # operator, agent
    reporter: str  # the instance
    reason: str  # CamelCase
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


def node_event(node: str, details: EventDetails, now_s: float) -> dict[str, Any]:
    """The Event of a node."""
    # kubelet's own node events carry the node's name as uid, and that is where kubectl looks for them.
    return _event({"kind": "Node", "name": node, "uid": node}, details, now_s)


def budget_event(budget: str, uid: str, details: EventDetails, now_s: float) -> dict[str, Any]:
    """The Event of a PowerBudget."""
    involved = {"apiVersion": API_VERSION, "kind": "PowerBudget", "name": budget, "uid": uid}
    return _event(involved, details, now_s)


def _event(involved: dict[str, str], details: EventDetails, now_s: float) -> dict[str, Any]:
    """The Event object; its name is derived from its content, so that reporting it twice creates one Event."""
    when, about = format_time(now_s), involved["name"]
    digest = hashlib.sha256(f"{about}|{details.reason}|{details.message}|{when}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about[:_MAX_PREFIX_CHARS].rstrip('-.')}.{digest}", "namespace": NAMESPACE},
        "involvedObject": involved,
        "type": details.type,
        "reason": details.reason,
        "message": details.message[:_MAX_MESSAGE_CHARS],
        "source": {"component": f"joulie-{details.component}"},
        "reportingComponent": f"joulie.io/{details.component}",
        "reportingInstance": details.reporter,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
