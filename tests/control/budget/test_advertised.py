"""What nodes advertise as `joulie.io/watts`."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.budget.advertised import HeldWatts, advertised, changes, offered_w
from joulie.control.budget.counting import Order
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.messages import order_to_write
from joulie.model.api import NodeTwin, NodeTwinSpec
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node, Pod
from joulie.settings import DecisionSettings, load
from tests.support.small_clusters import NOW, known_node, plan, pod, snapshot

WATTS = st.floats(0, 1e6)
ORDER = Order("u", 3, Pair(200.0), Pair(400.0), groups=("racks/r1",))
# Two packages of at most 400 W each, and 15 % of that for the rest.
TOP_W, REST_W = 800, 120


def found(*pods: Pod, twin: NodeTwin | None = None, node: Node | None = None) -> BudgetInput:
    seen = snapshot([node or known_node("a")], pods, twins=[twin] if twin else [])
    return BudgetInput(seen, plan(seen), load(DecisionSettings, {}), NOW)


def ordered(order: Order) -> NodeTwin:
    told, failsafe = order_to_write(order, "")
    return NodeTwin(ObjectMeta("a", uid="u"), NodeTwinSpec(node_name="a", budget=told, failsafe=failsafe))


@given(WATTS, WATTS, WATTS)
def test_a_node_never_offers_less_than_its_pods_hold_and_whole_watts(
    node_w: float, asked: float, others: float
) -> None:
    offered = offered_w(node_w, HeldWatts(asked, others))
    assert offered >= asked
    assert offered <= max(math.ceil(asked), node_w - others, 0)


class TestAdvertised:
    def test_is_all_that_a_node_can_draw_where_no_budget_holds_it(self) -> None:
        assert advertised(found()) == {"a": TOP_W + REST_W}

    def test_is_what_its_order_gives_with_what_no_cap_limits(self) -> None:
        assert advertised(found(twin=ordered(ORDER))) == {"a": 400 + REST_W}

    def test_follows_an_order_of_this_turn_before_the_twin_shows_it(self) -> None:
        cut = Order("u", 4, Pair(150.0), Pair(200.0))
        assert advertised(found(twin=ordered(ORDER)), {"a": cut}) == {"a": 300 + REST_W}

    def test_a_released_node_offers_everything_again(self) -> None:
        free = Order("u", 4, Pair(200.0), Pair(400.0), released=True)
        assert advertised(found(twin=ordered(free))) == {"a": TOP_W + REST_W}

    def test_pods_that_ask_for_no_watts_are_taken_off(self) -> None:
        quiet = pod("quiet", "a", cores=19.2)  # a tenth of the node: 0.7 × 0.1 × 800 W
        assert advertised(found(quiet)) == {"a": TOP_W + REST_W - 56}

    def test_pods_that_ask_are_not_and_hold_what_they_have_when_a_budget_falls(self) -> None:
        asks = Pod("default", "asks", "a", "standard", 19.2, watts=700)
        assert advertised(found(asks)) == {"a": TOP_W + REST_W}
        assert advertised(found(asks, twin=ordered(ORDER))) == {"a": 700}

    def test_finished_pods_and_pods_elsewhere_hold_nothing(self) -> None:
        done = Pod("default", "done", "a", "standard", 19.2, finished=True, watts=5000)
        elsewhere = Pod("default", "other", "b", "standard", 19.2, watts=5000)
        waiting = Pod("default", "waits", "", "standard", 19.2, watts=5000)
        assert advertised(found(done, elsewhere, waiting)) == {"a": TOP_W + REST_W}


def node(capacity: float | None, allocatable: float | None = -1) -> Node:
    return Node("a", {}, capacity_watts=capacity, allocatable_watts=capacity if allocatable == -1 else allocatable)


class TestChanges:
    @pytest.mark.parametrize(
        ("there", "wanted", "held_w", "written"),
        [
            (node(None), 500, 0, 500),
            (node(500), 500, 0, None),
            (node(500), 510, 0, None),
            (node(500), 490, 0, None),
            (node(500), 511, 0, 511),
            (node(500), 489, 0, 489),
            (node(500), 505, 505, 505),
            (node(0), 1, 0, 1),
            (node(500, 400), 500, 0, 500),
            (node(500, None), 500, 0, 500),
        ],
    )
    def test_are_written_when_they_are_worth_it(
        self, there: Node, wanted: int, held_w: float, written: int | None
    ) -> None:
        assert changes([there], {"a": wanted}, {"a": held_w}) == ({} if written is None else {"a": written})

    def test_what_is_no_longer_wanted_is_removed_once(self) -> None:
        assert changes([node(500)], {}, {}) == {"a": None}
        assert changes([node(None, 400)], {}, {}) == {"a": None}
        assert changes([node(None)], {}, {}) == {}
