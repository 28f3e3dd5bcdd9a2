"""The Event of a transition."""

from __future__ import annotations

from typing import Any

from joulie.cluster.node_events import Told, node_event
from joulie.control.transitions import Transition
from joulie.model.names import DRAINING, ECO

_REASONS = {DRAINING: "PowerDraining", ECO: "PowerEco"}


def event(node: str, transition: Transition, reason: str, now_s: float, reporter: str) -> dict[str, Any]:
    """What the node was, what it becomes, and why."""
    note = f"{transition.from_state} → {transition.to_state}: {reason}"
    what = _REASONS.get(transition.to_state, "PowerPerformance")
    return node_event(node, Told("operator", reporter, what, note), now_s)
