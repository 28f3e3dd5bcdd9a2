"""The plan for people: one line per node, and a summary."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from joulie.cli.context import LoadedCluster
from joulie.cli.style import QUIET, fixed, kilowatts, percent, plural, state_cell, watts
from joulie.cli.tables import Cell, TableColumn, TextTable
from joulie.control.caps import Caps
from joulie.control.plan import Assignment, Plan
from joulie.control.survey import DemandByClass
from joulie.model.names import DRAINING, DRAINING_LABEL, ECO, PERFORMANCE
from joulie.model.snapshot import Snapshot
from joulie.overview.colours import STATE_COLOURS

_COLUMNS = (
    TableColumn("node"),
    TableColumn("state"),
    TableColumn("density", right=True, optional=True),
    TableColumn("family", optional=True),
    TableColumn("CPU cap", right=True),
    TableColumn("GPU cap", right=True),
)


def print_plan(console: Console, cluster: LoadedCluster) -> None:
    """Table and summary; an empty plan has already been explained on standard error."""
    plan = cluster.plan
    if plan.assignments:
        plan_table(plan, cluster).print(console)
        console.print()
    console.print(summary(plan), soft_wrap=True)
    if len(plan.twins):
        console.print(allowed(plan), soft_wrap=True)
        for line in budget_lines(cluster):
            console.print(line, soft_wrap=True)


def plan_table(plan: Plan, cluster: LoadedCluster) -> TextTable:
    """Adds a column for the previous state only if one is known and differs."""
    label = cluster.settings.plan.power_profile_label
    was = {a.node: _earlier(a, cluster.snapshot, label) for a in plan.assignments}
    changes = any(was.values())
    columns = (_COLUMNS[0], TableColumn("was", optional=True), *_COLUMNS[1:]) if changes else _COLUMNS
    table = TextTable(columns, note="why")
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
    """How many nodes are in each state."""
    line = Text(f"{pods}\n" if (pods := demand(plan.demand)) else "")
    line.append(f"{plan.policy}: {plural(len(plan.assignments), 'node')}, ")
    parts = [(state, plan.count(state)) for state in (PERFORMANCE, ECO, DRAINING)]
    for position, (state, count) in enumerate(parts):
        line.append(", " if position else "")
        line.append(f"{count} {state}", STATE_COLOURS[state])
    if plan.left_alone:
        line.append(f"; {plural(len(plan.left_alone), 'cordoned node')} left alone ({_some(plan.left_alone)})")
    return line


def demand(pods: DemandByClass) -> str:
    """`pods: 3 performance-only, 1 eco-only, 20 on either`; empty if no pod asks for a profile."""
    if not pods.performance_only and not pods.eco_only:
        return ""
    return f"pods: {pods.performance_only:,} performance-only, {pods.eco_only:,} eco-only, {pods.general:,} on either"


def allowed(plan: Plan) -> str:
    """`caps allow 34.2 kW of 40.5 kW uncapped (-15 %)`, over all nodes in scope."""
    full_w, capped_w = math.fsum(plan.twins.columns["max_w"]), math.fsum(plan.twins.columns["capped_w"])
    saved = f" ({(capped_w - full_w) / full_w * 100:+.0f} %)" if capped_w < full_w else ""
    return f"caps allow {kilowatts(capped_w)} of {kilowatts(full_w)} uncapped{saved}"


def budget_lines(cluster: LoadedCluster) -> list[str]:
    """What power budgets make of it; empty without any. `joulie budget` has the whole tree."""
    if not cluster.budgets:
        return []
    from joulie.cli.views.budget_tree import tree_of

    tree = tree_of(cluster)
    lower = sum(one.cap_w is not None and one.cap_w < (one.allowed_w or 0.0) for one in tree.nodes)
    groups = [group for one in tree.budgets for group in one.groups]
    tight = [group.name for group in groups if group.state in ("exceeded", "infeasible")]
    said = f"; cannot hold: {_some(tuple(tight))}" if tight else ""
    held = f"{plural(lower, 'node')} held lower than that by power budgets"
    return [
        f"{held} ({plural(len(tree.budgets), 'budget')}, {plural(len(groups), 'group')}){said}: joulie budget --nodes"
    ]


def cpu_cap(caps: Caps) -> str:
    """As it would be written: watts per package, or percent."""
    return f"{watts(caps.cpu_w_each)} each" if caps.cpu_w_each is not None else percent(caps.cpu_pct or 0.0)


def gpu_cap(caps: Caps) -> str:
    """Percent, with watts per GPU if these are written too; a dash without GPUs."""
    if caps.gpu_pct is None:
        return "–"
    return percent(caps.gpu_pct) + (f", {watts(caps.gpu_w_each)} each" if caps.gpu_w_each is not None else "")


def _earlier(assignment: Assignment, snapshot: Snapshot, profile_label: str) -> str:
    """The previous state, if an object records it and it differs."""
    labels = snapshot.nodes[assignment.node].labels
    recorded = assignment.node in snapshot.twins or profile_label in labels or DRAINING_LABEL in labels
    return assignment.before if recorded and assignment.transition is not None else ""


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
