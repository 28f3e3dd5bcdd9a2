"""`allocate`: how many watts of the groups' limits each node gets, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from joulie.control.budget.filling import MILLI, REACHED, Membership, Numbers, Rows, fill

# Weights, the most important first.
PERFORMANCE_WORK, OTHER_WORK, NO_WORK = 0, 1, 2
WEIGHT_WORDS: Final = ("its performance-only work asks for", "its work asks for", "it would take for bursts")

ROUNDS = 2  # what rises needs less restart reserve, which lets it rise a little further


class Groups(Struct, frozen=True):
    """The groups of all budgets that are enforced, and what they leave for caps. One element a group."""

    names: Sequence[str]  # `budget/value`, sorted
    limit_w: Numbers
    room_w: Numbers  # for devices: the limit without what no cap limits
    restarts: Rows  # how many nodes may lose their caps at once without exceeding the limit
    membership: Membership


class Loads(Struct, frozen=True):
    """The nodes of these groups. One element a node; watts as they count against a limit."""

    names: Sequence[str]
    floor_w: Numbers
    demand_w: Numbers
    ceiling_w: Numbers  # what policy, pin or guard would give
    max_w: Numbers  # what the node draws without a cap
    weight: Rows


class Allocation(Struct, frozen=True):
    """What each node may draw, what each group lacks, and which group limits which node."""

    loads: Loads
    groups: Groups
    given_w: Numbers
    stopped_by: Rows  # the group that gave no more; -1: it has all that it may have
    missing_w: Numbers  # of each group: what its floors need beyond its room
    reserve_w: Numbers  # of each group: kept for restarts
    missing_reserve_w: Numbers

    def reason(self, row: int) -> str:
        """Why the node has so much and no more."""
        loads, group = self.loads, int(self.stopped_by[row])
        given = f"{self.given_w[row]:,.0f} W"
        if group == REACHED:
            return f"{given}: all that its profile allows"
        name, limit = self.groups.names[group], f"{self.groups.limit_w[group]:,.0f} W"
        if self.missing_w[group] > 0:
            return f"{given}, its floor: {name} lacks {self.missing_w[group]:,.0f} W for the floors of its nodes"
        work, wants = WEIGHT_WORDS[loads.weight[row]], f"{loads.demand_w[row]:,.0f} W"
        less = "covers" if self.given_w[row] >= loads.demand_w[row] else "is less than"
        return f"{given}: {name} is shared out ({limit}); that {less} the {wants} that {work}"


def allocate(loads: Loads, groups: Groups) -> Allocation:
    """Progressive filling: floors for all, then demand by weight, then room for bursts.

    Every group keeps room for the nodes that would draw most if they lost their caps. That reserve gives way to floors:
    nodes cannot be held below them.
    """
    membership = groups.membership
    floor, ceiling = _down(loads.floor_w), _down(loads.ceiling_w)
    demand = np.clip(_down(loads.demand_w), floor, np.maximum(floor, ceiling))
    room, highest = _down(groups.room_w), np.ceil(loads.max_w * MILLI)
    floors = membership.sums(floor)
    given, stopped_by = floor, np.full(len(floor), REACHED, dtype=np.intp)
    reserve = np.zeros(len(room))
    for _ in range(ROUNDS):
        reserve = membership.largest(np.maximum(highest - given, 0.0), groups.restarts)
        free = np.maximum(room - reserve, np.minimum(room, floors))
        given, stopped_by = _shared_out(given, demand, ceiling, loads.weight, membership, free)
    reserve = membership.largest(np.maximum(highest - given, 0.0), groups.restarts)
    used = membership.sums(given)
    return Allocation(
        loads,
        groups,
        given_w=given / MILLI,
        stopped_by=stopped_by,
        missing_w=np.maximum(floors - room, 0.0) / MILLI,
        reserve_w=reserve / MILLI,
        missing_reserve_w=np.clip(used + reserve - room, 0.0, reserve) / MILLI,
    )


def _shared_out(
    given: Numbers, demand: Numbers, ceiling: Numbers, weight: Rows, membership: Membership, room: Numbers
) -> tuple[Numbers, Rows]:
    stopped_by = np.full(len(given), REACHED, dtype=np.intp)
    for important in range(len(WEIGHT_WORDS)):
        given, stopping = fill(given, np.where(weight == important, demand, given), membership, room)
        stopped_by = np.where(stopping == REACHED, stopped_by, stopping)
    given, stopping = fill(given, np.maximum(ceiling, given), membership, room)
    return given, np.where(stopping == REACHED, stopped_by, stopping)


def _down(watts: Numbers) -> Numbers:
    return np.floor(watts * MILLI + 1e-6)  # a decimal that its float misses by the last digit still counts in full
