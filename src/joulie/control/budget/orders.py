"""Which caps may be written now so that no group can exceed its limit, however slowly they arrive.

A cut may always be written. A raise goes only into room that no node counts any more.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from joulie.control.budget.allocation import Groups
from joulie.control.budget.filling import MILLI, Flags, Membership, Numbers, fill

DEADBAND = 0.02  # of the maximum: smaller moves are not worth a write


class CapTable(Struct, frozen=True):
    """Caps of many nodes, one row a node, whole watts of each CPU package and each GPU board."""

    ordered: Numbers  # NaN: nothing was ordered yet; the top of nodes that hold to no order
    counted: Numbers
    top: Numbers
    per_watt: Numbers  # what one watt of a cap counts against a limit

    def charge(self, caps: Numbers) -> Numbers:
        """What caps count, by node, in whole milliwatts."""
        charges = self.charges(caps)
        return charges[:, 0] + charges[:, 1]

    def charges(self, caps: Numbers) -> Numbers:
        return np.multiply(caps, np.rint(self.per_watt * MILLI))


def settled(target: Numbers, caps: CapTable, free_w: Numbers, membership: Membership) -> Numbers:
    """The targets without moves too small to be worth a write, unless a group needs their watts."""
    near = np.abs(target - caps.ordered) <= np.maximum(DEADBAND * caps.top, 1.0)
    kept = np.where(near, caps.ordered, target)
    over = membership.sums(caps.charge(kept)) > np.floor(free_w * MILLI)
    return np.where(membership.any_of(over)[:, None], np.minimum(kept, target), kept)


def orders(
    target: Numbers, floor: Numbers, caps: CapTable, groups: Groups, unknown: Flags, *, may_raise: bool
) -> Numbers:
    """The caps to order now. Without `may_raise` nothing goes above what was ordered already.

    A node counts the most that it may hold, and may hold less. So where a group is over its room, an order below that
    count can still be a raise: there nothing rises above what was ordered, and nodes of which nothing is known go to
    their floors.
    """
    cut = np.fmin(target, np.where(np.isnan(caps.ordered), floor, caps.ordered))
    if not may_raise:
        return cut
    membership = groups.membership
    counted, room = caps.charge(caps.counted), np.floor(groups.room_w * MILLI)
    free = room - membership.largest(np.maximum(caps.charge(caps.top) - counted, 0.0), groups.restarts)
    raised = _filled(caps.counted, np.maximum(target, caps.counted), caps, membership, free)
    allowed = np.where(target <= caps.counted, target, np.minimum(target, raised))
    is_over = membership.any_of(membership.sums(counted) > room)
    lowered = np.where(unknown[:, None], np.fmin(floor, cut), cut)
    return np.where(is_over[:, None], lowered, allowed)


def over(caps: CapTable, groups: Groups) -> Flags:
    """Groups whose nodes may draw more than their room now, what is kept for restarts included."""
    counted = caps.charge(caps.counted)
    reserve = groups.membership.largest(np.maximum(caps.charge(caps.top) - counted, 0.0), groups.restarts)
    return np.greater(groups.membership.sums(counted) + reserve, np.floor(groups.room_w * MILLI))


def _filled(start: Numbers, goal: Numbers, caps: CapTable, membership: Membership, room: Numbers) -> Numbers:
    """How far caps may rise together, in whole watts."""
    begin, end = caps.charges(start), caps.charges(goal)
    reached, _ = fill(begin.ravel(), end.ravel(), _by_device(membership), room)
    per_watt = np.rint(caps.per_watt * MILLI)
    each = np.divide(reached.reshape(begin.shape), per_watt, out=np.zeros_like(begin), where=per_watt > 0)
    return np.maximum(np.floor(each), start)


def _by_device(membership: Membership) -> Membership:
    """The same groups with a node's CPUs and GPUs as members of their own: one may rise while the other falls."""
    nodes, groups = membership.nodes, membership.groups
    return Membership(
        np.concatenate((nodes * 2, nodes * 2 + 1)),
        np.concatenate((groups, groups)),
        membership.node_count * 2,
        membership.group_count,
    )
