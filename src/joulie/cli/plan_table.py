"""The plan for people: one line a node, and a summary."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from joulie.cli.context import Cluster
from joulie.cli.style import QUIET, fixed, kilowatts, percent, plural, state_cell, watts
from joulie.cli.tables import Cell, Column, Table
from joulie.control.caps import Caps
from joulie.control.plan import Assignment, Plan
from joulie.model.names import DRAINING, DRAINING_LABEL, ECO, PERFORMANCE
from joulie.model.snapshot import Snapshot
from joulie.overview.colours import STATE_COLOURS

_COLUMNS = (
    Column("node"),
    Column("state"),
    Column("density", right=True, optional=True),
    Column("family", optional=True),
    Column("CPU cap", right=True),
    Column("GPU cap", right=True),
)


def print_plan(console: Console, cluster: Cluster) -> None:
    """Table and summary; an empty plan is told on standard error already."""
    plan = cluster.plan
    if plan.assignments:
        plan_table(plan, cluster).print(console)
        console.print()
    console.print(summary(plan), soft_wrap=True)
    if len(plan.twins):
        console.print(budget(plan), soft_wrap=True)


def plan_table(plan: Plan, cluster: Cluster) -> Table:
    """With a column for the earlier state only where one is known and differs."""
    label = cluster.settings.plan.power_profile_label
    was = {a.node: _earlier(a, cluster.snapshot, label) for a in plan.assignments}
    changes = any(was.values())
    columns = (_COLUMNS[0], Column("was", optional=True), *_COLUMNS[1:]) if changes else _COLUMNS
    table = Table(columns, note="why")
    for assignment in plan.assignments:
        earlier = was[assignment.node]
        shown: list[Cell] = [(f"{earlier} →" if earlier else "", QUIET)] if changes else []
        cells = [
            assignment.node,
            *shown,
            state_cell(assignment.state),
            fixed(assignment.density, 2),
            assignment.machine.family,
            cpu_cap(assignment.caps),
            gpu_cap(assignment.caps),
        ]
        table.add(cells, assignment.reason)
    return table


def summary(plan: Plan) -> Text:
    """How many nodes are what."""
    line = Text(f"{plan.policy}: {plural(len(plan.assignments), 'node')}, ")
    parts = [(state, plan.count(state)) for state in (PERFORMANCE, ECO, DRAINING)]
    for position, (state, count) in enumerate(parts):
        line.append(", " if position else "")
        line.append(f"{count} {state}", STATE_COLOURS[state])
    if plan.left_alone:
        line.append(f"; {plural(len(plan.left_alone), 'cordoned node')} left alone ({_some(plan.left_alone)})")
    return line


def budget(plan: Plan) -> str:
    """`power budget 34.2 kW of 40.5 kW uncapped (-15 %)`, over all nodes in scope."""
    full_w, capped_w = math.fsum(plan.twins.columns["max_w"]), math.fsum(plan.twins.columns["capped_w"])
    saved = f" ({(capped_w - full_w) / full_w * 100:+.0f} %)" if capped_w < full_w else ""
    return f"power budget {kilowatts(capped_w)} of {kilowatts(full_w)} uncapped{saved}"


def cpu_cap(caps: Caps) -> str:
    """As it would be written: watts of the node, or percent."""
    return watts(caps.cpu_w) if caps.cpu_w is not None else percent(caps.cpu_pct or 0.0)


def gpu_cap(caps: Caps) -> str:
    """Percent, with the watts of each GPU where they are written too; a dash without a GPU."""
    if caps.gpu_pct is None:
        return "–"
    return percent(caps.gpu_pct) + (f", {watts(caps.gpu_w_each)} each" if caps.gpu_w_each is not None else "")


def _earlier(assignment: Assignment, snapshot: Snapshot, profile_label: str) -> str:
    """The state before, where an object tells it and it is another one."""
    labels = snapshot.nodes[assignment.node].labels
    told = assignment.node in snapshot.twins or profile_label in labels or DRAINING_LABEL in labels
    return assignment.before if told and assignment.transition is not None else ""


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
