"""A fixed share of the nodes at full power."""

from __future__ import annotations

from joulie.control.policies.interface import Choice, PolicyView
from joulie.control.policies.keeping import keep, round_half_up


class StaticPartition:
    """Deterministic, and stable while the set of nodes is."""

    name = "static_partition"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        share = view.settings.static_hp_frac
        return keep(view, round_half_up(len(view.nodes) * share), f"{share:.4g} of {len(view.nodes)}")
