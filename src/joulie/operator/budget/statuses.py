"""The status of every PowerBudget, and when it is worth a write. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from joulie.cluster.node_events import NAMESPACE
from joulie.cluster.port import EVENTS, POWER_BUDGETS
from joulie.control.budget.cycle import SHORT_FORM, BudgetReport
from joulie.control.conditions import by_type, is_news, written
from joulie.model.api import PowerBudgetStatus
from joulie.model.api.budget import BudgetGroupStatus, MeterStatus
from joulie.model.rfc3339 import format_time
from joulie.operator.budget.events import feasibility_event
from joulie.operator.writes import Job, Write

OWN_FIELDS = ("observedGeneration", "groups", "until")


def budget_jobs(reports: Iterable[BudgetReport], deadband_pct: float, now_s: float, reporter: str) -> list[Job]:
    """Status writes for budgets of which something has changed that a person would want to know.

    An Event goes after the status that it is about: were it first, a status that cannot be written would repeat it.
    """
    jobs = []
    for report in reports:
        budget = report.budget
        name = budget.metadata.name
        if name == SHORT_FORM:  # a setting has no status
            continue
        there = budget.status or PowerBudgetStatus()
        until = None if report.until_s is None else format_time(report.until_s)
        changed = (
            is_news(report.statements, by_type(there.conditions))
            or (there.observed_generation, there.until) != (budget.metadata.generation, until)
            or _moved(report.statuses, there.groups or [], deadband_pct)
        )
        if changed:
            body = {
                "observedGeneration": budget.metadata.generation,
                "groups": msgspec.to_builtins(list(report.statuses)),
                "conditions": written(report.statements, by_type(there.conditions), now_s),
                **({} if until is None else {"until": until}),
            }
            writes = [Write("patch", POWER_BUDGETS, name, {"status": body}, status=True, owned=OWN_FIELDS)]
            if (event := feasibility_event(report, reporter, now_s)) is not None:
                writes.append(Write("create", EVENTS, event["metadata"]["name"], event, namespace=NAMESPACE))
            jobs.append(Job(f"PowerBudget/{name}", tuple(writes)))
    return jobs


def _moved(wanted: Iterable[BudgetGroupStatus], there: Iterable[BudgetGroupStatus], deadband_pct: float) -> bool:
    """Whether a group came or went, changed its state, or moved by more than the deadband of its limit."""
    known = {group.value: group for group in there}
    groups = {group.value: group for group in wanted}
    if known.keys() != groups.keys():
        return True
    return any(_differs(group, known[value], deadband_pct) for value, group in groups.items())


def _differs(group: BudgetGroupStatus, there: BudgetGroupStatus, deadband_pct: float) -> bool:
    if (group.state, group.nodes, group.limit_watts) != (there.state, there.nodes, there.limit_watts):
        return True
    if (group.measured_watts is None) != (there.measured_watts is None):
        return True
    if _meter_moved(group.meter, there.meter, deadband_pct):
        return True
    band_w = deadband_pct / 100.0 * group.limit_watts
    pairs = (
        (group.allocated_watts, there.allocated_watts),
        (group.floor_watts, there.floor_watts),
        (group.measured_watts or 0.0, there.measured_watts or 0.0),
    )
    return any(abs(now_w - before_w) > band_w for now_w, before_w in pairs)


def _meter_moved(meter: MeterStatus | None, there: MeterStatus | None, deadband_pct: float) -> bool:
    """A cut is always news: a new leader has only this to go by. Too low a share is safe for as long as it stays."""
    now, before = meter or MeterStatus(), there or MeterStatus()
    if (now.lost is None) != (before.lost is None) or (now.share is None) != (before.share is None):
        return True
    share, known = now.share or 1.0, before.share or 1.0
    return share < known or share - known > deadband_pct / 100.0
