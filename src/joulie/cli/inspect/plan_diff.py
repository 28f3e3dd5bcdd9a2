"""The plan compared with the current state: only nodes that would change, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from joulie.cli.context import LoadedCluster
from joulie.cli.style import plural, state_cell
from joulie.cli.tables import Cell, TableColumn, TextTable
from joulie.cli.views.plan_table import allowed, budget_lines, cpu_cap, gpu_cap, summary
from joulie.control.plan import Assignment
from joulie.model.api import NodeTwin
from joulie.operator.writes import spec_of
from joulie.overview.findings import cap
from joulie.overview.nodes import NodeOverview, node_views

_COLUMNS = (
    TableColumn("node"),
    TableColumn("is"),
    TableColumn("becomes"),
    TableColumn("CPU cap"),
    TableColumn("GPU cap"),
)


class PlannedChange(NamedTuple):
    """One node that would change."""

    now: NodeOverview
    then: Assignment


def changes(cluster: LoadedCluster) -> list[PlannedChange]:
    """Nodes whose state or caps would change, in the policy's order; a node without a twin counts as changed."""
    views = node_views(cluster.snapshot, cluster.settings.plan, cluster.now_s)
    twins = cluster.snapshot.twins
    return [PlannedChange(views[a.node], a) for a in cluster.plan.assignments if _differs(a, twins)]


def print_diff(console: Console, cluster: LoadedCluster) -> None:
    """Table of changes, the number of unchanged nodes, and the summary of the whole plan."""
    found, plan = changes(cluster), cluster.plan
    if found:
        _table(found).print(console)
        console.print()
    same = len(plan.assignments) - len(found)
    if plan.assignments:
        text = f"{plural(len(found), 'node')} would change, {same:,} unchanged" if found else "nothing would change"
        console.print(Text(f"{text} (--all shows every node)"), soft_wrap=True)
    console.print(summary(plan), soft_wrap=True)
    if len(plan.twins):
        console.print(allowed(plan), soft_wrap=True)
        for line in budget_lines(cluster):
            console.print(line, soft_wrap=True)


def _differs(assignment: Assignment, twins: Mapping[str, NodeTwin]) -> bool:
    twin = twins.get(assignment.node)
    if twin is None or twin.spec is None or assignment.before != assignment.state:
        return True
    wanted = spec_of(assignment)
    return (twin.spec.profile, twin.spec.cpu, twin.spec.gpu) != (wanted.profile, wanted.cpu, wanted.gpu)


def _table(found: list[PlannedChange]) -> TextTable:
    table = TextTable(_COLUMNS, note="why")
    for now, then in found:
        cells: list[Cell] = [
            now.name,
            state_cell(now.state) if now.has_twin else "no twin yet",
            state_cell(then.state),
            _arrow(cap(now, "CPU"), cpu_cap(then.caps)),
            _arrow(cap(now, "GPU"), gpu_cap(then.caps)) if then.machine.gpu_count else "–",
        ]
        table.add(cells, then.reason)
    return table


def _arrow(now: str, then: str) -> str:
    return then if now == then else f"{now} → {then}"
