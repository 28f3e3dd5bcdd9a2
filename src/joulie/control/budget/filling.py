"""Progressive filling: many nodes rise together until a group of theirs is full; those stop, the others go on.

All amounts are whole milliwatts in floats. Sums of those are exact below 2⁵³ (nine terawatts), so that neither the
order of nodes nor that of groups can change a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]

MILLI: Final = 1000.0
REACHED: Final = -1  # stopped by no group

_JUST_BELOW = 1.0 - 2.0**-40  # so that rounding never takes a group beyond its room


class Membership:
    """Which node is in which groups; a node may be in any number of them."""

    def __init__(self, nodes: Rows, groups: Rows, node_count: int, group_count: int) -> None:
        order = np.lexsort((nodes, groups))
        self.node_count, self.group_count = node_count, group_count
        self.nodes, self.groups = nodes[order], groups[order]  # by group
        self._first = np.searchsorted(self.groups, np.arange(group_count + 1))
        by_node = np.argsort(self.nodes, kind="stable")
        self._groups_by_node = self.groups[by_node]
        self._first_by_node = np.searchsorted(self.nodes[by_node], np.arange(node_count + 1))

    @classmethod
    def of(cls, members: Sequence[Sequence[int]], node_count: int) -> Membership:
        """From the rows of each group's nodes."""
        nodes = np.array([row for rows in members for row in rows], dtype=np.intp)
        groups = np.repeat(np.arange(len(members)), [len(rows) for rows in members])
        return cls(nodes, groups, node_count, len(members))

    def sums(self, values: Numbers) -> Numbers:
        """What each group's nodes add up to."""
        return np.bincount(self.groups, values[self.nodes], self.group_count).astype(np.float64, copy=False)

    def largest(self, values: Numbers, how_many: Rows) -> Numbers:
        """The sum of so many of the largest values in each group; values are not negative."""
        result = np.zeros(self.group_count)
        filled = np.flatnonzero((np.diff(self._first) > 0) & (how_many > 0))
        if filled.size:  # groups without nodes have no range of their own, so the others' ranges still touch
            result[filled] = np.maximum.reduceat(values[self.nodes], self._first[:-1][filled])
        for group in np.flatnonzero(how_many > 1).tolist():
            result[group] = np.sort(values[self.rows(group)])[-how_many[group] :].sum()
        return result

    def rows(self, group: int) -> Rows:
        return self.nodes[self._first[group] : self._first[group + 1]]

    def groups_of(self, row: int) -> Rows:
        return self._groups_by_node[self._first_by_node[row] : self._first_by_node[row + 1]]

    def pairs(self, rows: Rows) -> tuple[Rows, Rows]:
        """Every group of these nodes, and beside it the position within `rows`."""
        first = self._first_by_node[rows]
        counts = self._first_by_node[rows + 1] - first
        position = np.repeat(np.arange(len(rows)), counts)
        before = np.cumsum(counts) - counts
        return self._groups_by_node[np.arange(len(position)) + (first - before)[position]], position

    def any_of(self, flags: Flags) -> Flags:
        """For each node, whether one of its groups is flagged."""
        result = np.zeros(self.node_count, dtype=np.bool_)
        result[self.nodes[flags[self.groups]]] = True
        return result


def fill(start: Numbers, goal: Numbers, membership: Membership, room: Numbers) -> tuple[Numbers, Rows]:
    """Where each node gets on its way from start to goal, and the group that stopped it.

    All go the same share of their way at a time. What is not on its way counts with its start; a group that is over
    its room to begin with lets none of its nodes rise.
    """
    way = np.maximum(goal - start, 0.0)
    reached, stopped_by = start + way, np.full(len(start), REACHED, dtype=np.intp)
    rising = way > 0.0
    left, speed = room - membership.sums(start), membership.sums(way)
    full_at = _full_at(left, speed)
    while full_at.size and (level := max(float(full_at.min()), 0.0)) < 1.0:
        for group in np.flatnonzero(full_at <= level).tolist():
            rows = membership.rows(group)
            rows = rows[rising[rows]]
            rising[rows] = False
            stopped_by[rows] = group
            gained = np.floor(way[rows] * (level * _JUST_BELOW))
            reached[rows] = start[rows] + gained
            groups, position = membership.pairs(rows)
            left -= np.bincount(groups, gained[position], membership.group_count)
            speed -= np.bincount(groups, way[rows][position], membership.group_count)
        full_at = _full_at(left, speed)
    return reached, stopped_by


def _full_at(left: Numbers, speed: Numbers) -> Numbers:
    """The share of the way at which each group is full; infinity where no cap rises any more."""
    full_at = np.full(len(left), np.inf)
    np.divide(left, speed, out=full_at, where=speed > 0.0)
    return full_at
