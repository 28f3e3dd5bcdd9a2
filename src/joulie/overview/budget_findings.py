"""What needs attention about power budgets, found in their statuses and conditions, each with what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from joulie.overview.budgets import BudgetView, GroupView
from joulie.overview.findings import NAMED, Finding, Severity

NEARLY = 0.95  # of a limit, drawn or needed for floors
LOST = ("its signal, which is lost", "its forecast, which says nothing of this moment")  # as `limits` words it
MAXIMUM_UNKNOWN = "budget-maximum-unknown"
_MISSING, _UNKNOWN = " W are missing ", "joulie.io/max-watts"
_NO_LABEL = "nodes without the label"


def budget_findings(budgets: Iterable[BudgetView]) -> Iterator[Finding]:
    """One finding of a kind for each budget, and for each of its groups that is in trouble."""
    for budget in budgets:
        called = f"PowerBudget/{budget.name}"
        if budget.is_paused:
            text = f"{called} is paused: its nodes may be cut, and none is raised"
            yield Finding("budget-paused", "hint", "", text, f"joulie resume {budget.name}")
        if not budget.is_seen:
            text = f"{called} is not answered to as it is now: no status is as new as its spec"
            yield Finding(
                "budget-unanswered", "warning", "", text, "joulie doctor: is an operator running and leading?"
            )
            continue
        yield from _unclear(budget, called)
        for group in budget.groups:
            yield from _group(budget, group)


def _group(budget: BudgetView, group: GroupView) -> Iterator[Finding]:
    """The gravest of what can be said of it."""
    called, look = f"budget {group.name}", f"joulie budget --nodes --group {group.name}"
    drawn_w = group.measured_w
    if group.state == "infeasible":
        text = f"{called} cannot hold its limit of {group.limit_w:,.0f} W: {group.reason}"
        yield Finding("budget-infeasible", "fault", "", text, f"{look}; docs/runbooks/budget-infeasible.md")
    elif drawn_w is not None and drawn_w > group.limit_w:
        text = f"{called} draws {drawn_w:,.0f} W, more than its limit of {group.limit_w:,.0f} W"
        severity: Severity = "warning" if group.state == "reported" else "fault"
        yield Finding("budget-exceeded", severity, "", text, f"{look}; docs/runbooks/budget-exceeded.md")
    elif group.state == "exceeded":
        text = f"{called} may exceed its limit of {group.limit_w:,.0f} W: {group.reason}"
        yield Finding("budget-exceeded", "fault", "", text, f"{look}; docs/runbooks/budget-exceeded.md")
    elif (share := _used(group)) >= NEARLY:
        word = "draws" if drawn_w is not None and drawn_w >= NEARLY * group.limit_w else "needs for its floors"
        text = f"{called} {word} {100 * share:.0f} % of its limit of {group.limit_w:,.0f} W: work there is held back"
        step = f"{look}; docs/runbooks/budget-nearly-exhausted.md"
        yield Finding("budget-nearly-exhausted", "warning", "", text, step)
    if any(words in group.reason for words in LOST):
        text = f"{called} has lost its signal, so the lowest of its limits holds: {group.limit_w:,.0f} W"
        step = f"kubectl get powerbudget {budget.name} -o yaml: what does spec.signal answer?"
        yield Finding("budget-signal-lost", "warning", "", text, step)
    if group.meter_lost:
        text = f"{called} has lost its meter, so caps alone hold its limit: {group.meter_lost}"
        step = f"kubectl get powerbudget {budget.name} -o yaml: what does spec.meter answer?"
        yield Finding("budget-meter-lost", "warning", "", text, f"{step}; docs/runbooks/budget-meter-lost.md")


def _used(group: GroupView) -> float:
    """The part of the limit that is drawn, or that floors alone need."""
    if not group.limit_w or group.state == "reported":
        return 0.0
    return max(group.measured_w or 0.0, group.floor_w or 0.0) / group.limit_w


def _unclear(budget: BudgetView, called: str) -> Iterator[Finding]:
    """What a person should change in the budget or in labels."""
    if budget.unlabelled:
        names = ", ".join(budget.unlabelled[:NAMED]) + (", …" if len(budget.unlabelled) > NAMED else "")
        many = len(budget.unlabelled)
        text = f"{called}: {many:,} node{'s' * (many > 1)} in no group, without the label {budget.group_by}: {names}"
        step = f"kubectl label node {budget.unlabelled[0]} {budget.group_by}=VALUE, or change spec.nodeSelector"
        yield Finding("budget-unlabelled", "warning", "", text, step)
    for said in budget.unclear:
        if _UNKNOWN in said:
            yield Finding(MAXIMUM_UNKNOWN, "warning", "", f"{called}: {said}", f"kubectl label node NAME {_UNKNOWN}=W")
        elif _NO_LABEL not in said and _MISSING not in said:
            yield Finding(
                "budget-unclear", "warning", "", f"{called}: {said}", f"kubectl edit powerbudget {budget.name}"
            )
