"""Where budgets settle: the limits hold, nothing is left to order, and who cannot confirm counts what it can draw."""

from __future__ import annotations

import math

import msgspec
import pytest
from msgspec.structs import replace

from joulie.catalogue.lookup import Catalogue
from joulie.control.budget.groups import Readings
from joulie.control.budget.members import BudgetInput
from joulie.control.cycle import decide
from joulie.control.policies.static_partition import StaticPartition
from joulie.model.api import NodeTwin, PowerBudget
from joulie.model.snapshot import Node, Snapshot
from joulie.overview.budget_settling import Settled, settle
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings, load

NOW_S = 1_760_000_000.0
SETTINGS = load(DecisionSettings, {"NODE_SELECTOR": ""})


def snapshot(count: int) -> Snapshot:
    labels = {"joulie.io/hw.cpu-model": "EPYC-9654", "joulie.io/hw.cpu-sockets": "2"}
    return Snapshot({f"n{number}": Node(f"n{number}", labels, capacity_cores=192.0) for number in range(count)})


def budget(watts: float) -> PowerBudget:
    return msgspec.convert({"metadata": {"name": "feed"}, "spec": {"watts": watts}}, PowerBudget)


def settled(cluster: Snapshot, watts: float) -> Settled:
    cooling = LinearCoolingModel(SETTINGS.twin)
    plan = decide(cluster, SETTINGS, NOW_S, policy=StaticPartition(), cooling=cooling, catalogue=Catalogue())
    return settle(BudgetInput(cluster, plan, SETTINGS, NOW_S), [budget(watts)], Readings({}, {}, {}))


@pytest.mark.parametrize("watts", [3000.0, 4000.0, 6000.0, 60000.0])
def test_nothing_is_left_to_order_and_the_limit_holds(watts: float) -> None:
    turn, after = settled(snapshot(6), watts)
    assert turn.plan.writes == ()
    (status,) = turn.reports[0].statuses
    assert status.state == "within"
    assert status.floor_watts <= status.allocated_watts <= watts
    ordered = [twin.spec.budget.caps.cpu_watts_per_package for twin in after.twins.values()]  # type: ignore[union-attr]
    assert len(ordered) == 6
    assert all(cap is not None and math.isfinite(cap) for cap in ordered)


def test_settling_twice_changes_nothing() -> None:
    _, once = settled(snapshot(6), 4000.0)
    _, twice = settled(once, 4000.0)
    caps = [
        {name: twin.spec.budget.caps for name, twin in one.twins.items() if twin.spec and twin.spec.budget}
        for one in (once, twice)
    ]
    assert caps[0] == caps[1]


def test_a_node_that_can_confirm_no_watts_counts_what_it_can_draw() -> None:
    _, before = settled(snapshot(6), 5000.0)
    twin = before.twins["n0"]
    assert twin.status is not None
    control = twin.status.control_status
    assert control is not None
    assert control.budget is not None
    silent = replace(control, budget=replace(control.budget, held=None))
    deaf: NodeTwin = replace(twin, status=replace(twin.status, control_status=silent))
    turn, _ = settled(replace(before, twins={**before.twins, "n0": deaf}), 5000.0)
    assert turn.plan.standing["n0"].standing == "unknown"
    assert turn.plan.standing["n0"].caps == turn.members[0].member.envelope.top
    assert turn.reports[0].statuses[0].allocated_watts <= 5000.0
