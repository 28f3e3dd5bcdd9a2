"""Kubernetes Events on a node, so that `kubectl describe node` tells the story."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

from joulie.model.rfc3339 import format_time

NAMESPACE = "default"  # where Kubernetes itself keeps the events of cluster-scoped objects
_LONGEST_MESSAGE = 1000  # the API server refuses more than 1,024
_LONGEST_PREFIX = 230  # of a name: with the digest it may have 253 characters


class Told(NamedTuple):
    """What happened, and who says so."""

    component: str  # operator, agent
    reporter: str  # which of them
    reason: str  # CamelCase
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


def node_event(node: str, told: Told, now_s: float) -> dict[str, Any]:
    """The event; its name is derived from what happened, so telling it twice is one event."""
    when = format_time(now_s)
    digest = hashlib.sha256(f"{node}|{told.reason}|{told.message}|{when}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node[:_LONGEST_PREFIX].rstrip('-.')}.{digest}", "namespace": NAMESPACE},
        # kubelet's own node events carry the node's name as uid, and that is where kubectl looks for them.
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "type": told.type,
        "reason": told.reason,
        "message": told.message[:_LONGEST_MESSAGE],
        "source": {"component": f"joulie-{told.component}"},
        "reportingComponent": f"joulie.io/{told.component}",
        "reportingInstance": told.reporter,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
