"""Kubernetes Events on the node for each transition, so that `kubectl describe node` tells the story."""

from __future__ import annotations

import hashlib
from typing import Any

from joulie.control.transitions import Transition
from joulie.model.names import DRAINING, ECO
from joulie.model.rfc3339 import format_time

NAMESPACE = "default"  # where Kubernetes itself keeps the events of cluster-scoped objects
_REASONS = {DRAINING: "PowerDraining", ECO: "PowerEco"}
_LONGEST_NOTE = 1000  # the API server refuses more than 1,024
_LONGEST_PREFIX = 230  # of a name: with the digest it may have 253 characters


def event(node: str, transition: Transition, reason: str, now_s: float, reporter: str) -> dict[str, Any]:
    """The event of one transition; its name is derived from what happened, so telling it twice is one event."""
    note = f"{transition.from_state} → {transition.to_state}: {reason}"
    when = format_time(now_s)
    digest = hashlib.sha256(f"{node}|{note}|{when}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node[:_LONGEST_PREFIX].rstrip('-.')}.{digest}", "namespace": NAMESPACE},
        # kubelet's own node events carry the node's name as uid, and that is where kubectl looks for them.
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "type": "Normal",
        "reason": _REASONS.get(transition.to_state, "PowerPerformance"),
        "message": note[:_LONGEST_NOTE],
        "source": {"component": "joulie-operator"},
        "reportingComponent": "joulie.io/operator",
        "reportingInstance": reporter,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
