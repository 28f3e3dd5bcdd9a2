"""One turn of the budget loop: what is known of nodes and limits in, orders with reasons out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from joulie.control.budget.allocation import Allocation, Groups, Loads, allocate
from joulie.control.budget.counting import CountedCaps, Order, counted
from joulie.control.budget.envelopes import Pair, split
from joulie.control.budget.filling import MILLI, Flags, Membership, Numbers, Rows
from joulie.control.budget.memory import BudgetMemory, GroupLimit, Member, recalled
from joulie.control.budget.orders import CapTable, orders, over, settled

LATE_S = 10.0  # an order that is not confirmed by then counts as one that will not be, for as long as that lasts
LATE_S_EACH = 0.02  # or so long for each order that waits: confirmations of a thousand nodes take their time

WAITS_SHARE = 0.03  # of the maximum: more than what rounding and the deadband leave

_NOTHING = Pair(math.nan, math.nan)


class OrderWrite(Struct, frozen=True):
    """An order to be written into a node's twin, with the reason in words."""

    node: str
    order: Order
    is_cut: bool  # these go first
    reason: str
    after: int = 0  # number of the order that the twin carried when this was decided; 0: none


class BudgetPlan(Struct, frozen=True):
    """What one turn decided. Arrays have one element a group, in the order of `allocation.groups`."""

    allocation: Allocation
    counted_w: Numbers  # what the groups' nodes may draw now, without what no cap limits
    floor_w: Numbers  # what they draw at their floors, once all caps are confirmed
    standing: Mapping[str, CountedCaps] = field(default_factory=dict)
    writes: tuple[OrderWrite, ...] = ()


class _Table(NamedTuple):
    """The members as arrays."""

    members: Sequence[Member]
    floor: Numbers
    demand: Numbers
    ceiling: Numbers
    caps: CapTable
    controllable: Flags
    weight: Rows


def plan(
    members: Sequence[Member],
    limits: Mapping[str, GroupLimit],
    memory: BudgetMemory,
    now_s: float,
    *,
    may_raise: bool,
) -> tuple[BudgetPlan, BudgetMemory]:
    """The orders that are safe to write now. Without `may_raise` (a new leader) nothing goes up."""
    memory = recalled(memory, members, limits, now_s)
    present = {member.name for member in members}
    all_members = [
        _as_counted(member, [limits[name] for name in memory.groups[member.name]])
        for member in sorted(memory.members.values(), key=lambda member: member.name)
    ]
    standing = {member.name: _standing(member, memory, now_s) for member in all_members}
    memory = replace(memory, waiting=_waiting(all_members, standing, memory, now_s))
    table = _table(all_members, present, standing)
    membership, rest_w = _grouping(all_members, limits, memory)
    groups = _groups(membership, rest_w, limits, lowest=False)

    allocation = allocate(_loads(table, table.floor), groups)
    target = settled(_split(table, allocation), table.caps, _free_w(allocation), membership)
    absent = np.array(
        [_is_absent(member, standing[member.name], memory, now_s) for member in all_members], dtype=np.bool_
    )
    if absent.any() and (exceeded := over(table.caps, groups)).any():
        covering = allocate(_loads(table, np.where(absent[:, None], table.caps.counted, table.floor)), groups)
        responsive = membership.any_of(exceeded) & ~absent
        target = np.where(responsive[:, None], np.minimum(target, _split(table, covering)), target)
        allocation = covering
    unknown = np.array(
        [standing[name].standing == "unknown" and name not in memory.waiting for name in standing], dtype=np.bool_
    )
    ordered = orders(target, table.floor, table.caps, groups, unknown, may_raise=may_raise)
    lowest = _groups(membership, rest_w, limits, lowest=True)
    failsafe = _failsafe(table, lowest, standing, may_raise=may_raise)
    writes = [
        write
        for row, member in enumerate(all_members)
        if table.controllable[row]
        for write in _write(member, standing[member.name], ordered[row], failsafe[row], memory.groups[member.name])
    ]
    released = [_release(member) for member in members if may_raise and _is_free(member, memory)]
    by_row = {name: row for row, name in enumerate(allocation.loads.names)}
    told = [
        replace(write, reason=_reason(allocation, row, all_members[row], write.order.caps))
        for write in writes
        for row in (by_row[write.node],)
    ]
    told.sort(key=lambda write: (not write.is_cut, write.node))
    counted_w = membership.sums(table.caps.charge(table.caps.counted)) / MILLI
    floor_w = membership.sums(table.caps.charge(table.floor)) / MILLI
    return BudgetPlan(allocation, counted_w, floor_w, standing, (*told, *released)), memory


def _as_counted(member: Member, limits: Sequence[GroupLimit]) -> Member:
    """A stated rest is all that no cap limits, so nothing follows the caps on top of it.

    In all groups or in none: a watt of a cap counts the same everywhere. A node with a group that states no rest counts
    too much in those that do, which is safe.
    """
    if not member.envelope.devices.gpu_w_each or any(limit.rest_w_per_node is None for limit in limits):
        return member
    return replace(member, per_watt=member.envelope.per_watt(rest_follows=False))


def _standing(member: Member, memory: BudgetMemory, now_s: float) -> CountedCaps:
    """What the node counts; a write that may still arrive counts as if it had."""
    seen, top = memory.seen.get(member.name), member.envelope.top
    found = counted(member.uid, member.order, seen, member.boot_id, top, now_s)
    if member.in_flight is None:
        return found
    caps = found.caps.at_least(member.in_flight).at_most(top)
    return CountedCaps(caps, "unknown" if found.standing in ("unknown", "free") else "waiting", found.reason)


def _waiting(
    members: Sequence[Member], standing: Mapping[str, CountedCaps], memory: BudgetMemory, now_s: float
) -> dict[str, tuple[int, float]]:
    """Since when each order waits for its confirmation."""
    result: dict[str, tuple[int, float]] = {}
    for member in members:
        order, found = member.order, standing[member.name]
        if order is not None and (found.standing == "waiting" or _is_first(member, order, found, memory)):
            known = memory.waiting.get(member.name)
            result[member.name] = known if known is not None and known[0] == order.number else (order.number, now_s)
    return result


def _is_first(member: Member, order: Order, found: CountedCaps, memory: BudgetMemory) -> bool:
    """Whether its agent has yet to follow an order of this twin for the first time.

    Else the first nodes to confirm a new budget would be cut to their floors for the others, and raised again: with a
    thousand nodes more than an API server can write.
    """
    seen = memory.seen.get(member.name)
    is_new = seen is None or seen.confirmation.uid != member.uid or seen.confirmation.number == 0
    return is_new and not order.released and found.standing in ("unknown", "free")


def _is_absent(member: Member, found: CountedCaps, memory: BudgetMemory, now_s: float) -> bool:
    """Whether others have to make room for what it counts, because it will not go down soon."""
    if member.name in memory.waiting:
        return now_s - memory.waiting[member.name][1] >= max(LATE_S, LATE_S_EACH * len(memory.waiting))
    return found.standing in ("unknown", "free")


def _table(members: Sequence[Member], present: set[str], standing: Mapping[str, CountedCaps]) -> _Table:
    controllable = np.array(
        [member.is_controlled and not member.has_left and member.name in present for member in members], dtype=np.bool_
    )
    top = _pairs([member.envelope.top for member in members])
    counts = _pairs([standing[member.name].caps for member in members])
    fixed = np.where([[member.is_controlled] for member in members], counts, top) if members else top
    steerable = controllable[:, None]
    ceiling = np.where(steerable, _pairs([member.ceiling for member in members]), fixed)
    floor = np.where(steerable, np.minimum(_pairs([member.envelope.floor for member in members]), ceiling), fixed)
    demand = np.clip(np.where(steerable, _pairs([member.demand for member in members]), fixed), floor, ceiling)
    ordered = _pairs([_ordered(member, standing[member.name]) for member in members])
    caps = CapTable(ordered, np.where(steerable, counts, fixed), top, _pairs([member.per_watt for member in members]))
    weight = np.array([member.weight for member in members], dtype=np.intp)
    return _Table(members, floor, demand, ceiling, caps, controllable, weight)


def _ordered(member: Member, found: CountedCaps) -> Pair:
    if found.standing == "free":
        return member.envelope.top
    return _NOTHING if member.order is None else member.order.caps


def _loads(table: _Table, floor: Numbers) -> Loads:
    charge = table.caps.charge
    names = [member.name for member in table.members]
    demand, ceiling = np.maximum(table.demand, floor), np.maximum(table.ceiling, floor)
    least, wanted, most = charge(floor) / MILLI, charge(demand) / MILLI, charge(ceiling) / MILLI
    return Loads(names, least, wanted, most, charge(table.caps.top) / MILLI, table.weight)


def _split(table: _Table, allocation: Allocation) -> Numbers:
    per_watt = np.rint(table.caps.per_watt * MILLI) / MILLI
    return split(allocation.given_w, table.floor, table.demand, table.ceiling, per_watt)


def _free_w(allocation: Allocation) -> Numbers:
    """What groups may give out: their room without the reserve, as far as floors leave one."""
    given = allocation.groups.membership.sums(np.rint(allocation.given_w * MILLI)) / MILLI
    return np.maximum(allocation.groups.room_w - allocation.reserve_w, given)


def _grouping(
    members: Sequence[Member], limits: Mapping[str, GroupLimit], memory: BudgetMemory
) -> tuple[Membership, Numbers]:
    """Which nodes are in which group, and what no cap limits there."""
    index = {name: row for row, name in enumerate(sorted(limits))}
    stated_w = [limits[name].rest_w_per_node for name in index]
    nodes, groups, rest_w = [], [], [0.0] * len(index)
    for row, member in enumerate(members):
        for name in memory.groups[member.name]:
            group = index[name]
            nodes.append(row)
            groups.append(group)
            stated = stated_w[group]
            rest_w[group] += member.envelope.rest_w if stated is None else stated
    pairs = np.array(nodes, dtype=np.intp), np.array(groups, dtype=np.intp)
    return Membership(*pairs, len(members), len(index)), np.array(rest_w)


def _groups(membership: Membership, rest_w: Numbers, limits: Mapping[str, GroupLimit], *, lowest: bool) -> Groups:
    names = sorted(limits)
    limit_w = np.array([limits[name].lowest_w if lowest else limits[name].limit_w for name in names])
    aside_w = np.array([limits[name].reserve_w for name in names])
    share = np.array([limits[name].share for name in names])
    restarts = np.array([limits[name].restarts for name in names], dtype=np.intp)
    return Groups(names, limit_w, (limit_w - aside_w) / share - rest_w, restarts, membership)


def _failsafe(table: _Table, groups: Groups, standing: Mapping[str, CountedCaps], *, may_raise: bool) -> Numbers:
    """Caps that hold every limit of any window with no operator to share them out: the same part of every node's range.

    They change in two steps as the caps do: one goes up when those of its groups that go down are known to have.
    """
    steerable, top = table.controllable[:, None], table.caps.top
    floor = np.where(steerable, _pairs([member.envelope.floor for member in table.members]), top)
    even = table._replace(floor=floor, demand=floor, ceiling=top)
    wanted = _split(even, allocate(_loads(even, floor), groups))
    known = _pairs(
        [
            _NOTHING if member.order is None or member.order.failsafe is None else member.order.failsafe
            for member in table.members
        ]
    )
    unsure = ("waiting", "unknown")
    moving = np.array([standing[member.name].standing in unsure for member in table.members], dtype=np.bool_)
    moving |= (wanted < known).any(axis=1)
    membership = groups.membership
    held_back = membership.any_of(membership.sums(moving.astype(np.float64)) > 0)[:, None] | (not may_raise)
    first = np.where(held_back, np.minimum(floor, wanted), wanted)
    return np.where(np.isnan(known), first, np.where(held_back, np.minimum(wanted, known), wanted))


def _write(
    member: Member, found: CountedCaps, caps: Numbers, failsafe: Numbers, groups: tuple[str, ...]
) -> list[OrderWrite]:
    ordered, safe, known = Pair(*caps.tolist()), Pair(*failsafe.tolist()), member.order
    if (
        known is not None
        and not known.released
        and (known.caps, known.failsafe, known.groups)
        == (
            ordered,
            safe,
            groups,
        )
    ):
        return []
    order = Order(member.uid, _next_number(member), ordered, found.caps.at_least(ordered), safe, groups)
    is_cut = all(new <= old for new, old in zip(ordered, found.caps, strict=True))
    return [OrderWrite(member.name, order, is_cut, "", 0 if known is None else known.number)]


def _release(member: Member) -> OrderWrite:
    order = Order(member.uid, _next_number(member), member.ceiling, member.envelope.top, released=True)
    return OrderWrite(
        member.name, order, False, "no budget holds this node any more", member.order.number if member.order else 0
    )


def _reason(allocation: Allocation, row: int, member: Member, caps: Pair) -> str:
    """Why so much and no more; an order can be below the node's share until others have confirmed their cuts."""
    now_w = sum(cap * per_watt for cap, per_watt in zip(caps, member.per_watt, strict=True))
    given_w = float(allocation.given_w[row])
    if now_w < given_w - WAITS_SHARE * float(allocation.loads.max_w[row]):
        return f"{now_w:,.0f} W until the caps of its groups are confirmed, then {given_w:,.0f} W"
    return allocation.reason(row)


def _next_number(member: Member) -> int:
    """Above every order that the agent followed: after a restored backup that can be more than the twin carries."""
    ordered = 0 if member.order is None else member.order.number
    told = member.confirmation
    return 1 + max(ordered, told.number if told is not None and told.uid == member.uid else 0)


def _is_free(member: Member, memory: BudgetMemory) -> bool:
    if member.order is None or member.order.released or member.has_left:
        return False
    return member.name not in memory.groups


def _pairs(pairs: Sequence[Pair]) -> Numbers:
    flat = itertools.chain.from_iterable(pairs)  # many times faster than an array of tuples
    return np.fromiter(flat, dtype=np.float64, count=2 * len(pairs)).reshape(len(pairs), 2)
