"""For debugging: the first two nodes take turns at being eco."""

from __future__ import annotations

import math

from joulie.control.policies.interface import Choice, PolicyView
from joulie.model.names import ECO, PERFORMANCE


class RuleSwap:
    """Forces a visible transition on every interval."""

    name = "rule_swap_v1"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        if not view.nodes:
            return {}
        phase = math.floor(view.now_s / view.settings.reconcile_interval_s)
        turn = view.nodes[phase % min(2, len(view.nodes))].name
        return {
            node.name: Choice(ECO, f"its turn in phase {phase}")
            if node.name == turn
            else Choice(PERFORMANCE, f"not its turn in phase {phase}")
            for node in view.nodes
        }
