"""`/debug/scoring`: every node with every term of its score, for programs and for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joulie.control.board import ScoreBoard
from joulie.control.placement import NodeScore, score_pod, table_of
from joulie.control.scoring import CLASS_CODES, NEUTRAL_SCORE
from joulie.model.snapshot import Pod
from joulie.settings import MarginalSettings

_CLASS_NAMES = {code: name for name, code in CLASS_CODES.items()}
_COLUMNS: tuple[tuple[str, Callable[[NodeScore], str]], ...] = (
    ("NODE", lambda scored: scored.node),
    ("SCORE", lambda scored: f"{scored.score:.1f}" if scored.feasible else "-"),
    ("HEADROOM", lambda scored: _term(scored, "headroom_score")),
    ("COOLING", lambda scored: _term(scored, "cooling_term")),
    ("TREND", lambda scored: _term(scored, "trend_bonus")),
    ("PROFILE", lambda scored: _term(scored, "profile_bonus")),
    ("RELIEF", lambda scored: _term(scored, "pressure_relief")),
    ("POD W", lambda scored: _term(scored, "pod_marginal_w")),
    ("RECENT W", lambda scored: _term(scored, "recent_pods_w")),
    ("WHY", lambda scored: scored.reason),
)


def scores_of(board: ScoreBoard, pod: Pod, now_s: float) -> list[NodeScore]:
    """Every node's score for the pod, with its terms."""
    return score_pod(table_of(board, now_s), pod)


def scores_json(board: ScoreBoard, pod: Pod, scores: Sequence[NodeScore]) -> dict[str, Any]:
    """As `joulie score -o json` writes it; besides, if there is any, the power that pods on their way will draw."""
    name = f"{pod.namespace}/{pod.name}"
    shown: dict[str, Any] = {"pod": name, "workloadClass": pod.workload_class, "nodes": scores}
    expected_w = board.columns.expected_w
    if expected_w.any():
        rows = sorted((board.names[row], float(expected_w[row])) for row in expected_w.nonzero()[0])
        shown["expectedPodsW"] = dict(rows)
    return shown


def scores_table(board: ScoreBoard, pod: Pod, scores: Sequence[NodeScore]) -> Iterator[str]:
    """The same for people: the best first, refused nodes last."""
    columns = _COLUMNS
    if board.columns.expected_w.any():
        expected = ("EXPECTED W", lambda scored: f"{board.columns.expected_w[board.index[scored.node]]:.1f}")
        columns = (*_COLUMNS[:-1], expected, _COLUMNS[-1])
    yield f"{pod.namespace}/{pod.name}: {pod.workload_class}, {pod.cpu_cores:g} cores, {pod.gpus:g} GPUs\n"
    ranked = sorted(scores, key=lambda scored: (not scored.feasible, -scored.score, scored.node))
    rows = [[show(scored) for _, show in columns] for scored in ranked]
    yield from _aligned([[title for title, _ in columns], *rows])


def state_json(board: ScoreBoard, marginal: MarginalSettings, now_s: float) -> dict[str, Any]:
    """What every node's score starts from, whatever the pod."""
    prepared, columns = board.prepared(now_s), board.columns
    nodes = []
    for name in sorted(board.index):
        row = board.index[name]
        known = bool(columns.has_power[row])
        nodes.append(
            {
                "nodeName": name,
                "schedulableClass": _CLASS_NAMES[int(columns.class_code[row])],
                "stale": not bool(columns.fresh[row]),
                "headroom": float(prepared.headroom[row]) if columns.fresh[row] else None,
                "coolingStress": float(columns.cooling_stress[row]),
                "measuredPowerW": float(columns.measured_w[row]) if known else None,
                "cappedPowerW": float(columns.capped_w[row]) if known else None,
                "recentPodsW": float(columns.recent_w[row]),
                "expectedPodsW": float(columns.expected_w[row]),
                "powerTrendWPerMin": float(columns.trend_w_per_min[row]),
                "cpuMaxWattsTotal": float(columns.cpu_max_w[row]),
                "gpuMaxWattsTotal": float(columns.gpu_max_w[row]),
            }
        )
    coefficients = {
        "cpuUtilCoeff": marginal.cpu_coeff,
        "gpuUtilCoeffStandard": marginal.gpu_coeff_standard,
        "gpuUtilCoeffPerformance": marginal.gpu_coeff_performance,
    }
    return {
        "coefficients": coefficients,
        "perfPressure": prepared.performance_pressure,
        "clusterTrendWPerMin": prepared.cluster_trend_w_per_min,
        "neutralScore": NEUTRAL_SCORE,
        "nodes": nodes,
    }


def state_table(state: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    yield f"pressure {state['perfPressure']:.1f}, trend {state['clusterTrendWPerMin']:+.0f} W/min; "
    yield "for a pod: /debug/scoring?pod=NAMESPACE/NAME\n"
    nodes = state["nodes"]
    titles = list(nodes[0]) if nodes else []
    yield from _aligned([titles, *([_shown(value) for value in node.values()] for node in nodes)])


def _term(scored: NodeScore, field: str) -> str:
    return "-" if scored.breakdown is None else f"{getattr(scored.breakdown, field):.1f}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
