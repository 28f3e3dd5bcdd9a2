"""`joulie budget --what-if`: which nodes would be cut under another limit, and by how much. Nothing is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from joulie.cli.context import LoadedCluster, close_to, near_misses
from joulie.cli.inspect.budget_table import state_cell, watts_or_dash
from joulie.cli.style import STRONG, percent, plural, watts
from joulie.cli.tables import TableColumn, TextTable
from joulie.cli.views.budget_tree import BudgetTree, NodeShare, settled_tree
from joulie.control.budget.groups import group_name
from joulie.errors import InputError
from joulie.model.api import PowerBudget, PowerBudgetSpec
from joulie.model.api.budget import GroupException
from joulie.model.kubernetes import ObjectMeta
from joulie.overview.budgets import GroupView, asked_w

IMAGINED = "what-if"  # the budget over all nodes where there is none
_QUESTION = re.compile(r"(?:(?P<name>[^:=]+):)?watts=(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<percent>\s*%)?")


class GroupChange(Struct, frozen=True, rename="camel"):
    """A group before and after."""

    group: str
    before: GroupView | None  # None: there was no such budget
    after: GroupView


class NodeChange(Struct, frozen=True, rename="camel"):
    """A node whose cap would be another one; watts of its devices together."""

    node: str
    before_w: float
    after_w: float
    cap_pct: float  # of what it could draw, afterwards
    measured_w: float | None
    slows: bool | None  # whether it draws more now than it could; None: not measured
    reason: str


class Answer(Struct, frozen=True, rename="camel"):
    """What would change."""

    groups: tuple[GroupChange, ...]
    nodes: tuple[NodeChange, ...]  # the largest cut first
    cut_w: float
    raised_w: float


def answer(cluster: LoadedCluster, questions: Sequence[str]) -> Answer:
    """Both sides settle by the same rules, so that what differs comes from the limits alone."""
    asked = list(cluster.budgets)
    for question in questions:
        asked = _changed(asked, question)
    before, after = settled_tree(cluster, cluster.budgets), settled_tree(cluster, asked)
    groups = {group.name: group for budget in before.budgets for group in budget.groups}
    changes = [
        GroupChange(group.name, groups.get(group.name), group) for budget in after.budgets for group in budget.groups
    ]
    nodes = _nodes(before, after)
    return Answer(
        tuple(one for one in changes if one.before is None or _differs(one.before, one.after)),
        tuple(nodes),
        sum(max(0.0, one.before_w - one.after_w) for one in nodes),
        sum(max(0.0, one.after_w - one.before_w) for one in nodes),
    )


def print_answer(console: Console, found: Answer) -> None:
    if not found.groups and not found.nodes:
        console.print("nothing would change")
        return
    groups = TextTable(
        (
            TableColumn("group"),
            TableColumn("limit now", right=True),
            TableColumn("then", right=True),
            TableColumn("allocated now", right=True),
            TableColumn("then", right=True),
            TableColumn("state"),
        ),
        note="why",
    )
    for one in found.groups:
        was, then = one.before, one.after
        limit_w, allocated_w = (None, None) if was is None else (was.limit_w, was.allocated_w)
        cells = [watts_or_dash(limit_w), watts(then.limit_w)]
        cells += [watts_or_dash(allocated_w), watts_or_dash(then.allocated_w)]
        groups.add([one.group, *cells, state_cell(then.state)], then.reason)
    groups.print(console)
    console.print()
    _print_nodes(console, found)


def _print_nodes(console: Console, found: Answer) -> None:
    if found.nodes:
        table = TextTable(
            (
                TableColumn("node"),
                TableColumn("cap now", right=True),
                TableColumn("then", right=True),
                TableColumn("change", right=True),
                TableColumn("of maximum", right=True),
                TableColumn("costs speed"),
            ),
            note="why",
        )
        for one in found.nodes:
            change = f"{one.after_w - one.before_w:+,.0f} W"
            cells = [one.node, watts(one.before_w), watts(one.after_w), change, percent(round(one.cap_pct))]
            table.add([*cells, _speed(one)], one.reason)
        table.print(console)
        console.print()
    cut = [one for one in found.nodes if one.after_w < one.before_w]
    slower = sum(one.slows is True for one in cut)
    line = Text(f"{plural(len(cut), 'node')} cut by {watts(found.cut_w)} together", STRONG)
    line.append(f", {watts(found.raised_w)} given to others" if found.raised_w else "")
    line.append(f"; {slower:,} of them draw more than that now" if slower else "")
    console.print(line, soft_wrap=True)
    console.print("as it would settle once every cap is confirmed; nothing was written", soft_wrap=True)


def _speed(one: NodeChange) -> str:
    """A cap above what a node draws costs nothing; how much one below it costs depends on the work."""
    if one.after_w >= one.before_w:
        return "no"
    if one.slows is None:
        return "when it draws more than that"
    return f"{'yes' if one.slows else 'no'}, it draws {watts(one.measured_w or 0.0)}"


def _nodes(before: BudgetTree, after: BudgetTree) -> list[NodeChange]:
    was, then = ({one.node: one for one in tree.nodes} for tree in (before, after))
    found = [
        change for name in was.keys() | then.keys() if (change := _node(was.get(name), then.get(name))) is not None
    ]
    return sorted(found, key=lambda one: (one.after_w - one.before_w, one.node))


def _node(was: NodeShare | None, then: NodeShare | None) -> NodeChange | None:
    one = then or was
    if one is None or one.max_w is None:
        return None
    before_w, after_w = (_held_w(share, one.allowed_w or one.max_w) for share in (was, then))
    if before_w == after_w:
        return None
    slows = None if one.measured_w is None else one.measured_w > after_w
    reason = then.reason if then is not None else "no budget holds it"
    return NodeChange(one.node, before_w, after_w, 100.0 * after_w / one.max_w, one.measured_w, slows, reason)


def _held_w(share: NodeShare | None, allowed_w: float) -> float:
    """An agent holds the lower of profile and budget."""
    return allowed_w if share is None or share.cap_w is None else min(share.cap_w, allowed_w)


def _differs(was: GroupView, then: GroupView) -> bool:
    return (was.limit_w, was.allocated_w, was.state) != (then.limit_w, then.allocated_w, then.state)


def _changed(budgets: list[PowerBudget], question: str) -> list[PowerBudget]:
    """The budgets with one limit changed; the InputError says what can be asked."""
    found = _QUESTION.fullmatch(question.strip())
    if found is None:
        raise InputError(
            f"--what-if {question!r} cannot be used: write watts=8000, NAME:watts=8000 or NAME/GROUP:watts=70%"
        )
    number, in_percent = float(found["number"]), bool(found["percent"])
    if not number:
        raise InputError(f"--what-if {question!r}: a limit is above 0 W")
    wanted = found["name"] or _only(budgets, question)
    if wanted == IMAGINED and not budgets:
        if in_percent:
            raise InputError(f"--what-if {question!r}: there is no budget to take percent of; write watts")
        return [PowerBudget(ObjectMeta(IMAGINED), PowerBudgetSpec(number))]
    name, _, value = wanted.partition("/")
    if name not in {one.metadata.name for one in budgets}:
        known = [one.metadata.name for one in budgets]
        raise InputError(
            f"--what-if {question!r}: there is no PowerBudget {name!r}{close_to(near_misses(name, known))}"
        )
    return [_limited(one, value, number, in_percent) if one.metadata.name == name else one for one in budgets]


def _only(budgets: list[PowerBudget], question: str) -> str:
    if len(budgets) > 1:
        names = ", ".join(sorted(one.metadata.name for one in budgets))
        raise InputError(f"--what-if {question!r}: say which budget, as in NAME:{question}; there are {names}")
    return budgets[0].metadata.name if budgets else IMAGINED


def _limited(budget: PowerBudget, value: str, number: float, in_percent: bool) -> PowerBudget:
    spec = budget.spec
    factor = number / 100.0
    if not value:
        own = [
            replace(one, watts=one.watts * factor if in_percent else number) if one.watts is not None else one
            for one in spec.groups or ()
        ]
        watts_ = spec.watts * factor if in_percent else number
        return replace(budget, spec=replace(spec, watts=watts_, groups=own or None))
    if spec.group_by is None:
        raise InputError(
            f"--what-if {group_name(budget.metadata.name, value)}: that budget has no groups (spec.groupBy)"
        )
    kept = [one for one in spec.groups or () if one.value != value]
    mode = next((one.mode for one in spec.groups or () if one.value == value), None)
    limit_w = asked_w(budget, value) * factor if in_percent else number
    return replace(budget, spec=replace(spec, groups=[*kept, GroupException(value, limit_w, mode)]))
