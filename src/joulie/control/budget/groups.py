"""Which nodes a budget is for, and in which of its groups each of them counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct

from joulie.control.budget.limits.in_force import SignalReading, limit_in_force, lowest_limit_w
from joulie.control.budget.limits.meters import Meter
from joulie.control.budget.memory import GroupLimit
from joulie.model.api.budget import GroupException, LabelSelector, PowerBudget, PowerBudgetSpec
from joulie.model.selector import Requirement
from joulie.model.snapshot import Node


class BudgetGroup(Struct, frozen=True):
    """One group of one budget."""

    budget: str
    value: str  # empty without groupBy
    nodes: tuple[str, ...]
    limit: GroupLimit  # for caps: less than the limit in force where a meter showed too much
    is_enforced: bool
    why: str  # what sets the limit
    until_s: float | None
    meter: Meter | None = None  # None: it has none
    metered_w: float | None = None  # the limit in force of a group with a meter

    @property
    def limit_w(self) -> float:
        """The limit in force."""
        return self.limit.limit_w if self.metered_w is None else self.metered_w

    @property
    def name(self) -> str:
        return self.limit.name


class Readings(Struct, frozen=True):
    """What was read for budgets; a budget or group that is missing has no reading."""

    zones: Mapping[str, tzinfo]
    signals: Mapping[str, SignalReading]  # by budget
    meters: Mapping[str, Meter]  # by group


def budget_groups(
    budget: PowerBudget, nodes: Collection[Node], now_s: float, readings: Readings
) -> tuple[list[BudgetGroup], list[str]]:
    """The groups, by value, and what a person should mend.

    Every node that the selector takes counts, also one without the label of `groupBy`: it is in no group and is named.
    """
    spec = budget.spec
    chosen = sorted(node.name for node in nodes if matches(spec.node_selector, node.labels))
    labels = {node.name: node.labels for node in nodes}
    members: dict[str, list[str]] = {}
    without: list[str] = []
    for name in chosen:
        value = "" if spec.group_by is None else labels[name].get(spec.group_by)
        if value is None:
            without.append(name)
        else:
            members.setdefault(value, []).append(name)
    problems = [*_unclear(budget, members, readings), *_unlabelled(spec.group_by, without)]
    return [_group(budget, value, names, now_s, readings) for value, names in sorted(members.items())], problems


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is meant; no selector means every node."""
    if selector is None:
        return True
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(
        Requirement(each.key, each.operator, tuple(each.values or ())).matches(labels)
        for each in selector.match_expressions or ()
    )


def group_name(budget: str, value: str) -> str:
    return f"{budget}/{value}" if value else budget


def feed_share(spec: PowerBudgetSpec) -> float:
    """The part of a node's power that counts: on the worse day of two feeds."""
    return max(spec.share or 0.0, spec.failover_share or 0.0) or 1.0


def spec_w(spec: PowerBudgetSpec, value: str) -> float:
    """The limit of a group by its spec, without windows, signal and meter."""
    own = _exception(spec, value)
    return own.watts if own is not None and own.watts is not None else spec.watts


def _group(budget: PowerBudget, value: str, nodes: Sequence[str], now_s: float, readings: Readings) -> BudgetGroup:
    spec, name = budget.spec, group_name(budget.metadata.name, value)
    own, own_w = _exception(spec, value), spec_w(spec, value)
    mode = (own.mode if own is not None else None) or spec.mode or "enforce"
    signal = readings.signals.get(budget.metadata.name)
    limit = limit_in_force(spec, own_w, now_s, readings.zones, signal)
    meter = None if spec.meter is None else readings.meters.get(name, Meter())
    in_force = GroupLimit(
        name,
        limit.watts if meter is None else limit.watts * meter.share,
        lowest_limit_w(spec, own_w),
        reserve_w=spec.reserve_watts or 0.0,
        share=feed_share(spec),
        restarts=1 if spec.restart_reserve is None else int(spec.restart_reserve),
        rest_w_per_node=spec.rest_watts_per_node,
    )
    return BudgetGroup(
        budget.metadata.name,
        value,
        tuple(nodes),
        in_force,
        mode == "enforce",
        limit.why,
        limit.until_s,
        meter,
        None if meter is None else limit.watts,
    )


def _exception(spec: PowerBudgetSpec, value: str) -> GroupException | None:
    return next((each for each in spec.groups or () if each.value == value and spec.group_by is not None), None)


def _unclear(budget: PowerBudget, members: Mapping[str, Sequence[str]], readings: Readings) -> list[str]:
    """What the schema cannot refuse; each line names the field to change."""
    spec = budget.spec
    problems = [] if members else ["spec.nodeSelector takes no node"]
    for number, window in enumerate(spec.windows or ()):
        where = f"spec.windows[{number}]"
        if window.from_ == window.to:
            problems.append(f"{where}: from and to are the same, so it holds all day")
        if window.time_zone is not None and window.time_zone not in readings.zones:
            problems.append(f"{where}.timeZone: {window.time_zone} is not known, so the window holds at all times")
    if spec.signal is not None and (spec.signal.query is None) == (spec.signal.forecast is None):
        problems.append("spec.signal needs either query or forecast; its lowest limit holds")
    for number, each in enumerate((spec.node_selector and spec.node_selector.match_expressions) or ()):
        if (each.operator in ("In", "NotIn")) != bool(each.values):
            where = f"spec.nodeSelector.matchExpressions[{number}]"
            problems.append(f"{where}: {each.operator} {'needs' if not each.values else 'takes no'} values")
    return problems + _unknown_groups(budget, members)


def _unknown_groups(budget: PowerBudget, members: Mapping[str, Sequence[str]]) -> list[str]:
    label, values = budget.spec.group_by, [each.value for each in budget.spec.groups or ()]
    if label is None:
        return ["spec.groups means nothing without spec.groupBy"] if values else []
    twice = sorted({value for value in values if values.count(value) > 1})
    return [
        *(f"spec.groups names {value} more than once; the first counts" for value in twice),
        *(f"spec.groups: no node has {label}={value}" for value in sorted({*values} - {*members})),
    ]


def _unlabelled(label: str | None, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return [f"nodes without the label {label} count nowhere: {shown}"]
