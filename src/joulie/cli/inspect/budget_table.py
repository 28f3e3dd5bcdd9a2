"""The tree of budgets for people: a line for each group, and below it its nodes where asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from joulie.cli.context import close_to, near_misses
from joulie.cli.style import QUIET, STRONG, plural, watts
from joulie.cli.tables import Cell, TableColumn, TextTable
from joulie.cli.views.budget_tree import BudgetTree, NodeShare
from joulie.errors import InputError, one_line
from joulie.overview.budgets import BudgetView, GroupView
from joulie.overview.colours import BUDGET_COLOURS
from joulie.overview.findings import age

_COLUMNS = (
    TableColumn("budget / group"),
    TableColumn("nodes", right=True),
    TableColumn("limit", right=True),
    TableColumn("allocated", right=True),
    TableColumn("measured", right=True),
    TableColumn("floor", right=True),
    TableColumn("state"),
)


def print_tree(console: Console, tree: BudgetTree, now_s: float, *, with_nodes: bool) -> None:
    if not tree.budgets:
        console.print("there is no PowerBudget; docs/how-to/budgets/feed.md shows how to write one", soft_wrap=True)
        return
    table = TextTable(_COLUMNS, note="why")
    for budget in tree.budgets:
        for cells, note in _rows(budget, tree, with_nodes):
            table.add(cells, note)
    table.print(console)
    for line in _remarks(tree, now_s):
        console.print(line, soft_wrap=True)


def only_group(tree: BudgetTree, wanted: str | None) -> BudgetTree:
    """The tree without anything but this budget or group."""
    if wanted is None:
        return tree
    name, slash, _ = wanted.partition("/")
    budgets = [
        replace(one, groups=tuple(group for group in one.groups if not slash or group.name == wanted))
        for one in tree.budgets
        if one.name == name
    ]
    if not budgets or (slash and not budgets[0].groups):
        known = [one.name for one in tree.budgets] + [group.name for one in tree.budgets for group in one.groups]
        raise InputError(f"there is no budget or group {wanted!r}{close_to(near_misses(wanted, known))}")
    kept = {group.name for group in budgets[0].groups}
    nodes = tuple(node for node in tree.nodes if kept.intersection(node.groups))
    return replace(tree, budgets=tuple(budgets), nodes=nodes)


def state_cell(state: str) -> Cell:
    return state, BUDGET_COLOURS.get(state, "")


def watts_or_dash(value: float | None) -> str:
    return "–" if value is None else watts(value)


def _rows(budget: BudgetView, tree: BudgetTree, with_nodes: bool) -> Iterator[tuple[list[Cell], str]]:
    """One group without a value is the budget itself; several stand below it."""
    whole = len(budget.groups) == 1 and not budget.groups[0].value
    if not whole:
        said = f"by {budget.group_by}" if budget.group_by else "takes no node"
        yield [(budget.name, STRONG), "", "", "", "", "", ""], said
    for group in budget.groups:
        name: Cell = (budget.name, STRONG) if whole else f"├ {group.value or '(all)'}"
        yield _group(group, name), group.reason
        if with_nodes:
            for node in tree.nodes:
                if group.name in node.groups:
                    yield _node(node, "· " if whole else "│ · "), node.reason


def _group(group: GroupView, name: Cell) -> list[Cell]:
    return [
        name,
        f"{group.nodes:,}",
        watts(group.limit_w),
        watts_or_dash(group.allocated_w),
        watts_or_dash(group.measured_w),
        watts_or_dash(group.floor_w),
        state_cell(group.state),
    ]


def _node(node: NodeShare, indent: str) -> list[Cell]:
    said = "confirmed" if node.is_confirmed else "not confirmed" if node.cap_w is not None else "no cap"
    return [
        (f"{indent}{node.node}", QUIET),
        "",
        "",
        watts_or_dash(node.cap_w),
        watts_or_dash(node.measured_w),
        "",
        (said, QUIET),
    ]


def _remarks(tree: BudgetTree, now_s: float) -> Iterator[Text]:
    """Windows to come, brakes and problems of each budget; that this was worked out here."""
    yield Text()
    for budget in tree.budgets:
        for line in _about(budget, now_s):
            yield Text.assemble((f"{budget.name}: ", STRONG), one_line(line))
    if tree.is_computed:
        nodes = plural(len(tree.nodes), "node")
        yield Text(f"worked out from files for {nodes}, as if every cap were confirmed; nothing was written", QUIET)


def _about(budget: BudgetView, now_s: float) -> Iterator[str]:
    if budget.is_paused:
        yield f"paused, so nothing is raised; to go on: joulie resume {budget.name}"
    if budget.windows:
        yield "windows " + "; ".join(budget.windows)
    if budget.until_s is not None:
        yield f"its limit next changes at {_local(budget.until_s)}, in {age(budget.until_s - now_s)}"
    yield from budget.unclear


def _local(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(at_s))
