"""Budgets on a real API server with real processes: limits hold while leaders die and agents are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.budget_hold.run import hold_on
from bench.budget_hold.scene import Size

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

SMALL = Size(nodes=12, racks=3, agents=2, patience_s=240)
SCENES = ("first_contact", "cut", "operator_killed", "rollout", "back")


@pytest.mark.slow
def test_limits_hold_at_every_sample(fresh_cluster: ControlPlane) -> None:
    seen = hold_on(fresh_cluster, SMALL, lambda _: None, SCENES)
    assert {scene.scene: scene.detail for scene in seen if not scene.held} == {}
    assert len(seen) >= len(SCENES)
