"""The whole cluster at a glance: power, states, racks, what is enforced, and what needs attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from joulie.control.survey import DemandByClass
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.overview.budget_findings import budget_findings
from joulie.overview.budgets import BudgetView, GroupView
from joulie.overview.findings import Finding, FindingThresholds, enforced, findings, order
from joulie.overview.nodes import NodeOverview

NO_RACK = ""
NO_PODS = DemandByClass()


class Facts(Struct, frozen=True, rename="camel"):
    """What the cluster's objects do not say; None: not known."""

    cluster: str = ""
    leader: str = ""
    policy: str = ""
    budget_w: float = 0.0  # 0: none
    rack_capacity_w: float = 50_000.0
    ambient_c: float | None = None
    zone_ambient_c: Mapping[str, float] = {}
    pue: float | None = None
    notes: tuple[str, ...] = ()  # what a demo wants to say
    selector: str = ""  # which nodes are managed


class RackView(Struct, frozen=True, rename="camel"):
    """The managed nodes with one rack label; `name` is empty for those without."""

    name: str
    nodes: tuple[str, ...]
    power_w: float
    capacity_w: float
    states: Mapping[str, int]


class ClusterView(Struct, frozen=True, rename="camel"):
    """Managed nodes only, but for `unmanaged`."""

    now_s: float
    facts: Facts
    nodes: int
    unmanaged: int
    power_w: float
    capped_w: float
    max_w: float
    states: Mapping[str, int]
    sources: Mapping[str, int]  # which telemetry speaks, for how many nodes
    asked: int  # nodes of which a cap is wanted
    enforced: int
    pods: DemandByClass  # what pods of the whole cluster ask of nodes
    racks: tuple[RackView, ...]
    attention: tuple[Finding, ...]
    budgets: tuple[BudgetView, ...] = ()

    @property
    def tightest(self) -> GroupView | None:
        """Of the groups that take in all managed nodes, the one with the lowest limit."""
        whole = [group for one in self.budgets for group in one.groups if group.nodes >= self.nodes > 0]
        return min(whole, key=lambda group: (group.limit_w, group.name), default=None)


def cluster_view(
    nodes: Iterable[NodeOverview],
    facts: Facts,
    now_s: float,
    limits: FindingThresholds,
    pods: DemandByClass = NO_PODS,
    budgets: tuple[BudgetView, ...] = (),
) -> ClusterView:
    """Sums over the managed nodes; what was not measured counts as nothing."""
    everything = list(nodes)
    managed = [node for node in everything if node.managed]
    held = [enforced(node, now_s, limits) for node in managed]
    racks: dict[str, list[NodeOverview]] = {}
    for node in managed:
        racks.setdefault(node.rack, []).append(node)
    pue = facts.pue if facts.pue is not None else next((n.pue for n in managed if n.pue is not None), None)
    return ClusterView(
        now_s=now_s,
        facts=replace(facts, pue=pue),
        nodes=len(managed),
        unmanaged=len(everything) - len(managed),
        power_w=_sum(node.power_w for node in managed),
        capped_w=_sum(node.capped_w for node in managed),
        max_w=_sum(node.max_w for node in managed),
        states=_states(managed),
        sources=_count(node.power_source or "none" for node in managed),
        asked=sum(answer != "unasked" for answer in held),
        enforced=sum(answer == "yes" for answer in held),
        pods=pods,
        racks=tuple(_rack(name, racks[name], facts) for name in sorted(racks, key=_rack_order)),
        attention=tuple(sorted(_attention(managed, budgets, now_s, limits), key=order)),
        budgets=budgets,
    )


def _attention(
    nodes: list[NodeOverview], budgets: tuple[BudgetView, ...], now_s: float, limits: FindingThresholds
) -> Iterator[Finding]:
    """Hints are for `doctor`."""
    yield from findings(nodes, now_s, limits)
    yield from (one for one in budget_findings(budgets) if one.severity != "hint")


def _rack(name: str, nodes: list[NodeOverview], facts: Facts) -> RackView:
    return RackView(
        name,
        tuple(node.name for node in nodes),
        _sum(node.power_w for node in nodes),
        facts.rack_capacity_w,
        _states(nodes),
    )


def _rack_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """rack-2 before rack-10; nodes without a rack last."""
    parts = [
        (int(digits), "") if digits.isdecimal() else (-1, digits)
        for digits in "".join(c if c.isdecimal() else f"\0{c}\0" for c in name).split("\0")
        if digits
    ]
    return name == NO_RACK, parts


def _states(nodes: Iterable[NodeOverview]) -> dict[str, int]:
    counted = _count(node.state for node in nodes)
    return {state: counted.get(state, 0) for state in (PERFORMANCE, ECO, DRAINING, UNKNOWN)}


def _count(words: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for word in words:
        counted[word] = counted.get(word, 0) + 1
    return dict(sorted(counted.items()))


def _sum(values: Iterable[float | None]) -> float:
    return math.fsum(value for value in values if value is not None)
