"""What a node may draw at most, as far as the operator can know it.

An order carries the largest cap that its node may hold until it confirms: an operator that reads the twin later, with
no memory of what was ordered before, still counts enough. Agents load this, so it does without arrays.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

SETTLE_S = 2.0  # devices follow a cap within this time

# Unknown: it may hold anything. Free: it holds to no order, says its agent.
Standing = Literal["confirmed", "waiting", "unknown", "free"]


class Pair(NamedTuple):
    """Watts of each CPU package and of each GPU board."""

    cpu_w_each: float
    gpu_w_each: float = 0.0

    def at_least(self, other: Pair) -> Pair:
        return Pair(max(self[0], other[0]), max(self[1], other[1]))

    def at_most(self, other: Pair) -> Pair:
        return Pair(min(self[0], other[0]), min(self[1], other[1]))


class Order(Struct, frozen=True):
    """The caps that a twin asks for, with what has to be known of earlier ones."""

    uid: str  # of the twin
    number: int  # counts the orders of this twin
    caps: Pair
    at_most: Pair  # the largest caps that the devices may hold until this order is confirmed
    failsafe: Pair | None = None  # not above this when nothing is heard of the operator
    groups: tuple[str, ...] = ()
    released: bool = False  # no budget holds this node any more


class Confirmation(Struct, frozen=True):
    """What an agent read back from its devices after it had followed an order, or that it holds to none."""

    uid: str
    number: int  # of the order; 0: there was none
    boot_id: str
    session: int  # counts the lives of the node's agents
    sequence: int  # counts what this agent said
    held: Pair | None  # None: the devices hold nothing in watts


class Seen(Struct, frozen=True):
    """The newest confirmation of a node, and since when its order is known to be followed."""

    confirmation: Confirmation
    since_s: float


class CountedCaps(NamedTuple):
    """The most that a node's devices may be capped to now."""

    caps: Pair
    standing: Standing
    reason: str


def newest(seen: Seen | None, told: Confirmation | None, now_s: float) -> Seen | None:
    """Reports may arrive in any order: an older one changes nothing."""
    if told is None:
        return seen
    # A twin that was made anew begins anew, and so do the counts of an agent that lost its disk.
    if seen is not None and told.uid == seen.confirmation.uid and _age(told) < _age(seen.confirmation):
        return seen
    if seen is not None and _followed(told) == _followed(seen.confirmation):
        return Seen(told, seen.since_s)
    return Seen(told, now_s)


def counted(uid: str, order: Order | None, seen: Seen | None, boot_id: str, top: Pair, now_s: float) -> CountedCaps:
    """A cap counts when it was read back; what was ordered since counts until the next confirmation."""
    if seen is None or seen.confirmation.uid != uid:
        return CountedCaps(top, "unknown", "its agent has said nothing of budgets")
    told = seen.confirmation
    if order is None or order.released:
        follows = told.number == (0 if order is None else order.number)
        return CountedCaps(top, "free" if follows and told.held is None else "unknown", "no budget held it until now")
    if told.held is None:
        return CountedCaps(top, "unknown", "its devices hold no cap in watts")
    if told.boot_id != boot_id:
        return CountedCaps(top, "unknown", "it has restarted since its cap was confirmed")
    if told.number == order.number and now_s - seen.since_s >= SETTLE_S:
        return CountedCaps(told.held.at_least(order.caps).at_most(top), "confirmed", "its cap is confirmed")
    return CountedCaps(told.held.at_least(order.at_most).at_most(top), "waiting", "its last order is not confirmed yet")


def _age(confirmation: Confirmation) -> tuple[int, int]:
    return confirmation.session, confirmation.sequence


def _followed(confirmation: Confirmation) -> tuple[str, int, str, bool]:
    return confirmation.uid, confirmation.number, confirmation.boot_id, confirmation.held is not None
