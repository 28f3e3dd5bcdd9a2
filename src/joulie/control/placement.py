"""Where a pod may go and what every node scores for it, from a snapshot, with reasons (SPEC 6, 11, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from joulie.catalogue.lookup import Catalogue
from joulie.control.scoring import CLASS_CODES, NEUTRAL_SCORE, Numbers, Prepared, ScoreColumns, prepare, score
from joulie.control.survey import BoundPods, MachineColumns
from joulie.model.api import NodeTwin, NodeTwinStatus
from joulie.model.names import DRAINING, ECO, PERFORMANCE, STANDARD, UNKNOWN
from joulie.model.rfc3339 import parse_time_s
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.physics.hardware import machine_of
from joulie.settings import HardwareSettings, MarginalSettings, ScoreSettings

_NO_STATUS = NodeTwinStatus()


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
    columns: ScoreColumns
    prepared: Prepared


def schedulable_class(status: NodeTwinStatus | None, labels: Mapping[str, str], profile_label: str) -> str:
    """The twin's word at any age; where it says nothing, the label's."""
    said = status.schedulable_class if status else None
    if said in (PERFORMANCE, ECO, DRAINING):
        return said
    labelled = labels.get(profile_label)
    return labelled if labelled in (PERFORMANCE, ECO) else UNKNOWN


def rejection(workload_class: str, node_class: str) -> str | None:
    """Why the filter keeps a pod off a node, or None: performance pods stay off eco and draining nodes."""
    if workload_class == PERFORMANCE and node_class in (ECO, DRAINING):
        return f"node is {node_class}, and the pod's class is performance"
    return None


def updated_at_s(status: NodeTwinStatus | None) -> float | None:
    """When the twin was written; None where it does not say so readably."""
    if status is None or status.last_updated is None:
        return None
    try:
        return parse_time_s(status.last_updated)
    except ValueError:
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
    nodes = [snapshot.nodes.get(name) or Node(name, {}) for name in rows]
    statuses = [_status(snapshot.twins.get(name)) for name in rows]
    machines = [machine_of(node, snapshot.hardware.get(node.name), hardware, catalogue) for node in nodes]
    machine_columns = MachineColumns.of(machines)
    updated = [updated_at_s(status) for status in statuses]
    oldest_s = now_s - settings.twin_staleness_s
    fresh = [at is not None and at >= oldest_s for at in updated]
    classes = [
        schedulable_class(status, node.labels, settings.power_profile_label)
        for node, status in zip(nodes, statuses, strict=True)
    ]
    powers = [_power(status) for status in statuses]
    columns = ScoreColumns(
        fresh=np.array(fresh, dtype=np.bool_),
        class_code=np.array([CLASS_CODES[name] for name in classes], dtype=np.int8),
        has_power=np.array([known is not None for known in powers], dtype=np.bool_),
        capped_w=np.array([known[0] if known else 0.0 for known in powers], dtype=np.float64),
        measured_w=np.array([known[1] if known else 0.0 for known in powers], dtype=np.float64),
        recent_w=np.zeros(len(rows)),
        predicted_headroom=np.array([status.predicted_power_headroom_score or 0.0 for status in statuses]),
        cooling_stress=np.array([status.predicted_cooling_stress_score or 0.0 for status in statuses]),
        trend_w_per_min=np.array([_trend(status) for status in statuses], dtype=np.float64),
        pue=np.array([status.estimated_pue or 1.0 for status in statuses], dtype=np.float64),
        cpu_max_w=machine_columns.cpu_max_w,
        gpu_max_w=machine_columns.gpu_max_w,
        inverse_cores=machine_columns.inverse_cores,
        inverse_gpus=machine_columns.inverse_gpus,
    )
    if settings.count_recent_pods:
        columns.recent_w = _recent_w(snapshot, rows, updated, machine_columns, marginal)
    return ScoreTable(rows, classes, columns, prepare(columns, marginal))


def score_pod(table: ScoreTable, snapshot: Snapshot, pod: Pod) -> list[NodeScore]:
    """Every node's score for the pod, infeasible nodes too, sorted by name."""
    result = score(table.prepared, pod.cpu_cores, pod.gpus, pod.workload_class)
    standard = pod.workload_class == STANDARD
    scores: list[NodeScore] = []
    for row, name in enumerate(table.rows):
        if name not in snapshot.nodes:
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
        reason = refused or _reason(breakdown, name in snapshot.twins, table.classes[row])
        scores.append(NodeScore(name, refused is None, reason, float(result.score[row]), breakdown))
    return scores


def _reason(breakdown: Breakdown | None, has_twin: bool, node_class: str) -> str:
    if breakdown is None:
        known = "its twin is stale or undated" if has_twin else "it has no twin"
        return f"{known}: neutral score {NEUTRAL_SCORE:g}"
    room = f"{breakdown.headroom_score:.1f} % of its power budget left with the pod's {breakdown.pod_marginal_w:.0f} W"
    return f"{node_class} node, {room}"


def _status(twin: NodeTwin | None) -> NodeTwinStatus:
    return (twin.status if twin else None) or _NO_STATUS


def _power(status: NodeTwinStatus) -> tuple[float, float] | None:
    """Capped and measured watts, where both are known and the budget is not nothing."""
    power = status.power_measurement
    if power is None or power.measured_node_power_w is None or not power.node_capped_power_w:
        return None
    return power.node_capped_power_w, power.measured_node_power_w


def _trend(status: NodeTwinStatus) -> float:
    power = status.power_measurement
    return (power.power_trend_w_per_min or 0.0) if power else 0.0


def _recent_w(
    snapshot: Snapshot,
    rows: Sequence[str],
    updated: Sequence[float | None],
    columns: MachineColumns,
    marginal: MarginalSettings,
) -> Numbers:
    """What pods add that were bound when the twin had already been written, by node."""
    index = {name: row for row, name in enumerate(rows)}
    recent = BoundPods()
    for pod in snapshot.pods:
        row = index.get(pod.node, -1) if pod.node and not pod.finished else -1
        since = updated[row] if row >= 0 else None
        if since is not None and pod.scheduled_at_s is not None and pod.scheduled_at_s >= since:
            recent.add(row, pod)
    return recent.added_power_w(columns, marginal)
