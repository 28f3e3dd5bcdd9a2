"""The plan as the stable JSON of SPEC section 11: numbers unrounded, null for what is not set."""

from __future__ import annotations

from typing import Any

from joulie.control.plan import Assignment, Plan
from joulie.model.names import DRAINING, ECO, PERFORMANCE


def plan_document(plan: Plan) -> dict[str, Any]:
    """In the policy's order."""
    return {
        "policy": plan.policy,
        "summary": {
            "eligible": len(plan.assignments),
            "performance": plan.count(PERFORMANCE),
            "eco": plan.count(ECO),
            "draining": plan.count(DRAINING),
        },
        "nodes": [assignment_document(assignment) for assignment in plan.assignments],
    }


def assignment_document(assignment: Assignment) -> dict[str, Any]:
    """One node of the plan."""
    caps = assignment.caps
    gpu = {"capPct": caps.gpu_pct, "capWattsPerGpu": caps.gpu_w_each} if assignment.machine.gpu_count else None
    return {
        "node": assignment.node,
        "profile": assignment.profile,
        "state": assignment.state,
        "draining": assignment.draining,
        "density": assignment.density,
        "family": assignment.machine.family,
        "cpu": {"capPct": caps.cpu_pct, "capWatts": caps.cpu_w},
        "gpu": gpu,
        "reason": assignment.reason,
    }
