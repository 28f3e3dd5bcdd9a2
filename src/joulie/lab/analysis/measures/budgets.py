"""How well limits of power budgets were kept: what the nodes of a group draw at the wall, to the moment."""

from __future__ import annotations

from joulie.lab.analysis.measures.facts import Measure

MEASURES = (
    Measure(  # of several groups, their times are added up
        *("above_limit_s", "Above a budget's limit", "s", 1),
        lambda run: None if run.outcome.budgets is None else run.outcome.budgets.above_limit_s,
    ),
    Measure(
        *("worst_excess_pct", "Worst excess above a budget's limit", "%", 2),
        lambda run: None if run.outcome.budgets is None else run.outcome.budgets.worst_excess_pct,
    ),
)
