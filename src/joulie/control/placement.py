"""Where a pod may go and what every node scores for it, from a snapshot, with reasons (SPEC 6, 11, 13)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from joulie.catalogue.lookup import Catalogue
from joulie.control.board import ScoreBoard
from joulie.control.scoring import NEUTRAL_SCORE, Prepared, ScoreColumns, score
from joulie.model.api import NodeTwinStatus
from joulie.model.names import DRAINING, ECO, PERFORMANCE, STANDARD
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.settings import HardwareSettings, MarginalSettings, ScoreSettings


class Breakdown(Struct, frozen=True, rename="camel"):
    """The terms of one score; `headroom_score` is raw, before its weight."""

    headroom_score: float
    cooling_term: float
    trend_bonus: float
    profile_bonus: float
    pressure_relief: float
    pod_marginal_w: float
    recent_pods_w: float


class NodeScore(Struct, frozen=True):
    """What one node is worth to a pod."""

    node: str
    feasible: bool
    reason: str
    score: float
    breakdown: Breakdown | None


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
) -> ScoreTable:
    """Columns for every node and twin of the snapshot, sorted by name."""
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
    for number, pod in enumerate(snapshot.pods):
        board.put_pod(str(number), None, pod)
    return table_of(board, now_s)


def table_of(board: ScoreBoard, now_s: float) -> ScoreTable:
    """A board as of now."""
    prepared = board.prepared(now_s)
    classes = [board.class_of(row) for row in range(len(board.names))]
    return ScoreTable(board.names, classes, board.nodes, board.statuses, board.columns, prepared)


def score_pod(table: ScoreTable, pod: Pod) -> list[NodeScore]:
    """Every node's score for the pod, infeasible nodes too, sorted by name."""
    result = score(table.prepared, pod.cpu_cores, pod.gpus, pod.workload_class)
    standard = pod.workload_class == STANDARD
    scores: list[NodeScore] = []
    for row, node in enumerate(table.nodes):
        if node is None:
            continue
        refused = rejection(pod.workload_class, table.classes[row])
        breakdown = None
        if table.columns.fresh[row]:
            prepared = table.prepared
            breakdown = Breakdown(
                headroom_score=float(result.headroom[row]),
                cooling_term=float(prepared.cooling_term[row]),
                trend_bonus=float(prepared.trend_bonus[row]) + 0.0,
                profile_bonus=float(prepared.profile_bonus[row]) if standard else 0.0,
                pressure_relief=float(prepared.pressure_relief[row]) + 0.0 if standard else 0.0,
                pod_marginal_w=float(result.marginal_w[row]),
                recent_pods_w=float(table.columns.recent_w[row]),
            )
        reason = refused or _reason(breakdown, table.statuses[row] is not None, table.classes[row])
        scores.append(NodeScore(node.name, refused is None, reason, float(result.score[row]), breakdown))
    scores.sort(key=lambda scored: scored.node)
    return scores


def _reason(breakdown: Breakdown | None, has_twin: bool, node_class: str) -> str:
    if breakdown is None:
        known = "its twin is stale or undated" if has_twin else "it has no twin"
        return f"{known}: neutral score {NEUTRAL_SCORE:g}"
    room = f"{breakdown.headroom_score:.1f} % of its power budget left with the pod's {breakdown.pod_marginal_w:.0f} W"
    return f"{node_class} node, {room}"
