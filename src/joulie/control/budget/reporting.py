"""What is said of a budget: its groups in watts, and three conditions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from joulie.control.budget.groups import BudgetGroup
from joulie.control.budget.limits.meters import meter_status
from joulie.control.budget.messages import MAX_REASON_CHARS
from joulie.control.budget.planning import BudgetPlan
from joulie.control.conditions import Statement
from joulie.model.api.budget import FEASIBLE, WITHIN_LIMIT, BudgetGroupStatus, GroupState, PowerBudget
from joulie.model.api.results import ENFORCED
from joulie.model.names import MAX_WATTS_LABEL

MAX_NAMED = 3
# Why a budget is not feasible.
FLOORS_ABOVE_LIMIT, NOT_CONFIRMED, MAXIMUM_UNKNOWN = "FloorsAboveLimit", "NotConfirmed", "MaximumUnknown"


class NodeWatts(NamedTuple):
    """What a node's devices draw, and what it draws besides, where a budget does not state that."""

    devices_w: float
    rest_w: float = 0.0


def group_statuses(
    groups: Sequence[BudgetGroup],
    plan: BudgetPlan,
    allowed_w: Mapping[str, NodeWatts],
    measured_w: Mapping[str, NodeWatts],
) -> list[BudgetGroupStatus]:
    """Each group as its limit sees it. Those that are only reported are not in the plan: their nodes count what their
    caps allow (`allowed_w`, by node)."""
    rows = {name: row for row, name in enumerate(plan.allocation.groups.names)}
    return [_status(group, plan, rows.get(group.name), allowed_w, measured_w) for group in groups]


def statements(
    budget: PowerBudget,
    groups: Sequence[BudgetGroup],
    statuses: Sequence[BudgetGroupStatus],
    problems: Sequence[str],
    uncertain: Sequence[str] = (),
) -> list[Statement]:
    """Feasible, Enforced and WithinLimit; `uncertain` are nodes whose maximum is not known."""
    generation = budget.metadata.generation
    enforced = any(group.is_enforced for group in groups)
    return [
        _feasible(statuses, problems, uncertain, generation),
        _enforced(statuses, generation, is_enforced=enforced),
        _within(statuses, generation),
    ]


def _feasible(
    statuses: Sequence[BudgetGroupStatus], problems: Sequence[str], uncertain: Sequence[str], generation: int | None
) -> Statement:
    if lacking := [status for status in statuses if status.state == "infeasible"]:
        floors = any(status.floor_watts > status.limit_watts for status in lacking)
        return Statement(
            FEASIBLE, "False", FLOORS_ABOVE_LIMIT if floors else NOT_CONFIRMED, _reasons(lacking), generation
        )
    if uncertain:
        said = f"label with {MAX_WATTS_LABEL} what these nodes draw at most: {', '.join(uncertain[:MAX_NAMED])}"
        return Statement(FEASIBLE, "False", MAXIMUM_UNKNOWN, said, generation)
    if problems:
        return Statement(FEASIBLE, "False", "Unclear", "; ".join(problems), generation)
    return Statement(FEASIBLE, "True", "Feasible", "every group can be held to its limit", generation)


def _enforced(statuses: Sequence[BudgetGroupStatus], generation: int | None, *, is_enforced: bool) -> Statement:
    if not is_enforced:
        return Statement(ENFORCED, "False", "ReportOnly", "its mode is report: nothing is capped", generation)
    if not_yet := [each for each in statuses if each.state in ("settling", "exceeded", "infeasible")]:
        return Statement(ENFORCED, "False", "Settling", _reasons(not_yet), generation)
    said = "the caps of every group are confirmed and add up to no more than its limit"
    return Statement(ENFORCED, "True", "Confirmed", said, generation)


def _status(
    group: BudgetGroup,
    plan: BudgetPlan,
    row: int | None,
    allowed_w: Mapping[str, NodeWatts],
    measured_w: Mapping[str, NodeWatts],
) -> BudgetGroupStatus:
    limit = group.limit
    is_measured = all(node in measured_w for node in group.nodes)
    drawn_w = round(_of_feed(group, measured_w), 1) if is_measured else None
    meter = group.meter
    if meter is not None and meter.shown_w is not None:
        drawn_w = round(max(meter.shown_w, drawn_w or 0.0), 1)
    told = None if meter is None else meter_status(meter)
    if row is None:
        allocated_w = _of_feed(group, allowed_w)
        count, said = float(len(group.nodes)), f"set by {group.why}; nothing is capped for it{_of_meter(group)}"
        return BudgetGroupStatus(
            group.value, count, group.limit_w, round(allocated_w, 1), 0.0, "reported", drawn_w, said, told
        )
    allocation = plan.allocation
    membership, room_w = allocation.groups.membership, float(allocation.groups.room_w[row])
    inside = membership.rows(row)
    # What the plan leaves of the room is left of the limit, too; it knows what no cap limits.
    allocated_w = limit.limit_w - (room_w - float(plan.counted_w[row])) * limit.share
    floor_w = limit.limit_w - (room_w - float(plan.floor_w[row])) * limit.share
    missing_w = float(allocation.missing_w[row]) * limit.share
    waiting = [allocation.loads.names[node] for node in inside if _is_open(plan, allocation.loads.names[node])]
    state: GroupState
    if missing_w > 0:
        state, reason = "infeasible", f"{missing_w:,.0f} W are missing for the floors of its nodes"
        if waiting and floor_w <= limit.limit_w:
            reason = f"{missing_w:,.0f} W are missing until caps are confirmed on {_some(waiting)}"
    elif allocated_w > group.limit_w + 0.5:
        over = f"its nodes may draw {allocated_w - group.limit_w:,.0f} W more than {group.limit_w:,.0f} W"
        state, reason = "exceeded", f"{over}; {_named(waiting)}" if waiting else over
    elif waiting:
        state, reason = "settling", _named(waiting)
    else:
        state, reason = "within", f"set by {group.why}"
    if state == "within" and (short_w := float(allocation.missing_reserve_w[row]) * limit.share) > 0.5:
        reason += f"; a restart is not covered by {short_w:,.0f} W"
    return BudgetGroupStatus(
        group.value,
        float(len(inside)),
        group.limit_w,
        round(max(allocated_w, 0.0), 1),
        round(max(floor_w, 0.0), 1),
        state,
        drawn_w,
        (reason + _of_meter(group))[:MAX_REASON_CHARS],
        told,
    )


def _of_feed(group: BudgetGroup, watts: Mapping[str, NodeWatts]) -> float:
    """What the feed carries when its nodes draw this."""
    stated_w = group.limit.rest_w_per_node
    drawn = [watts[node] for node in group.nodes if node in watts]
    nodes_w = sum(each.devices_w + (each.rest_w if stated_w is None else stated_w) for each in drawn)
    return group.limit.share * nodes_w + group.limit.reserve_w


def _of_meter(group: BudgetGroup) -> str:
    """What its meter takes, and that it is lost."""
    meter = group.meter
    if meter is None:
        return ""
    cut = f"; its meter leaves {100 * meter.share:.0f} % of it" if meter.share < 1.0 else ""
    return f"{cut}; its meter is lost: {meter.lost}" if meter.lost else cut


def _is_open(plan: BudgetPlan, node: str) -> bool:
    return plan.standing[node].standing != "confirmed"


def _within(statuses: Sequence[BudgetGroupStatus], generation: int | None) -> Statement:
    above = [each for each in statuses if each.measured_watts is not None and each.measured_watts > each.limit_watts]
    if above:
        said = "; ".join(
            f"{_called(each)}{each.measured_watts:,.0f} W drawn, {each.limit_watts:,.0f} W are the limit"
            for each in above[:MAX_NAMED]
        )
        return Statement(WITHIN_LIMIT, "False", "Exceeded", said, generation)
    if lost := [each for each in statuses if each.meter is not None and each.meter.lost]:
        said = "; ".join(f"{_called(each)}{each.meter and each.meter.lost}" for each in lost[:MAX_NAMED])
        return Statement(WITHIN_LIMIT, "Unknown", "MeterLost", said, generation)
    if any(each.measured_watts is None for each in statuses) or not statuses:
        return Statement(WITHIN_LIMIT, "Unknown", "NotMeasured", "not every node's power is known", generation)
    return Statement(WITHIN_LIMIT, "True", "Within", "every group draws less than its limit", generation)


def _reasons(statuses: Sequence[BudgetGroupStatus]) -> str:
    return "; ".join(f"{_called(each)}{each.reason}" for each in statuses[:MAX_NAMED])


def _called(status: BudgetGroupStatus) -> str:
    return f"{status.value}: " if status.value else ""


def _named(nodes: Sequence[str]) -> str:
    return f"no confirmed cap on {_some(nodes)}"


def _some(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:MAX_NAMED]), len(names) - MAX_NAMED
    return shown + (f" and {more} more" if more > 0 else "")
