"""As many nodes at full power as performance-only pods ask for."""

from __future__ import annotations

from joulie.control.policies.interface import Choice, PolicyView
from joulie.control.policies.keeping import keep, round_half_up


class QueueAware:
    """Never falls when demand rises; bounded by its minimum and maximum, of which the maximum is stronger."""

    name = "queue_aware_v1"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        settings = view.settings
        base = round_half_up(len(view.nodes) * settings.queue_hp_base_frac)
        need = -(-view.performance_pods // settings.queue_perf_per_hp_node)
        count = max(base, need, settings.queue_hp_min)
        if settings.queue_hp_max > 0:
            count = min(count, settings.queue_hp_max)
        return keep(view, count, f"{view.performance_pods} performance-only pods need {need}, base {base}")
