"""The groups of a run's budgets: which nodes are in them, and what limits them when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from msgspec import Struct

from joulie.control.budget.allocation import Groups
from joulie.control.budget.filling import Flags, Membership, Numbers
from joulie.control.budget.groups import BudgetGroup, Readings, budget_groups
from joulie.control.budget.limits.in_force import EARLY_S
from joulie.lab.kernels.records import GROUP
from joulie.lab.kernels.world import Codes, Records
from joulie.lab.model.setup import RunSetup
from joulie.lab.simulation.cluster import LabCluster
from joulie.model.api.budget import PowerBudget
from joulie.model.kubernetes import ObjectMeta


class GroupTables(NamedTuple):
    """The arrays of `World` that meter groups."""

    groups: Records
    groups_from: Codes
    groups_of: Codes


class CurrentLimits(Struct, frozen=True):
    """What limits each group from now until they change."""

    in_force_w: Numbers  # by what rules go: a window begins early and ends late for them
    stated_w: Numbers  # what must not be exceeded
    until_s: float


class Grouping:
    """Groups of all budgets in the order of their names; times are of the clock that windows go by."""

    def __init__(self, setup: RunSetup, cluster: LabCluster, now_s: float) -> None:
        self._budgets = [PowerBudget(ObjectMeta(name=name), spec) for name, spec in sorted(setup.budgets.items())]
        self._nodes = list(cluster.nodes.values())
        names = (window.time_zone for each in self._budgets for window in each.spec.windows or ())
        self._readings = Readings(known_zones(name for name in names if name is not None), {}, {})
        self.groups, self.problems = self._found(now_s)
        row_of = {name: row for row, name in enumerate(cluster.names)}
        self.rows = [[row_of[name] for name in group.nodes] for group in self.groups]
        self.is_enforced: Flags = np.array([group.is_enforced for group in self.groups], dtype=np.bool_)
        self._node_count = len(cluster)

    def limits(self, now_s: float) -> CurrentLimits:
        """What must not be exceeded lasts as long as both a minute earlier and a minute later fall into a window."""
        before, now, after = (self._found(now_s + by_s)[0] for by_s in (-EARLY_S, 0.0, EARLY_S))
        until = [
            group.until_s - by_s
            for found, by_s in ((before, -EARLY_S), (now, 0.0), (after, EARLY_S))
            for group in found
            if group.until_s is not None
        ]
        return CurrentLimits(
            _limits_w(now), np.maximum(_limits_w(before), _limits_w(after)), min(until, default=np.inf)
        )

    def tables(self) -> GroupTables:
        """For the meters; no group is limited before limits are set."""
        records = np.zeros(len(self.groups), GROUP)
        records["limit_w"] = np.inf
        records["share"] = [group.limit.share for group in self.groups]
        records["reserve_w"] = [group.limit.reserve_w for group in self.groups]
        membership = Membership.of(self.rows, self._node_count)
        counts = np.bincount(membership.nodes, minlength=self._node_count)
        first = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(membership.nodes, kind="stable")
        return GroupTables(records, first.astype(np.int32), membership.groups[order].astype(np.int32))

    def rest_follows(self) -> list[bool]:
        """By node: whether a group that holds it does not state what no cap limits."""
        stated, held = set[int](), set[int]()
        for group, rows in zip(self.groups, self.rows, strict=True):
            if group.is_enforced:
                (held if group.limit.rest_w_per_node is None else stated).update(rows)
        return [row in held or row not in stated for row in range(self._node_count)]

    def enforced(self, limit_w: Numbers, rest_w: Numbers) -> Groups:
        """The groups that caps are for, at these limits; `rest_w` is what no cap limits, by node."""
        chosen = np.flatnonzero(self.is_enforced)
        limits = [self.groups[group].limit for group in chosen]
        rows = [self.rows[group] for group in chosen]
        rest = [
            float(rest_w[inside].sum()) if limit.rest_w_per_node is None else limit.rest_w_per_node * len(inside)
            for limit, inside in zip(limits, rows, strict=True)
        ]
        share = np.array([limit.share for limit in limits])
        free_w = (limit_w[chosen] - np.array([limit.reserve_w for limit in limits])) / share
        return Groups(
            [limit.name for limit in limits],
            limit_w[chosen],
            free_w - np.array(rest),
            np.array([limit.restarts for limit in limits], dtype=np.intp),
            Membership.of(rows, self._node_count),
        )

    def _found(self, now_s: float) -> tuple[list[BudgetGroup], list[str]]:
        groups: list[BudgetGroup] = []
        problems: list[str] = []
        for budget in self._budgets:
            found, unclear = budget_groups(budget, self._nodes, now_s, self._readings)
            groups += found
            problems += [f"budgets.{budget.metadata.name}: {each.replace('spec.', '')}" for each in unclear]
        return groups, problems


def known_zones(names: Iterable[str]) -> dict[str, ZoneInfo]:
    """Those of these time zones that there are."""
    zones = {}
    for name in names:
        try:
            zones[name] = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return zones


def _limits_w(groups: list[BudgetGroup]) -> Numbers:
    return np.array([group.limit.limit_w for group in groups])
