"""Budgets in a run: limits that hold, rules that share them, and the same caps as the operator would order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.control.budget.counting import Confirmation, Order, Seen
from joulie.control.budget.envelopes import Pair, envelope_of
from joulie.control.budget.memory import BudgetMemory, GroupLimit, Member
from joulie.control.budget.planning import plan
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import BudgetsCounted, Outcome
from joulie.lab.model.setup import (
    ClusterSetup,
    NodeGroup,
    PolicySetup,
    RunSetup,
    SharingSetup,
    TelemetrySetup,
    TraceSetup,
    WeatherSetup,
)
from joulie.lab.simulation.budgets.grouping import Grouping
from joulie.lab.simulation.budgets.shared import Shared
from joulie.lab.simulation.budgets.view import Ranges, View
from joulie.lab.simulation.cluster import lab_cluster
from joulie.lab.simulation.engine import SimulatedRun, simulate
from joulie.lab.simulation.steering import START_S
from joulie.lab.traces.generator import generate
from joulie.model.api.budget import BudgetWindow, GroupException, PowerBudgetSpec
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from tests.lab.pods import table

FULL_W = 720 * 1.135  # a node of two EPYC 9654 at full load
STILL = WeatherSetup(mean_c=20.0, swing_c=0.0, noise_c=0.0)
MIXED = ClusterSetup([NodeGroup(3), NodeGroup(2, gpu="H100 SXM", gpus=8)], nodes_per_rack=2, racks_per_zone=2)


def full_nodes(count: int, seconds: float = 600.0, every_s: float = 0.0) -> JobTable:
    pod = {"cores": 192.0, "cpu_units": 192.0 * seconds, "cpu_utilisation": 1.0}
    return table([pod | {"submit_s": 100.0 + every_s * number} for number in range(count)])


def run(jobs: JobTable, spec: PowerBudgetSpec, rule: str = "shared", nodes: int = 2, **more: object) -> Outcome:
    setup = {"cluster": ClusterSetup([NodeGroup(nodes)]), "scheduler": "least", "weather": STILL, **more}
    sharing = SharingSetup(rule=rule)  # type: ignore[arg-type]
    return simulate(RunSetup(budgets={"feed": spec}, sharing=sharing, **setup), jobs, 1)  # type: ignore[arg-type]


def counted(outcome: Outcome) -> BudgetsCounted:
    assert outcome.budgets is not None
    return outcome.budgets


def test_a_limit_that_is_only_reported_caps_nothing_and_excess_is_metered_to_the_second() -> None:
    free = simulate(RunSetup(cluster=ClusterSetup([NodeGroup(2)]), scheduler="least", weather=STILL), full_nodes(2), 1)
    watched = run(full_nodes(2, every_s=60.0), PowerBudgetSpec(1500.0, mode="report"))
    assert free.budgets is None
    assert counted(watched).above_limit_s == pytest.approx(540.0)
    assert counted(watched).worst_excess_w == pytest.approx(2 * FULL_W - 1500.0, abs=0.1)
    assert counted(watched).worst_excess_pct == pytest.approx(100 * (2 * FULL_W / 1500.0 - 1), abs=0.01)
    assert watched.end_s - watched.start_s == pytest.approx(free.end_s - free.start_s)


@pytest.mark.parametrize("rule", ["shared", "static"])
def test_caps_that_add_up_to_the_limit_are_never_exceeded_and_slow_work_down(rule: str) -> None:
    held = run(full_nodes(2, every_s=60.0), PowerBudgetSpec(1200.0, restart_reserve=0), rule)
    assert counted(held) == BudgetsCounted(0.0, 0.0, 0.0)
    assert held.counted.cap_violation_s == 0
    assert np.all(held.end_s - held.start_s > 600.0)


def test_shared_watts_go_where_the_work_is_and_static_ones_do_not() -> None:
    """A limit for two nodes of which one idles: 1,200 W are enough for it and one that works, half of them are not."""
    spec = PowerBudgetSpec(1300.0, restart_reserve=0)
    shared, static = (run(full_nodes(1, 3600.0), spec, rule) for rule in ("shared", "static"))
    assert shared.end_s[0] - shared.start_s[0] < 3600.0 * 1.01
    assert static.end_s[0] - static.start_s[0] > 3600.0 * 1.05


def test_a_reactive_controller_is_above_its_limit_until_it_has_measured_that() -> None:
    limit_w = 1500.0
    setup = RunSetup(
        cluster=ClusterSetup([NodeGroup(2)]),
        scheduler="least",
        weather=STILL,
        budgets={"feed": PowerBudgetSpec(limit_w)},
        sharing=SharingSetup(rule="reactive"),
    )
    reacted = simulate(setup, full_nodes(2, every_s=61.0), 1)
    assert 0 < counted(reacted).above_limit_s <= 3.0
    assert counted(reacted).worst_excess_w == pytest.approx(2 * FULL_W - limit_w, abs=0.1)
    power_w = reacted.series["it_w"]
    assert power_w[(reacted.series["time_s"] > 180) & (reacted.series["time_s"] < 600)] == pytest.approx(
        0.95 * limit_w, rel=0.01
    )
    alone = simulate(setup, full_nodes(1), 1)
    assert alone.end_s[0] - alone.start_s[0] == pytest.approx(600.0), "one node is below 90 %: no cap"


def test_old_readings_leave_a_reactive_controller_above_its_limit_for_longer() -> None:
    spec, jobs = PowerBudgetSpec(1500.0), full_nodes(2, every_s=61.0)
    late = run(jobs, spec, "reactive", telemetry=TelemetrySetup(lag_s=30.0))
    shared = run(jobs, spec, "shared", telemetry=TelemetrySetup(lag_s=30.0))
    assert 30.0 <= counted(late).above_limit_s <= 33.0
    assert counted(shared).above_limit_s == 0.0


def test_a_reactive_controller_cuts_what_is_least_important_first() -> None:
    jobs = full_nodes(2, every_s=61.0)
    jobs.performance[1] = True
    reacted = run(jobs, PowerBudgetSpec(1550.0), "reactive")
    assert reacted.end_s[1] - reacted.start_s[1] == pytest.approx(600.0)
    assert reacted.end_s[0] - reacted.start_s[0] > 601.0


@pytest.mark.parametrize("rule", ["shared", "static", "reactive"])
def test_a_window_lowers_the_limit_in_its_hours_alone(rule: str) -> None:
    """From 01:00 to 02:00: three hours of full load, of which one is held to less."""
    window = BudgetWindow(from_="01:00", to="02:00", watts=1200.0)
    spec = PowerBudgetSpec(2000.0, windows=[window], restart_reserve=0)
    held = run(full_nodes(2, 3 * 3600.0), spec, rule)
    time_s, power_w = held.series["time_s"], held.series["it_w"]
    inside, outside = (time_s > 3660) & (time_s <= 7200), (time_s > 300) & (time_s < 3500)
    assert power_w[inside].max() <= 1200.5
    assert power_w[outside] == pytest.approx(2 * FULL_W, rel=0.01)
    assert counted(held).above_limit_s == 0.0
    free = run(full_nodes(2, 3 * 3600.0), PowerBudgetSpec(2000.0, windows=[window], mode="report"))
    assert counted(free).above_limit_s == pytest.approx(3600.0)


def test_the_lower_of_policy_and_budget_counts() -> None:
    policy = PolicySetup("uniform", cpu_cap_pct=50.0)
    jobs = full_nodes(2)
    loose = run(jobs, PowerBudgetSpec(1e6), policy=policy)
    capped = simulate(
        RunSetup(cluster=ClusterSetup([NodeGroup(2)]), scheduler="least", weather=STILL, policy=policy), jobs, 1
    )
    assert loose.end_s == pytest.approx(capped.end_s)
    assert counted(loose).above_limit_s == 0.0


BUDGETS = {
    "rack": PowerBudgetSpec(12_000.0, group_by=RACK_LABEL, groups=[GroupException("rack-2", 9_000.0)]),
    "zone": PowerBudgetSpec(14_000.0, group_by=COOLING_ZONE_LABEL, reserve_watts=300.0),
    "all": PowerBudgetSpec(19_000.0, restart_reserve=0.0),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["none", "queue_aware_v1"])
def test_overlapping_limits_hold_whatever_the_work(policy: str, seed: int) -> None:
    setup = RunSetup(cluster=MIXED, scheduler="joulie", policy=PolicySetup(policy), budgets=BUDGETS)
    jobs = generate(TraceSetup(hours=2, load=0.9, duration_scale=0.2), seed, MIXED)
    outcome = simulate(setup, jobs, seed)
    assert np.isfinite(outcome.end_s).all()
    assert counted(outcome).above_limit_s == 0.0
    assert outcome.counted.cap_violation_s == 0.0


def test_groups_are_metered_exactly_whatever_joins_and_overlaps() -> None:
    """What groups without a limit count is what their nodes draw."""
    setup = RunSetup(cluster=MIXED, scheduler="least", budgets=BUDGETS)
    simulation = SimulatedRun(setup, generate(TraceSetup(hours=1, load=0.8, duration_scale=0.2), 1, MIXED), 1)
    simulation.run()
    grouping = Grouping(setup, simulation.cluster, START_S)
    wall = simulation.world.nodes["wall"]
    assert [group.name for group in grouping.groups] == ["all", "rack/rack-0", "rack/rack-1", "rack/rack-2", *ZONES]
    assert simulation.world.groups["wall"].tolist() == [int(wall[rows].sum()) for rows in grouping.rows]


ZONES = ["zone/zone-0", "zone/zone-1"]
WATTS = st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(WATTS, WATTS, WATTS, WATTS, st.sampled_from((0, 1, 2))), min_size=5, max_size=5),
    st.floats(0.55, 1.1),
)
def test_a_turn_orders_the_same_caps_as_the_operators_plan(
    drawn: list[tuple[float, float, float, float, int]], tightness: float
) -> None:
    setup = RunSetup(cluster=MIXED, budgets=BUDGETS)
    cluster = lab_cluster(MIXED)
    grouping = Grouping(setup, cluster, START_S)
    pairs = zip(cluster.nodes.values(), cluster.recognised, strict=True)
    envelopes = [envelope_of(node, machine) for node, machine in pairs]
    ranges = Ranges.of(envelopes, grouping.rest_follows())

    def within(one: int, other: int) -> np.ndarray:
        share = np.array([(row[one], row[other]) for row in drawn])
        return np.floor(ranges.floor + share * (ranges.top - ranges.floor))

    held, demand = within(0, 1), within(2, 3)
    weight = np.array([row[4] for row in drawn])
    limits = {
        group.name: GroupLimit(
            group.name,
            group.limit.limit_w * tightness,
            group.limit.limit_w * tightness,
            group.limit.reserve_w,
            restarts=group.limit.restarts,
        )
        for group in grouping.groups
    }
    limit_w = np.array([limits[group.name].limit_w for group in grouping.groups])
    groups = grouping.enforced(limit_w, ranges.rest_w)
    view = View(groups, *(np.zeros(0),) * 2, ranges, demand, ranges.top, weight, held, None, None)

    members, seen = [], {}
    for row, name in enumerate(cluster.names):
        caps = Pair(*held[row].tolist())
        told = Confirmation(name, 1, "boot", 1, 1, caps)
        seen[name] = Seen(told, 0.0)
        inside = tuple(sorted(group.name for group in grouping.groups if name in group.nodes))
        order = Order(name, 1, caps, caps, caps, inside)
        members.append(
            Member(
                name,
                name,
                "boot",
                envelopes[row],
                envelopes[row].per_watt(rest_follows=True),
                inside,
                envelopes[row].top,
                Pair(*demand[row].tolist()),
                int(weight[row]),
                order=order,
                confirmation=told,
            )
        )
    decided, _ = plan(members, limits, BudgetMemory(seen=seen), 100.0, may_raise=True)
    ordered = {name: tuple(held[row]) for row, name in enumerate(cluster.names)}
    ordered |= {write.node: tuple(write.order.caps) for write in decided.writes}
    ours = Shared(list(cluster.names)).caps(view)
    assert {name: tuple(ours[row]) for row, name in enumerate(cluster.names)} == ordered
