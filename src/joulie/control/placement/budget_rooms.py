"""What power budgets leave for new pods, kept up to date object by object as the board is.

Room is what a group's nodes may draw and do not: the smaller of its limit and what its caps add up to, less what is
measured, less the pods that were bound since or are about to be. Not the limit less what is allocated: allocation gives
all that is left over as room for bursts, so that would always be nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from joulie.control.budget.groups import feed_share, group_name
from joulie.control.scoring import GroupRooms, ScoreColumns
from joulie.model.api import NodeTwin, PowerBudget

REPORTED = "reported"  # the state of a group that is not enforced
_NO_PLACES = np.zeros(0, dtype=np.intp)


def rooms_in(budget: PowerBudget) -> dict[str, float]:
    """Watts of nodes that each group may still draw, where it is enforced and all of its nodes are measured."""
    share, groups = feed_share(budget.spec), (budget.status.groups if budget.status else None) or ()
    return {
        group_name(budget.metadata.name, group.value): (
            min(group.limit_watts, group.allocated_watts) - group.measured_watts
        )
        / share
        for group in groups
        if group.state != REPORTED and group.measured_watts is not None
    }


def groups_in(twin: NodeTwin | None) -> tuple[str, ...]:
    """The groups that hold the node, as its order names them."""
    order = twin.spec.budget if twin is not None and twin.spec is not None else None
    if order is None or order.released:
        return ()
    return tuple(map(sys.intern, order.groups or ()))


class BudgetRooms:
    """The groups of each node and the room of each group. Where there are none, nothing is computed."""

    def __init__(self) -> None:
        self._groups_of: dict[str, tuple[str, ...]] = {}  # by node
        self._room_w: dict[str, dict[str, float]] = {}  # by budget and group
        self._names: list[str] = []
        self._pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None  # None: something has changed since
        self._index_version = -1

    def put_groups(self, node: str, groups: tuple[str, ...]) -> bool:
        """Whether this changes anything; no groups: the node is gone, or no budget holds it."""
        if self._groups_of.get(node, ()) == groups:
            return False
        if groups:
            self._groups_of[node] = groups
        else:
            del self._groups_of[node]
        self._pairs = None
        return True

    def put_budget(self, name: str, budget: PowerBudget | None) -> bool:
        """Whether this changes anything; None: the budget is gone."""
        rooms = {} if budget is None else rooms_in(budget)
        before = self._room_w.get(name, {})
        if before == rooms:
            return False
        if rooms:
            self._room_w[name] = rooms
        else:
            del self._room_w[name]
        if before.keys() != rooms.keys():
            self._pairs = None
        return True

    def left(self, index: Mapping[str, int], index_version: int, columns: ScoreColumns) -> GroupRooms | None:
        """The rooms less what pods add that are not measured yet; None where no group is known."""
        if not self._room_w:
            return None
        if self._pairs is None or self._index_version != index_version:
            self._names = sorted(name for rooms in self._room_w.values() for name in rooms)
            self._pairs = _pairs(self._groups_of, index, self._names)
            self._index_version = index_version
        rows, groups = self._pairs
        added_w = columns.recent_w + columns.expected_w
        free_w = {name: watts for rooms in self._room_w.values() for name, watts in rooms.items()}
        group_w = np.array([free_w[name] for name in self._names])
        group_w -= np.bincount(groups, weights=added_w[rows], minlength=len(group_w))
        node_w = np.full(len(added_w), np.inf)
        np.minimum.at(node_w, rows, group_w[groups])
        return GroupRooms(self._names, group_w, rows, groups, node_w)


def _pairs(
    groups_of: Mapping[str, Iterable[str]], index: Mapping[str, int], names: Sequence[str]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and group of each membership, by row."""
    place = {name: at for at, name in enumerate(names)}
    pairs = sorted(
        (index[node], place[group])
        for node, groups in groups_of.items()
        if node in index
        for group in groups
        if group in place
    )
    if not pairs:
        return _NO_PLACES, _NO_PLACES
    rows, groups = np.array(pairs, dtype=np.intp).T
    return np.ascontiguousarray(rows), np.ascontiguousarray(groups)
