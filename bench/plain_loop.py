"""The score formula node by node on plain Python floats: the yardstick for the array version."""

from __future__ import annotations

from typing import NamedTuple

from joulie.control.placement.score_table import ScoreTable
from joulie.settings import MarginalSettings


class PlainNode(NamedTuple):
    """One node's numbers as floats."""

    capped_w: float
    measured_w: float
    recent_w: float
    cooling_stress: float
    trend_w_per_min: float
    pue: float
    cpu_max_w: float
    gpu_max_w: float
    cores: float
    gpus: float
    is_eco: bool
    is_performance: bool


def plain_nodes(table: ScoreTable) -> list[PlainNode]:
    columns = table.columns
    cores = [1 / value if value else 0.0 for value in columns.inverse_cores.tolist()]
    gpus = [1 / value if value else 0.0 for value in columns.inverse_gpus.tolist()]
    return [
        PlainNode(*numbers)
        for numbers in zip(
            columns.capped_w.tolist(),
            columns.measured_w.tolist(),
            columns.recent_w.tolist(),
            columns.cooling_stress.tolist(),
            columns.trend_w_per_min.tolist(),
            columns.pue.tolist(),
            columns.cpu_max_w.tolist(),
            columns.gpu_max_w.tolist(),
            cores,
            gpus,
            [name == "eco" for name in table.classes],
            [name == "performance" for name in table.classes],
            strict=True,
        )
    ]


def plain_scores(
    nodes: list[PlainNode], table: ScoreTable, settings: MarginalSettings, cpu_cores: float, gpus: float
) -> list[float]:
    """Scores of a standard pod, as one would write it without arrays."""
    pressure = table.prepared.cluster.performance_pressure
    trend_scale = 2.0 if abs(table.prepared.cluster.trend_w_per_min) > 500 else 6.0
    scores = []
    for (
        capped_w, measured_w, recent_w, stress, trend, pue, cpu_max_w, gpu_max_w, node_cores, node_gpus, eco, perf
    ) in nodes:  # fmt: skip
        marginal_w = settings.cpu_coeff * min(1.0, cpu_cores / node_cores) * cpu_max_w
        if node_gpus:
            marginal_w += settings.gpu_coeff_standard * min(1.0, gpus / node_gpus) * gpu_max_w
        marginal_w *= max(1.0, pue)
        headroom = (capped_w - (measured_w + recent_w + marginal_w)) / capped_w * 100.0
        total = headroom * 0.7 + (100.0 - stress) * 0.15 - max(-25.0, min(25.0, trend / trend_scale))
        if eco:
            total += 10.0
        elif perf:
            total -= pressure * 0.3
        scores.append(max(0.0, min(100.0, total)))
    return scores
