"""Budgets, their groups and nodes: as the operator reports them, or as they would settle, for `budget` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from joulie.cli.context import LoadedCluster
from joulie.control.budget.cycle import BudgetReport
from joulie.control.budget.groups import Readings, group_name
from joulie.control.budget.members import BudgetInput
from joulie.model.api import PowerBudget
from joulie.model.api.budget import GroupException, PowerBudgetStatus
from joulie.model.api.results import Condition
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Snapshot
from joulie.overview.budget_settling import settle
from joulie.overview.budgets import BudgetView, budget_views, groups_of, taken_by
from joulie.overview.nodes import NodeOverview, node_views
from joulie.sources.budget_readings import known_zones


class NodeShare(Struct, frozen=True, rename="camel"):
    """What budgets leave one node. None: not known, or nothing was ordered."""

    node: str
    groups: tuple[str, ...]
    cap_w: float | None  # of its devices together
    cpu_w_each: float | None
    gpu_w_each: float | None
    allowed_w: float | None  # what its profile alone would give
    max_w: float | None
    measured_w: float | None
    is_confirmed: bool
    reason: str


class BudgetTree(Struct, frozen=True, rename="camel"):
    """Everything that `joulie budget` shows; `is_computed`: worked out here, and nothing of it is in force."""

    is_computed: bool
    budgets: tuple[BudgetView, ...]
    nodes: tuple[NodeShare, ...]


class SettledCluster(NamedTuple):
    """A cluster as it would be once all orders are followed."""

    snapshot: Snapshot
    budgets: tuple[PowerBudget, ...]


def tree_of(cluster: LoadedCluster) -> BudgetTree:
    """The status of a live cluster; from files, what the operator would make of them."""
    if cluster.live is not None:
        return _tree(cluster, cluster.snapshot, cluster.budgets, is_computed=False)
    return settled_tree(cluster, cluster.budgets)


def settled_tree(cluster: LoadedCluster, budgets: Sequence[PowerBudget]) -> BudgetTree:
    found = settled(cluster, budgets)
    return _tree(cluster, found.snapshot, found.budgets, is_computed=True)


def settled(cluster: LoadedCluster, budgets: Sequence[PowerBudget]) -> SettledCluster:
    """Where these budgets settle. Signals are not read here: what the operator made of one still counts."""
    given = BudgetInput(cluster.snapshot, cluster.plan, cluster.settings, cluster.now_s, cluster.catalogue)
    known = [_as_in_force(budget) for budget in budgets]
    turn, snapshot = settle(given, known, Readings(known_zones(known), {}, {}))
    by_name = {budget.metadata.name: budget for budget in budgets}
    return SettledCluster(
        snapshot, tuple(_answered(by_name[report.budget.metadata.name], report) for report in turn.reports)
    )


def _tree(
    cluster: LoadedCluster, snapshot: Snapshot, budgets: Sequence[PowerBudget], *, is_computed: bool
) -> BudgetTree:
    nodes = node_views(snapshot, cluster.settings.plan, cluster.now_s)
    managed = [name for name, node in nodes.items() if node.managed]
    inside: dict[str, list[str]] = {}
    for budget in budgets:
        for value, names in groups_of(budget, taken_by(budget, snapshot.nodes, managed)).items():
            for name in names:
                inside.setdefault(name, []).append(group_name(budget.metadata.name, value))
    twins = cluster.plan.twins
    columns = zip(twins.columns["capped_w"], twins.columns["max_w"], strict=True) if len(twins) else ()
    known = dict(zip(twins.nodes, columns, strict=False))
    shares = [_share(nodes[name], tuple(sorted(groups)), known.get(name)) for name, groups in sorted(inside.items())]
    return BudgetTree(is_computed, budget_views(budgets, snapshot.nodes, managed), tuple(shares))


def _share(node: NodeOverview, groups: tuple[str, ...], planned: tuple[float, float] | None) -> NodeShare:
    """`planned` is what the plan allows the node, and its maximum; None: it is not planned."""
    allowed_w, max_w = (node.max_w, node.max_w) if planned is None else planned
    return NodeShare(
        node.name,
        groups,
        node.budget_w,
        node.budget_cpu_w,
        node.budget_gpu_w,
        allowed_w,
        max_w,
        node.power_w,
        node.budget_is_confirmed,
        node.budget_reason,
    )


def _answered(budget: PowerBudget, report: BudgetReport) -> PowerBudget:
    """The budget with the status that the operator would write."""
    said = [Condition(one.type, one.status, one.reason, one.message) for one in report.statements]
    until = None if report.until_s is None else format_time(report.until_s)
    return replace(budget, status=PowerBudgetStatus(budget.metadata.generation, list(report.statuses), until, said))


def _as_in_force(budget: PowerBudget) -> PowerBudget:
    """A signal's limit as the operator last knew it stands for the signal; unknown, its lowest counts."""
    told = (budget.status.groups if budget.status else None) or ()
    if budget.spec.signal is None or not told:
        return budget
    if budget.spec.group_by is None:
        return replace(budget, spec=replace(budget.spec, signal=None, watts=min(one.limit_watts for one in told)))
    modes = {one.value: one.mode for one in budget.spec.groups or ()}
    groups = [GroupException(one.value, one.limit_watts, modes.get(one.value)) for one in told]
    return replace(budget, spec=replace(budget.spec, signal=None, groups=groups))
