"""Where a pod may go and what every node scores for it, from a snapshot, with reasons.

Rules: docs/reference/behaviour.md, 'Score' and 'Filter'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from joulie.catalogue.lookup import Catalogue
from joulie.control.placement.board import ScoreBoard
from joulie.control.scoring import (
    CLASS_NAMES,
    NEUTRAL_SCORE,
    POD_TERMS,
    TERMS,
    Prepared,
    ScoreColumns,
    Scores,
    group_room,
    score,
)
from joulie.model.api import NodeTwinStatus, PowerBudget
from joulie.model.names import DRAINING, ECO, PERFORMANCE, STANDARD
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.settings import HardwareSettings, MarginalSettings, ScoreSettings

# What a breakdown holds besides the terms of the score, by the names that it has in JSON.
HEADROOM, POD_W, RECENT_W = "headroomScore", "podMarginalW", "recentPodsW"
Breakdown = dict[str, float]


class NodeScore(Struct, frozen=True):
    """What one node is worth to a pod."""

    node: str
    feasible: bool
    reason: str
    score: float
    breakdown: Breakdown | None  # headroom is raw, before its weight; None where nothing is known


class ScoreTable(Struct, frozen=True):
    """All nodes and twins of a snapshot, ready to score pods."""

    rows: Sequence[str]  # nodes, and twins whose node is not known: they count in the cluster's pressure and trend
    classes: Sequence[str]
    nodes: Sequence[Node | None]
    statuses: Sequence[NodeTwinStatus | None]  # None: no twin
    columns: ScoreColumns
    prepared: Prepared


def rejection(workload_class: str, node_class: str) -> str | None:
    """Why the filter keeps a pod off a node, or None: performance pods stay off eco and draining nodes."""
    if workload_class == PERFORMANCE and node_class in (ECO, DRAINING):
        return f"node is {node_class}, and the pod's class is performance"
    return None


def score_table(
    snapshot: Snapshot,
    settings: ScoreSettings,
    marginal: MarginalSettings,
    hardware: HardwareSettings,
    catalogue: Catalogue,
    now_s: float,
    budgets: Iterable[PowerBudget] = (),
) -> ScoreTable:
    """Columns for every node and twin of the snapshot, sorted by name; budgets with what their groups have left."""
    rows = sorted(snapshot.nodes.keys() | snapshot.twins.keys())
    board = ScoreBoard(settings, marginal, hardware, catalogue, rows=len(rows))
    for name, found in snapshot.hardware.items():
        board.put_hardware(name, found)
    for name in rows:
        node, twin = snapshot.nodes.get(name), snapshot.twins.get(name)
        if node is not None:
            board.put_node(name, node)
        if twin is not None:
            board.put_twin(name, twin.status or NodeTwinStatus())
            board.put_orders(name, twin)
    for number, pod in enumerate(snapshot.pods):
        board.put_pod(str(number), None, pod)
    for budget in budgets:
        board.put_budget(budget.metadata.name, budget)
    return table_of(board, now_s)


def table_of(board: ScoreBoard, now_s: float) -> ScoreTable:
    """A board as of now, until it changes."""
    prepared = board.prepared(now_s)
    classes = [CLASS_NAMES[code] for code in board.columns.class_code[: len(board.names)].tolist()]
    return ScoreTable(board.names, classes, board.nodes, board.statuses, board.columns, prepared)


def score_pod(table: ScoreTable, pod: Pod) -> list[NodeScore]:
    """Every node's score for the pod, infeasible nodes too, sorted by name."""
    return sorted(score_rows(table, pod), key=lambda scored: scored.node)


def score_rows(table: ScoreTable, pod: Pod) -> Iterator[NodeScore]:
    """The same one by one, in the order of the rows."""
    result = score(table.prepared, pod.cpu_cores, pod.gpus, pod.workload_class)
    standard = pod.workload_class == STANDARD
    for row, node in enumerate(table.nodes):
        if node is None:
            continue
        refused = rejection(pod.workload_class, table.classes[row])
        breakdown = _breakdown(table, result, row, standard) if table.columns.fresh[row] else None
        reason = refused or _reason(breakdown, table.statuses[row] is not None, table.classes[row])
        if refused is None and (short := shortage(table, row, breakdown)):
            reason += f"; {short}"
        yield NodeScore(node.name, refused is None, reason, float(result.score[row]), breakdown)


def shortage(table: ScoreTable, row: int, breakdown: Breakdown | None) -> str:
    """Which group of budgets has too little room for the pod, in words; empty where all have enough."""
    found = table.prepared.rooms.narrowest(row) if table.prepared.rooms is not None else None
    if found is None or breakdown is None or not breakdown.get(group_room.TERM.key):
        return ""
    (group, room_w), cooling = found, max(1.0, float(table.columns.pue[row]))
    pod_w = breakdown[POD_W] / cooling  # a group limits what nodes draw
    return group_room.TERM.words.format(group=group, room=f"{max(room_w, 0.0):,.0f} W", pod=f"{pod_w:,.0f} W")


def _breakdown(table: ScoreTable, result: Scores, row: int, standard: bool) -> Breakdown:
    of_terms = {
        term.key: float(points[row]) + 0.0 if standard or not term.standard_only else 0.0
        for term, points in zip(TERMS, table.prepared.terms, strict=True)
    }
    of_pod_terms = {term.key: float(points[row]) for term, points in zip(POD_TERMS, result.pod_terms, strict=False)}
    return {
        HEADROOM: float(result.headroom[row]),
        **of_terms,
        **of_pod_terms,
        POD_W: float(result.marginal_w[row]),
        RECENT_W: float(table.columns.recent_w[row]),
    }


def _reason(breakdown: Breakdown | None, has_twin: bool, node_class: str) -> str:
    if breakdown is None:
        known = "its twin is stale or undated" if has_twin else "it has no twin"
        return f"{known}: neutral score {NEUTRAL_SCORE:g}"
    room = f"{breakdown[HEADROOM]:.1f} % of its power budget left with the pod's {breakdown[POD_W]:.0f} W"
    return f"{node_class} node, {room}"
