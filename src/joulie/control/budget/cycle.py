"""`decide_budgets`: a snapshot with its budgets in, orders and what is said of each budget out.

Operator and command line call it with the same plan that `decide` made: a budget takes watts away from what policies,
pins and the guard would give, and never adds any.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from joulie.control.budget.envelopes import GPU_REST_PER_W
from joulie.control.budget.groups import BudgetGroup, Readings, budget_groups
from joulie.control.budget.members import BudgetInput, MeasuredNode, members_of
from joulie.control.budget.memory import BudgetMemory
from joulie.control.budget.messages import confirmation_in, order_in
from joulie.control.budget.planning import BudgetPlan, plan
from joulie.control.budget.reporting import NodeWatts, group_statuses, statements
from joulie.control.conditions import Statement
from joulie.control.cycle import nodes_in_scope
from joulie.control.plan import Plan
from joulie.model.api import NodeTwin, PowerBudget, PowerBudgetSpec
from joulie.model.api.budget import BudgetGroupStatus, Mode
from joulie.model.kubernetes import ObjectMeta
from joulie.model.names import FORGET_ANNOTATION, PAUSED_ANNOTATION
from joulie.model.snapshot import Snapshot

SHORT_FORM = "POWER_BUDGET_WATTS"  # no object can have this name


class BudgetReport(Struct, frozen=True):
    """One budget with its groups as they stand."""

    budget: PowerBudget
    groups: Sequence[BudgetGroup]
    statuses: Sequence[BudgetGroupStatus]  # one a group
    statements: Sequence[Statement]
    until_s: float | None  # when a window or forecast next changes a limit


class BudgetTurn(Struct, frozen=True):
    """What one turn of the budget loop decided."""

    plan: BudgetPlan
    reports: tuple[BudgetReport, ...]
    members: Sequence[MeasuredNode]


def short_form(watts: float, mode: Mode) -> PowerBudget:
    """The budget that the setting `POWER_BUDGET_WATTS` stands for: all nodes in scope."""
    return PowerBudget(ObjectMeta(SHORT_FORM), PowerBudgetSpec(watts, mode=mode))


def decide_budgets(
    given: BudgetInput,
    budgets: Collection[PowerBudget],
    memory: BudgetMemory,
    readings: Readings,
    *,
    may_raise: bool = True,
) -> tuple[BudgetTurn, BudgetMemory]:
    """The orders that are safe to write now, and the status of every budget. Without `may_raise` nothing goes up."""
    snapshot, now_s = given.snapshot, given.now_s
    in_scope = nodes_in_scope(snapshot.nodes, given.settings.plan)
    grouped: list[tuple[PowerBudget, list[BudgetGroup], list[str]]] = []
    for budget in sorted(budgets, key=lambda each: each.metadata.name):
        nodes = in_scope if budget.spec.node_selector is None else list(snapshot.nodes.values())
        groups, problems = budget_groups(budget, nodes, now_s, readings)
        grouped.append((budget, groups, problems))
    everything = [group for _, groups, _ in grouped for group in groups]
    enforced = [group for group in everything if group.is_enforced]
    forgotten = _forgotten(budgets, snapshot)
    named = {*under_orders(snapshot.twins), *(name for group in everything for name in group.nodes)} - forgotten
    found = members_of(named, _held_by(enforced), {node.name for node in in_scope}, given)
    found = _held_back(found, _paused(grouped))
    result, memory = plan(
        [each.member for each in found],
        {group.name: group.limit for group in enforced},
        _without(memory, forgotten),
        now_s if given.monotonic_s is None else given.monotonic_s,
        may_raise=may_raise,
    )
    return BudgetTurn(result, tuple(_reports(grouped, result, found, given.plan)), found), memory


def _held_by(groups: Iterable[BudgetGroup]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for group in groups:
        for name in group.nodes:
            result.setdefault(name, []).append(group.name)
    return {name: sorted(names) for name, names in result.items()}


def under_orders(twins: Mapping[str, NodeTwin]) -> list[str]:
    """Nodes whose twins carry an order that was not released."""
    return [
        name
        for name, twin in twins.items()
        if twin.spec is not None and twin.spec.budget is not None and not twin.spec.budget.released
    ]


def held_by_orders(nodes: Container[str], twins: Mapping[str, NodeTwin]) -> list[str]:
    """Nodes that exist and whose agents hold to an order, or have not confirmed that they were released.

    Without its twin an agent keeps its caps for good: nothing else can release it.
    """
    result = []
    for name, twin in twins.items():
        order = order_in(twin) if name in nodes else None
        told = confirmation_in(twin) if order is not None else None
        if order is not None and told is not None and not (order.released and told.number == order.number):
            result.append(name)
    return result


def _forgotten(budgets: Collection[PowerBudget], snapshot: Snapshot) -> set[str]:
    """Nodes that are gone and of which a person says that they draw nothing any more."""
    named = [(budget.metadata.annotations or {}).get(FORGET_ANNOTATION, "") for budget in budgets]
    return {name.strip() for names in named for name in names.split(",")} - {"", *snapshot.nodes}


def _without(memory: BudgetMemory, names: Collection[str]) -> BudgetMemory:
    if not names:
        return memory
    members = {name: member for name, member in memory.members.items() if name not in names}
    leaving = {key: since_s for key, since_s in memory.leaving.items() if key[0] not in names}
    return replace(memory, members=members, leaving=leaving)


def _paused(grouped: Iterable[tuple[PowerBudget, list[BudgetGroup], list[str]]]) -> set[str]:
    return {
        name
        for budget, groups, _ in grouped
        if (budget.metadata.annotations or {}).get(PAUSED_ANNOTATION) == "true"
        for group in groups
        for name in group.nodes
    }


def _held_back(found: Sequence[MeasuredNode], paused: Collection[str]) -> list[MeasuredNode]:
    """Nodes of a paused budget rise no further than what is ordered already; cuts go on."""
    return [
        replace(each, member=replace(member, ceiling=member.ceiling.at_most(member.order.caps)))
        if (member := each.member).name in paused and member.order is not None and not member.order.released
        else each
        for each in found
    ]


def _reports(
    grouped: Sequence[tuple[PowerBudget, list[BudgetGroup], list[str]]],
    result: BudgetPlan,
    found: Sequence[MeasuredNode],
    decided: Plan,
) -> list[BudgetReport]:
    capped_w = dict(zip(decided.twins.nodes, decided.twins.columns["capped_w"], strict=True)) if decided.twins else {}
    allowed_w = {each.member.name: _watts(each, capped_w.get(each.member.name, each.max_w)) for each in found}
    drawn_w = {each.member.name: _watts(each, each.devices_w) for each in found if each.devices_w is not None}
    unsure = {each.member.name for each in found if not each.member.envelope.is_known}
    reports = []
    for budget, groups, problems in grouped:
        statuses = group_statuses(groups, result, allowed_w, drawn_w)
        uncertain = sorted(unsure.intersection(name for group in groups for name in group.nodes))
        untils = [group.until_s for group in groups if group.until_s is not None]
        said = statements(budget, groups, statuses, problems, uncertain)
        reports.append(BudgetReport(budget, groups, statuses, said, min(untils, default=None)))
    return reports


def _watts(node: MeasuredNode, devices_w: float) -> NodeWatts:
    """With what a node draws besides when its devices draw this: fans and supplies follow its boards."""
    envelope = node.member.envelope
    boards_w = envelope.top.gpu_w_each * envelope.devices.gpu_w_each
    follows_w = GPU_REST_PER_W * devices_w * boards_w / node.max_w if boards_w else 0.0
    return NodeWatts(devices_w, envelope.rest_w + follows_w)
