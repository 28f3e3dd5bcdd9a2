"""The whole cluster at a glance: power, states, racks, what is enforced, and what needs attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.overview.findings import Finding, Limits, enforced, findings
from joulie.overview.nodes import NodeView

NO_RACK = ""


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
    racks: tuple[RackView, ...]
    attention: tuple[Finding, ...]


def cluster_view(nodes: Iterable[NodeView], facts: Facts, now_s: float, limits: Limits) -> ClusterView:
    """Sums over the managed nodes; what nobody measured counts as nothing."""
    everything = list(nodes)
    managed = [node for node in everything if node.managed]
    held = [enforced(node, now_s, limits) for node in managed]
    racks: dict[str, list[NodeView]] = {}
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
        racks=tuple(_rack(name, racks[name], facts) for name in sorted(racks, key=_rack_order)),
        attention=tuple(findings(managed, now_s, limits)),
    )


def _rack(name: str, nodes: list[NodeView], facts: Facts) -> RackView:
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


def _states(nodes: Iterable[NodeView]) -> dict[str, int]:
    counted = _count(node.state for node in nodes)
    return {state: counted.get(state, 0) for state in (PERFORMANCE, ECO, DRAINING, UNKNOWN)}


def _count(words: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for word in words:
        counted[word] = counted.get(word, 0) + 1
    return dict(sorted(counted.items()))


def _sum(values: Iterable[float | None]) -> float:
    return math.fsum(value for value in values if value is not None)
