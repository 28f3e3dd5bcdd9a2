"""Power budgets as people see them: a tree of budgets, groups and nodes, as the operator last reported it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from joulie.control.budget.groups import group_name, matches
from joulie.model.api.budget import (
    FEASIBLE,
    WITHIN_LIMIT,
    BudgetGroupStatus,
    BudgetWindow,
    PowerBudget,
    PowerBudgetStatus,
)
from joulie.model.api.results import ENFORCED, Condition
from joulie.model.names import PAUSED_ANNOTATION
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Node

# unseen: the operator has not answered to the budget as it is now.
GroupState = Literal["within", "settling", "exceeded", "infeasible", "reported", "unseen"]
UNSEEN = "not seen by the operator yet"
_WEEK = 7
_NO_STATUS = PowerBudgetStatus()


class GroupView(Struct, frozen=True, rename="camel", gc=False):
    """One group of a budget. None: not reported."""

    name: str  # `budget/value`, as twins name it
    value: str  # empty without groupBy
    nodes: int
    limit_w: float  # in force
    asked_w: float  # what the spec asks for now, windows and signals aside
    allocated_w: float | None
    measured_w: float | None
    floor_w: float | None
    state: GroupState
    reason: str
    meter_lost: str = ""  # why its meter does not count; empty: it does, or there is none

    @property
    def room_w(self) -> float:
        """What is left to give out."""
        return self.limit_w - (self.allocated_w or 0.0)


class BudgetView(Struct, frozen=True, rename="camel", gc=False):
    """One PowerBudget; conditions are True, False, Unknown, or empty where nothing was said."""

    name: str
    watts: float  # of each group, by its spec
    mode: str
    group_by: str
    is_paused: bool
    until_s: float | None  # when a window or forecast next changes a limit
    windows: tuple[str, ...]
    feasible: str
    enforced: str
    within_limit: str
    is_seen: bool  # the operator has answered to the budget as it is now
    unclear: tuple[str, ...]  # what keeps it from being feasible, as its condition says
    unlabelled: tuple[str, ...]  # nodes that it takes and that are in none of its groups
    groups: tuple[GroupView, ...]


def budget_views(
    budgets: Iterable[PowerBudget], nodes: Mapping[str, Node], managed: Collection[str]
) -> tuple[BudgetView, ...]:
    """All budgets by name; `managed` are the nodes in scope."""
    return tuple(
        _budget(one, taken_by(one, nodes, managed)) for one in sorted(budgets, key=lambda one: one.metadata.name)
    )


def taken_by(budget: PowerBudget, nodes: Mapping[str, Node], managed: Collection[str]) -> dict[str, Node]:
    """The nodes that its selector takes; without one, those in scope."""
    selector = budget.spec.node_selector
    if selector is None:
        return {name: nodes[name] for name in sorted(managed) if name in nodes}
    return {name: node for name, node in sorted(nodes.items()) if matches(selector, node.labels)}


def groups_of(budget: PowerBudget, taken: Mapping[str, Node]) -> dict[str, list[str]]:
    """The nodes of each group, by value; those without the label of groupBy are in none."""
    label, found = budget.spec.group_by, dict[str, list[str]]()
    for name, node in taken.items():
        value = "" if label is None else node.labels.get(label)
        if value is not None:
            found.setdefault(value, []).append(name)
    return dict(sorted(found.items()))


def asked_w(budget: PowerBudget, value: str) -> float:
    """The group's own limit in the spec, without windows, signal and meter."""
    spec = budget.spec
    own = next((each.watts for each in spec.groups or () if each.value == value and each.watts is not None), None)
    return spec.watts if own is None or spec.group_by is None else own


def is_paused(budget: PowerBudget) -> bool:
    return (budget.metadata.annotations or {}).get(PAUSED_ANNOTATION) == "true"


def window_words(window: BudgetWindow) -> str:
    """`Mon–Fri 17:00–21:00 Europe/Berlin`."""
    days = window.days or []
    which = "daily" if not days or len(set(days)) == _WEEK else ", ".join(days)
    return f"{which} {window.from_}–{window.to} {window.time_zone or 'UTC'}"


def condition(status: PowerBudgetStatus | None, type_: str) -> Condition | None:
    conditions = (status.conditions if status else None) or ()
    return next((one for one in conditions if one.type == type_), None)


def _budget(budget: PowerBudget, taken: Mapping[str, Node]) -> BudgetView:
    spec, status = budget.spec, budget.status or _NO_STATUS
    generation = budget.metadata.generation
    is_seen = budget.status is not None and (generation is None or status.observed_generation == generation)
    return BudgetView(
        name=budget.metadata.name,
        watts=spec.watts,
        mode=spec.mode or "enforce",
        group_by=spec.group_by or "",
        is_paused=is_paused(budget),
        until_s=readable_time_s(status.until),
        windows=tuple(f"{window_words(window)}: {window.watts:,.0f} W" for window in spec.windows or ()),
        feasible=_says(status, FEASIBLE),
        enforced=_says(status, ENFORCED),
        within_limit=_says(status, WITHIN_LIMIT),
        is_seen=is_seen,
        unclear=_unclear(status),
        unlabelled=_unlabelled(budget, taken),
        groups=tuple(_groups(budget, taken, is_seen)),
    )


def _groups(budget: PowerBudget, taken: Mapping[str, Node], is_seen: bool) -> Iterable[GroupView]:
    """As reported; a budget that was not answered to yet has the groups that its spec makes."""
    reported = {one.value: one for one in (budget.status.groups if budget.status else None) or ()}
    if is_seen:
        return [_group(budget, one, is_seen) for one in reported.values()]
    found = groups_of(budget, taken)
    return [
        _group(budget, reported[value], is_seen) if value in reported else _new(budget, value, len(members))
        for value, members in found.items()
    ]


def _group(budget: PowerBudget, told: BudgetGroupStatus, is_seen: bool) -> GroupView:
    wanted_w = asked_w(budget, told.value)
    changed = not is_seen and wanted_w != told.limit_watts
    said = f"{UNSEEN}: {wanted_w:,.0f} W are asked for now" if changed else told.reason or ""
    return GroupView(
        group_name(budget.metadata.name, told.value),
        told.value,
        int(told.nodes),
        told.limit_watts,
        wanted_w,
        told.allocated_watts,
        told.measured_watts,
        told.floor_watts,
        "unseen" if changed else told.state,
        said,
        (told.meter.lost or "") if told.meter is not None else "",
    )


def _new(budget: PowerBudget, value: str, nodes: int) -> GroupView:
    wanted_w, name = asked_w(budget, value), group_name(budget.metadata.name, value)
    return GroupView(name, value, nodes, wanted_w, wanted_w, None, None, None, "unseen", UNSEEN)


def _says(status: PowerBudgetStatus, type_: str) -> str:
    found = condition(status, type_)
    return "" if found is None else found.status


def _unclear(status: PowerBudgetStatus) -> tuple[str, ...]:
    found = condition(status, FEASIBLE)
    if found is None or found.status != "False":
        return ()
    return tuple((found.message or found.reason or "").split("; "))


def _unlabelled(budget: PowerBudget, taken: Mapping[str, Node]) -> tuple[str, ...]:
    label = budget.spec.group_by
    return () if label is None else tuple(name for name, node in taken.items() if label not in node.labels)
