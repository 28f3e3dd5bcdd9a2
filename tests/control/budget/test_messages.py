"""Orders and confirmations survive the way through a twin's JSON."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.budget.counting import Confirmation, Order
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.messages import confirmation_in, confirmation_to_write, order_in, order_to_write
from joulie.model.api import NodeTwin
from joulie.model.api.twin import NodeTwinSpec, NodeTwinStatus, TwinControlStatus
from joulie.model.kubernetes import ObjectMeta

watts = st.integers(0, 10_000).map(float)
pairs = st.builds(Pair, watts, watts)
numbers = st.integers(0, 2**40)


def through_json(spec: NodeTwinSpec | None = None, status: NodeTwinStatus | None = None) -> NodeTwin:
    twin = NodeTwin(ObjectMeta(name="n", uid="u-1"), spec, status)
    return msgspec.json.decode(msgspec.json.encode(twin), type=NodeTwin)


@given(numbers, pairs, pairs, st.none() | pairs, st.lists(st.text("abc/", min_size=1), max_size=3), st.booleans())
def test_an_order_is_read_as_it_was_written(
    number: int, caps: Pair, above: Pair, failsafe: Pair | None, groups: list[str], released: bool
) -> None:
    order = Order("u-1", number, caps, caps.at_least(above), failsafe, tuple(groups), released)
    told, safe = order_to_write(order, "because")
    assert order_in(through_json(NodeTwinSpec(budget=told, failsafe=safe))) == order


@given(st.text(max_size=10), numbers, st.text(max_size=10), numbers, numbers, st.none() | pairs)
def test_a_confirmation_is_read_as_it_was_written(
    uid: str, number: int, boot_id: str, session: int, sequence: int, held: Pair | None
) -> None:
    confirmation = Confirmation(uid, number, boot_id, session, sequence, held)
    control = TwinControlStatus(budget=confirmation_to_write(confirmation))
    assert confirmation_in(through_json(status=NodeTwinStatus(control_status=control))) == confirmation


def test_a_twin_that_says_nothing_of_budgets_has_neither() -> None:
    twin = through_json(NodeTwinSpec(profile="eco"), NodeTwinStatus(control_status=TwinControlStatus()))
    assert order_in(twin) is None
    assert confirmation_in(twin) is None


def test_at_most_is_never_read_below_the_caps() -> None:
    """A twin edited by hand must not make a node count less than it was ordered to hold."""
    told, _ = order_to_write(Order("u-1", 1, Pair(300.0, 500.0), Pair(100.0, 100.0)), "")
    order = order_in(through_json(NodeTwinSpec(budget=told)))
    assert order is not None
    assert order.at_most == Pair(300.0, 500.0)
