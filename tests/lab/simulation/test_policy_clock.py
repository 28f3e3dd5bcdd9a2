"""The time of day that a policy sees is that of the run's weather."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from joulie.control.policies.interface import Choice, PolicyView
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PolicySetup, RunSetup, WeatherSetup
from joulie.lab.simulation.engine import simulate
from tests.lab.pods import table


@dataclass
class Watching:
    """Keeps everything at full power and notes when it was asked."""

    name: str = "watching"
    hours: list[float] = field(default_factory=list)

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        self.hours.append(view.now_s / 3600 % 24)
        return {node.name: Choice("performance", "always") for node in view.nodes}


@pytest.mark.parametrize("start_hour", [0.0, 6.0, 22.5])
def test_a_run_begins_at_its_start_hour(start_hour: float) -> None:
    policy = Watching()
    setup = RunSetup(
        cluster=ClusterSetup([NodeGroup(1)]),
        policy=PolicySetup("static_partition"),
        weather=WeatherSetup(start_hour=start_hour),
    )
    simulate(setup, table([{"cores": 1.0, "cpu_units": 7200.0, "cpu_utilisation": 1.0}]), 1, policy=policy)
    assert policy.hours[0] == pytest.approx(start_hour)
    assert policy.hours[60] == pytest.approx((start_hour + 1) % 24)
