"""Events of a PowerBudget: that it cannot be held any more, and that it can again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from joulie.cluster.node_events import EventDetails, budget_event
from joulie.control.budget.cycle import BudgetReport
from joulie.control.budget.reporting import FLOORS_ABOVE_LIMIT, MAXIMUM_UNKNOWN, NOT_CONFIRMED
from joulie.control.conditions import by_type
from joulie.model.api import PowerBudgetStatus
from joulie.model.api.budget import FEASIBLE, BudgetGroupStatus

INFEASIBLE, FEASIBLE_AGAIN = "BudgetInfeasible", "BudgetFeasible"

_NEXT_STEPS: Final = {
    FLOORS_ABOVE_LIMIT: "raise the limit, move nodes to another group or switch some off; see joulie budget --nodes",
    NOT_CONFIRMED: "this ends with their first confirmed caps; if it does not, joulie doctor says why",
    MAXIMUM_UNKNOWN: "see joulie doctor",
}
_EDIT = "correct it with kubectl edit powerbudget {name}"


def feasibility_event(report: BudgetReport, reporter: str, now_s: float) -> dict[str, Any] | None:
    """The Event that this turn's status is worth, compared with the status that the budget has.

    The objects remember what was said, so a new leader does not repeat it. More missing watts are no news; another
    group that lacks some, or another cause, is.
    """
    budget = report.budget
    name, there = budget.metadata.name, budget.status or PowerBudgetStatus()
    (said,) = (each for each in report.statements if each.type == FEASIBLE)
    before = by_type(there.conditions).get(FEASIBLE)
    if said.status == "True":
        if before is None or before.status != "False":
            return None
        details = EventDetails("operator", reporter, FEASIBLE_AGAIN, said.message)
    else:
        new_groups = _lacking(report.statuses) - _lacking(there.groups or ())
        if before is not None and (before.status, before.reason) == ("False", said.reason) and not new_groups:
            return None
        step = _NEXT_STEPS.get(said.reason, _EDIT.format(name=name))
        details = EventDetails("operator", reporter, INFEASIBLE, f"{said.message}; {step}", "Warning")
    return budget_event(name, budget.metadata.uid or "", details, now_s)


def _lacking(groups: Iterable[BudgetGroupStatus]) -> set[str]:
    return {group.value for group in groups if group.state == "infeasible"}
