"""The plan as stable JSON: numbers are not rounded, and unset values are null."""

from __future__ import annotations

from typing import Any

import msgspec

from joulie.control.plan import Assignment, Plan
from joulie.model.names import DRAINING, ECO, PERFORMANCE


def plan_document(plan: Plan) -> dict[str, Any]:
    """The whole plan, in the policy's order."""
    return {
        "policy": plan.policy,
        "summary": {
            "eligible": len(plan.assignments),
            "performance": plan.count(PERFORMANCE),
            "eco": plan.count(ECO),
            "draining": plan.count(DRAINING),
            "pods": msgspec.to_builtins(plan.demand),
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
        "cpu": {
            "capPct": caps.cpu_pct,
            "capWatts": caps.cpu_w(assignment.machine),
            "capWattsPerPackage": caps.cpu_w_each,
        },
        "gpu": gpu,
        "reason": assignment.reason,
    }
