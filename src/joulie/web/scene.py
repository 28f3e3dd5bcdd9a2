"""The nodes as the page draws them: views made anew only where something changed, and columns for the heat map."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from joulie.control.pins import pins_in_force
from joulie.model.api import PowerBudget
from joulie.model.snapshot import Node, Pin, Snapshot
from joulie.overview.budgets import budget_views
from joulie.overview.findings import Finding, FindingThresholds, enforced
from joulie.overview.nodes import MANAGED, NodeOverview, PodCounts, Scope, node_view, pod_counts, scopes_of
from joulie.overview.summary import ClusterView, Facts, cluster_view
from joulie.settings import PlanSettings

NO_PODS = PodCounts({}, {})
COUNT_PODS_EVERY_S = 5.0  # a large cluster has many of them, and no tile shows them
SEVERITIES = {"warning": 1, "fault": 2}

Columns = dict[str, list[Any]]
Changes = dict[str, tuple[list[int], list[Any]]]  # by column: rows and their new values


class Tile(Struct, frozen=True, rename="camel"):
    """What the heat map needs of a managed node."""

    name: str
    rack: str
    zone: str
    hardware: str
    gpus: int
    cordoned: bool
    state: str
    power_w: float | None
    capped_w: float | None
    max_w: float | None
    headroom: float | None
    cooling_stress: float | None
    enforced: str
    pin: str  # the profile it is pinned to
    pin_waits: bool
    fault: int  # 0 none, 1 a warning, 2 a fault


COLUMNS = Tile.__struct_encode_fields__


class Scene:
    """What was seen last. The clock of the cluster is told; a demo's may run faster than ours."""

    def __init__(self, settings: PlanSettings, limits: FindingThresholds) -> None:
        self._settings, self.limits = settings, limits
        self.views: dict[str, NodeOverview] = {}  # every node, sorted by name
        self.pins: Mapping[str, Pin] = {}  # in force, by node
        self.cluster: ClusterView = cluster_view((), Facts(), 0.0, limits)
        self.names: list[str] = []  # of managed nodes, by row
        self.columns: Columns = columns_of([])
        self._row_of: dict[str, int] = {}
        self._made_from: dict[str, tuple[object, ...]] = {}
        self._nodes: dict[str, Node] = {}
        self._scopes: dict[str, Scope] = {}
        self._counts, self._counted_at_s = NO_PODS, float("-inf")
        self._worst: dict[str, int] = {}  # by node with findings: the gravest

    def look(
        self, snapshot: Snapshot, facts: Facts, now_s: float, budgets: Iterable[PowerBudget] = ()
    ) -> Changes | None:
        """What changed in the columns since the last look; None: rows came or went, so everything did."""
        if time.monotonic() - self._counted_at_s > COUNT_PODS_EVERY_S:
            self._counts, self._counted_at_s = pod_counts(snapshot, self._settings), time.monotonic()
        seen_anew = self._make_views(snapshot, now_s)
        names = [name for name, view in self.views.items() if view.managed]
        limits = budget_views(budgets, snapshot.nodes, names)
        self.cluster = cluster_view(self.views.values(), facts, now_s, self.limits, self._counts.demand, limits)
        worst = gravest(self.cluster.attention)
        if names != self.names:
            self.names, self._worst = names, worst
            self._row_of = {name: row for row, name in enumerate(names)}
            self.columns = columns_of([self._tile(self.views[name], worst, now_s) for name in names])
            return None
        before, self._worst = self._worst, worst
        turned = {name for name in before.keys() | worst.keys() if before.get(name) != worst.get(name)}
        return self._change_rows(sorted(row for name in seen_anew | turned if (row := self._row_of.get(name, -1)) >= 0))

    def _make_views(self, snapshot: Snapshot, now_s: float) -> set[str]:
        """Bring the views up to date; the nodes whose view is another one now."""
        nodes, twins, hardware = snapshot.nodes, snapshot.twins, snapshot.hardware
        moved = {name: node for name, node in nodes.items() if self._nodes.get(name) is not node}
        self._nodes.update(moved)
        self._scopes.update(scopes_of(Snapshot(moved), self._settings))  # depends on the node alone
        gone = self.views.keys() - nodes.keys()
        for name in gone:
            del self._nodes[name], self._scopes[name], self._made_from[name], self.views[name]
        managed = {name for name, scope in self._scopes.items() if scope in MANAGED}
        self.pins, _ = pins_in_force(snapshot.pins, nodes, managed, now_s)
        counts, made_from, changed = self._counts, self._made_from, set()
        for name, node in nodes.items():
            pods = counts.all.get(name), counts.performance.get(name)
            parts = (node, twins.get(name), hardware.get(name), self.pins.get(name), *pods)
            if made_from.get(name) != parts:  # compares what is the same object at once
                made_from[name] = parts
                self.views[name] = node_view(node, self._scopes[name], *parts[1:4], counts)
                changed.add(name)
        if gone or (changed and list(self.views) != sorted(self.views)):
            self.views = dict(sorted(self.views.items()))
        return changed | gone

    def _change_rows(self, rows: list[int]) -> Changes:
        changes: Changes = {}
        for row in rows:
            new = self._tile(self.views[self.names[row]], self._worst, self.cluster.now_s)
            for column, value in zip(COLUMNS, astuple(new), strict=True):
                if self.columns[column][row] != value:
                    self.columns[column][row] = value
                    at, values = changes.setdefault(column, ([], []))
                    at.append(row)
                    values.append(value)
        return changes

    def _tile(self, view: NodeOverview, worst: Mapping[str, int], now_s: float) -> Tile:
        return Tile(
            name=view.name,
            rack=view.rack,
            zone=view.zone,
            hardware=view.hardware,
            gpus=view.gpus,
            cordoned=view.scope == "cordoned",
            state=view.state,
            power_w=_rounded(view.power_w),
            capped_w=_rounded(view.capped_w),
            max_w=_rounded(view.max_w),
            headroom=_rounded(view.headroom),
            cooling_stress=_rounded(view.cooling_stress),
            enforced=enforced(view, now_s, self.limits),
            pin=view.pin_profile,
            pin_waits=view.pin_waits,
            fault=worst.get(view.name, 0),
        )


def columns_of(tiles: list[Tile]) -> Columns:
    """Tiles turned into columns, each there even without tiles."""
    rows = [astuple(tile) for tile in tiles]
    return {column: [row[number] for row in rows] for number, column in enumerate(COLUMNS)}


def gravest(found: tuple[Finding, ...]) -> dict[str, int]:
    """The gravest finding of each node that has one: 1 a warning, 2 a fault."""
    worst: dict[str, int] = {}
    for one in found:
        worst[one.node] = max(worst.get(one.node, 0), SEVERITIES[one.severity])
    return worst


def _rounded(value: float | None) -> float | None:
    """As exact as a tile can show: what moves less is not sent."""
    return None if value is None else round(value, 1)
