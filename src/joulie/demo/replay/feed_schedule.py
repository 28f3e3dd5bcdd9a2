"""The power budgets of a replay as time passes. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from joulie.demo.scenario.day import DemoScene
from joulie.demo.scenario.feeds import BACK_S, CUT_S, budget_manifest, budget_specs
from joulie.model.api import PowerBudget


class FeedSchedule(Struct, frozen=True):
    """The budgets of a scene, with or without the cut."""

    scene: DemoScene
    with_cut: bool

    def is_cut(self, elapsed_s: float) -> bool:
        return self.with_cut and CUT_S <= self.scene.begins_s + elapsed_s < BACK_S

    def is_edge(self, elapsed_s: float) -> bool:
        """Whether the limit changes at this moment."""
        return self.with_cut and self.scene.begins_s + elapsed_s in (CUT_S, BACK_S)

    def budgets(self, elapsed_s: float) -> list[PowerBudget]:
        specs = budget_specs(is_cut=self.is_cut(elapsed_s))
        return [msgspec.convert(budget_manifest(name, spec), PowerBudget) for name, spec in specs.items()]
