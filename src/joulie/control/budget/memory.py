"""What the budget loop is told of nodes and groups, and what it remembers from one turn to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from joulie.control.budget.allocation import OTHER_WORK
from joulie.control.budget.counting import Confirmation, Order, Seen, newest
from joulie.control.budget.envelopes import Envelope, Pair

LEAVING_S = 600.0  # a node that leaves a group still counts in it: what it is plugged into does not know


class GroupLimit(Struct, frozen=True):
    """One limit in force."""

    name: str
    limit_w: float
    lowest_w: float  # of any window
    reserve_w: float = 0.0  # for what is no node: switches, storage
    share: float = 1.0  # of a node's power that this feed carries at worst
    restarts: int = 1
    rest_w_per_node: float | None = None


class Member(Struct, frozen=True):
    """A node under a budget, or one that was."""

    name: str
    uid: str  # of its twin; empty: there is none yet
    boot_id: str
    envelope: Envelope
    per_watt: Pair  # what one watt of a cap counts
    groups: tuple[str, ...]
    ceiling: Pair
    demand: Pair
    weight: int = OTHER_WORK
    is_controlled: bool = True  # False: reserved, or out of scope; it counts what it can draw
    has_left: bool = False  # its Node is gone; it counts what it may still hold
    order: Order | None = None
    confirmation: Confirmation | None = None
    in_flight: Pair | None = None  # ordered in a write that was not answered, and may still arrive


class BudgetMemory(Struct, frozen=True):
    """Lost with the process; what is needed afterwards stands in the twins."""

    members: Mapping[str, Member] = field(default_factory=dict)  # as last seen, those that left included
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # in which each of them counts, sorted
    leaving: Mapping[tuple[str, str], float] = field(default_factory=dict)  # node and group: since when it is not there
    seen: Mapping[str, Seen] = field(default_factory=dict)
    waiting: Mapping[str, tuple[int, float]] = field(default_factory=dict)  # the order's number, and since when


def recalled(
    memory: BudgetMemory, members: Sequence[Member], limits: Mapping[str, GroupLimit], now_s: float
) -> BudgetMemory:
    """The memory with what is seen now; a node that left a group counts in it until its time is over."""
    all_members = dict(memory.members)
    lingering = {member.name for member in members if member.has_left}  # twins of nodes that are gone
    leaving = {
        (node, group): at_s
        for (node, group), at_s in memory.leaving.items()
        if group in limits and (now_s - at_s < LEAVING_S or node in lingering)
    }
    seen: dict[str, Seen] = {}
    present: set[str] = set()
    for member in members:
        known = all_members.get(member.name)
        before = known.groups if known is not None else member.order.groups if member.order is not None else ()
        if before != member.groups:
            for group in {*before} - {*member.groups}:
                if group in limits and not (member.has_left and (member.name, group) in leaving):
                    leaving[member.name, group] = now_s
        for group in member.groups if leaving else ():
            leaving.pop((member.name, group), None)
        all_members[member.name] = member
        present.add(member.name)
        if (newer := newest(memory.seen.get(member.name), member.confirmation, now_s)) is not None:
            seen[member.name] = newer
    for name in all_members.keys() - present:
        gone = all_members[name]
        leaving.update({(name, group): now_s for group in gone.groups if group in limits})
        all_members[name] = replace(gone, groups=())
        if name in memory.seen:
            seen[name] = memory.seen[name]
    groups = _counting(all_members, [key for key, at_s in leaving.items() if now_s - at_s < LEAVING_S], limits)
    return BudgetMemory({name: all_members[name] for name in groups}, groups, leaving, seen, memory.waiting)


def _counting(
    members: Mapping[str, Member], leaving: Iterable[tuple[str, str]], limits: Mapping[str, GroupLimit]
) -> dict[str, tuple[str, ...]]:
    """In which groups each node counts; those that count in none are left out."""
    left: dict[str, list[str]] = {}
    for node, group in leaving:
        left.setdefault(node, []).append(group)
    result: dict[str, tuple[str, ...]] = {}
    for name, member in members.items():
        inside = [group for group in member.groups if group in limits]
        if name in left:
            inside += left[name]
        if inside:
            result[name] = tuple(sorted(inside))
    return result
