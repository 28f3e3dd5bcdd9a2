"""What an agent does with orders: follow the newest, forget none, and never go up without one."""

from __future__ import annotations

from msgspec import Struct

from joulie.control.budget.counting import Order, Pair


class Kept(Struct, frozen=True):
    """The newest order that an agent has followed; it survives restarts of agent and node."""

    order: Order
    created_at: str = ""  # of the twin: one that was made anew begins to count anew


def followed(kept: Kept | None, told: Order | None, created_at: str = "") -> Kept | None:
    """What to hold on to after seeing this twin; None: no budget holds the node.

    A twin that is gone, or that says nothing of budgets, releases nothing.
    """
    if told is None or (kept is not None and not _is_newer(kept, told, created_at)):
        return kept
    return None if told.released else Kept(told, created_at)


def caps_to_hold(kept: Kept, *, in_contact: bool) -> Pair:
    """The order's caps; out of contact, or when the agent ends, no more than the failsafe."""
    order = kept.order
    if in_contact or order.failsafe is None:
        return order.caps
    return order.caps.at_most(order.failsafe)


def _is_newer(kept: Kept, told: Order, created_at: str) -> bool:
    if told.uid == kept.order.uid:
        return told.number > kept.order.number
    return created_at >= kept.created_at
