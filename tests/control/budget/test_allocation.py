"""Sharing out watts: within every limit, exact, fair in its order, and independent of the order of its input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.budget.allocation import NO_WORK, OTHER_WORK, PERFORMANCE_WORK, Allocation, Groups, Loads, allocate
from joulie.control.budget.filling import Membership

Node = tuple[float, float, float, float, int]  # floor, demand, ceiling, maximum, weight


def shared(nodes: Sequence[Node], groups: Sequence[tuple[float, Sequence[int]]], restarts: int = 0) -> Allocation:
    floor, demand, ceiling, top, weight = (np.array(column) for column in zip(*nodes, strict=True))
    room = np.array([room_w for room_w, _ in groups])
    names = [f"group-{number}" for number in range(len(groups))]
    membership = Membership.of([rows for _, rows in groups], len(nodes))
    loads = Loads([f"node-{row}" for row in range(len(nodes))], floor, demand, ceiling, top, weight)
    return allocate(loads, Groups(names, room, room, np.full(len(names), restarts), membership))


def node(floor: float = 100, demand: float = 300, ceiling: float = 400, weight: int = OTHER_WORK) -> Node:
    return (floor, demand, ceiling, 400.0, weight)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[tuple[float, list[int]]], int]:
    watts = st.floats(0, 3000).map(lambda value: round(value, 2))
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, 12))):
        floor, demand, ceiling, top = sorted((draw(watts), draw(watts), draw(watts), draw(watts)))
        if draw(st.booleans()):  # demand may lie outside
            demand = draw(watts)
        nodes.append((floor, demand, ceiling, top, draw(st.sampled_from((PERFORMANCE_WORK, OTHER_WORK, NO_WORK)))))
    rows = st.lists(st.sampled_from(range(len(nodes))), unique=True)
    groups = [(draw(st.floats(-500, 20_000)), draw(rows)) for _ in range(draw(st.integers(1, 5)))]
    return nodes, groups, draw(st.integers(0, 3))


@given(clusters())
def test_every_group_that_can_hold_its_floors_holds_its_limit_to_the_last_milliwatt(
    cluster: tuple[list[Node], list[tuple[float, list[int]]], int],
) -> None:
    nodes, groups, restarts = cluster
    result = shared(nodes, groups, restarts)
    given_mw = np.rint(result.given_w * 1000)
    for number, (room_w, rows) in enumerate(groups):
        used = sum(int(given_mw[row]) for row in rows)
        floors = sum(int(np.floor(nodes[row][0] * 1000 + 1e-6)) for row in rows)
        assert used <= max(np.floor(room_w * 1000 + 1e-6), floors)
        assert (result.missing_w[number] > 0) == (floors > np.floor(room_w * 1000 + 1e-6))


@given(clusters())
def test_every_node_stays_between_floor_and_ceiling_and_has_a_reason(
    cluster: tuple[list[Node], list[tuple[float, list[int]]], int],
) -> None:
    nodes, groups, restarts = cluster
    result = shared(nodes, groups, restarts)
    for row, (floor, _, ceiling, _, _) in enumerate(nodes):
        assert floor - 0.001 <= result.given_w[row] <= max(floor, ceiling) + 1e-9
        assert " W" in result.reason(row)


@given(clusters(), st.randoms(use_true_random=False))
def test_no_result_depends_on_the_order_of_nodes(
    cluster: tuple[list[Node], list[tuple[float, list[int]]], int], chance: object
) -> None:
    nodes, groups, restarts = cluster
    order = list(range(len(nodes)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    place = {row: position for position, row in enumerate(order)}
    mixed = [(room_w, [place[row] for row in rows][::-1]) for room_w, rows in groups]
    there, here = shared([nodes[row] for row in order], mixed, restarts), shared(nodes, groups, restarts)
    assert [there.given_w[place[row]] for row in range(len(nodes))] == here.given_w.tolist()
    assert [there.stopped_by[place[row]] for row in range(len(nodes))] == here.stopped_by.tolist()


@given(clusters())
def test_a_node_short_of_its_ceiling_is_in_a_group_that_is_full(
    cluster: tuple[list[Node], list[tuple[float, list[int]]], int],
) -> None:
    nodes, groups, _ = cluster
    result = shared(nodes, groups)
    for row, (_, _, ceiling, _, _) in enumerate(nodes):
        if result.given_w[row] < ceiling - 0.001:
            room_w, rows = groups[result.stopped_by[row]]
            assert row in rows
            assert sum(result.given_w[other] for other in rows) > room_w - 0.002 * len(rows)


def test_performance_work_is_served_before_other_work_and_empty_nodes_last() -> None:
    nodes = [node(weight=PERFORMANCE_WORK), node(weight=OTHER_WORK), node(weight=NO_WORK)]
    assert shared(nodes, [(550, [0, 1, 2])]).given_w == pytest.approx([300, 150, 100], abs=0.01)


def test_what_demand_leaves_over_is_room_for_bursts() -> None:
    given_w = shared([node(demand=200, ceiling=300), node(demand=200, ceiling=400)], [(550, [0, 1])]).given_w
    assert given_w == pytest.approx([250, 300], abs=0.01)


def test_a_full_rack_stops_its_nodes_and_leaves_the_rest_to_others() -> None:
    nodes = [node(demand=400)] * 4
    result = shared(nodes, [(300, [0, 1]), (10_000, [0, 1, 2, 3])])
    assert result.given_w == pytest.approx([150, 150, 400, 400], abs=0.01)
    assert "group-0 is shared out" in result.reason(0)
    assert result.reason(2) == "400 W: all that its profile allows"


def test_a_group_that_cannot_hold_its_floors_says_how_much_is_missing() -> None:
    result = shared([node(floor=200), node(floor=200), node()], [(300, [0, 1]), (1000, [0, 1, 2])])
    assert result.missing_w.tolist() == [100, 0]
    assert result.given_w.tolist() == [200, 200, 400]
    assert result.reason(0) == "200 W, its floor: group-0 lacks 100 W for the floors of its nodes"


@given(clusters())
def test_the_reserve_covers_the_nodes_that_would_draw_most_without_caps(
    cluster: tuple[list[Node], list[tuple[float, list[int]]], int],
) -> None:
    nodes, groups, restarts = cluster
    result = shared(nodes, groups, restarts)
    for number, (room_w, rows) in enumerate(groups):
        most = sorted((nodes[row][3] - result.given_w[row] for row in rows), reverse=True)[:restarts]
        assert result.reserve_w[number] == pytest.approx(sum(max(0, each) for each in most), abs=0.1)
        lacking = sum(result.given_w[row] for row in rows) + result.reserve_w[number] - room_w
        assert result.missing_reserve_w[number] == pytest.approx(
            min(max(lacking, 0), result.reserve_w[number]), abs=0.1
        )
        if lacking > 0.1:  # then only what cannot go lower stands in its way
            assert all(result.given_w[row] <= nodes[row][0] + 0.001 for row in rows if nodes[row][0] < nodes[row][2])


def test_a_reserve_for_one_restart_leaves_room_for_the_largest_step_up() -> None:
    result = shared([node(demand=400)] * 10, [(2_400, list(range(10)))], restarts=1)
    used = result.given_w.sum()
    assert used + 400 - result.given_w.min() <= 2_400
    assert used > 2_100
