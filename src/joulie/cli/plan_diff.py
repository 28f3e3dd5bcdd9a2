"""The plan against what is: only nodes that would change, with what they are and what they would become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from joulie.cli.context import Cluster
from joulie.cli.plan_table import budget, cpu_cap, gpu_cap, summary
from joulie.cli.style import plural, state_cell
from joulie.cli.tables import Cell, Column, Table
from joulie.control.plan import Assignment
from joulie.model.api import NodeTwin
from joulie.operator.writes import spec_of
from joulie.overview.findings import cap
from joulie.overview.nodes import NodeView, node_views

_COLUMNS = (Column("node"), Column("is"), Column("becomes"), Column("CPU cap"), Column("GPU cap"))


class Change(NamedTuple):
    """One node that would change."""

    now: NodeView
    then: Assignment


def changes(cluster: Cluster) -> list[Change]:
    """Nodes whose state or caps would be others, in the policy's order; a node without a twin gets one."""
    views = node_views(cluster.snapshot, cluster.settings.plan, cluster.now_s)
    twins = cluster.snapshot.twins
    return [Change(views[a.node], a) for a in cluster.plan.assignments if _differs(a, twins)]


def print_diff(console: Console, cluster: Cluster) -> None:
    """Table of changes, how many stay, and the sums of the whole plan."""
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
        console.print(budget(plan), soft_wrap=True)


def _differs(assignment: Assignment, twins: Mapping[str, NodeTwin]) -> bool:
    twin = twins.get(assignment.node)
    if twin is None or twin.spec is None or assignment.before != assignment.state:
        return True
    wanted = spec_of(assignment)
    return (twin.spec.profile, twin.spec.cpu, twin.spec.gpu) != (wanted.profile, wanted.cpu, wanted.gpu)


def _table(found: list[Change]) -> Table:
    table = Table(_COLUMNS, note="why")
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
