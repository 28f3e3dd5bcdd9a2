"""`/debug/scoring`: every node with every term of its score, for programs and for people.

Responses are rendered from a copy of the board in chunks of some nodes, so that other requests run in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict

from joulie.control.placement.board import ScoreBoard
from joulie.control.placement.score_table import HEADROOM, POD_W, RECENT_W, NodeScore, ScoreTable, score_rows, table_of
from joulie.control.scoring import NEUTRAL_SCORE, POD_TERMS, TERMS, ScoreColumns, base_score
from joulie.model.api import NodeTwinStatus
from joulie.model.snapshot import Pod
from joulie.physics.hardware import Machine
from joulie.settings import MarginalSettings

T = TypeVar("T")
NODES_AT_ONCE = 50  # about half a millisecond, after which pending requests are answered


def _number(key: str) -> Callable[[NodeScore], str]:
    return lambda scored: "-" if scored.breakdown is None else f"{scored.breakdown[key]:.1f}"


_POD_TERMS = tuple((term.name.upper(), _number(term.key)) for term in POD_TERMS)


_COLUMNS: tuple[tuple[str, Callable[[NodeScore], str]], ...] = (
    ("NODE", lambda scored: scored.node),
    ("SCORE", lambda scored: f"{scored.score:.1f}" if scored.feasible else "-"),
    ("HEADROOM", _number(HEADROOM)),
    *((term.name.upper(), _number(term.key)) for term in TERMS),
    ("POD W", _number(POD_W)),
    ("RECENT W", _number(RECENT_W)),
    ("WHY", lambda scored: scored.reason),
)


class BoardCopy(NamedTuple):
    """A board at one moment, unaffected by changes between the chunks of a response."""

    table: ScoreTable
    machines: dict[int, Machine]

    @classmethod
    def of(cls, board: ScoreBoard, now_s: float) -> BoardCopy:
        rows, classes, nodes, statuses, columns, prepared = msgspec.structs.astuple(table_of(board, now_s))
        columns = ScoreColumns(**{name: column.copy() for name, column in asdict(columns).items()})
        table = ScoreTable(list(rows), classes, list(nodes), list(statuses), columns, deepcopy(prepared))
        return cls(table, dict(board.machines))


def scores_json(copy: BoardCopy, pod: Pod) -> Iterator[bytes]:
    """Like `joulie score -o json`, plus the expected power of pending pods, if any."""
    named = msgspec.json.encode({"pod": f"{pod.namespace}/{pod.name}", "workloadClass": pod.workload_class})
    yield named[:-1] + b',"nodes":['
    scores: list[NodeScore] = []
    for some in _some(score_rows(copy.table, pod)):
        scores += some
        yield b""
    scores.sort(key=lambda scored: scored.node)
    yield from _encoded(scores)
    expected_w = copy.table.columns.expected_w
    expected = sorted((copy.table.rows[row], float(expected_w[row])) for row in expected_w.nonzero()[0].tolist())
    yield b'],"expectedPodsW":%b}' % msgspec.json.encode(dict(expected)) if expected else b"]}"


def scores_table(copy: BoardCopy, pod: Pod) -> Iterator[bytes]:
    """The same for people: best nodes first, rejected ones last."""
    columns, expected_w = list(_COLUMNS), copy.table.columns.expected_w
    if copy.table.prepared.rooms is not None:
        columns[-3:-3] = _POD_TERMS
    if expected_w.any():
        by_name = dict(zip(copy.table.rows, expected_w.tolist(), strict=False))
        columns.insert(-1, ("EXPECTED W", lambda scored: f"{by_name[scored.node]:.1f}"))
    yield f"{pod.namespace}/{pod.name}: {pod.workload_class}, {pod.cpu_cores:g} cores, {pod.gpus:g} GPUs\n".encode()
    ranked: list[tuple[tuple[bool, float, str], list[str]]] = []
    for some in _some(score_rows(copy.table, pod)):
        ranked += (
            ((not scored.feasible, -scored.score, scored.node), [show(scored) for _, show in columns])
            for scored in some
        )
        yield b""
    ranked.sort()
    yield from _aligned([[title for title, _ in columns], *(row for _, row in ranked)])


def state_json(copy: BoardCopy, marginal: MarginalSettings) -> Iterator[bytes]:
    """The inputs of every node's score that do not depend on a pod."""
    prepared = copy.table.prepared
    coefficients = {
        "cpuUtilCoeff": marginal.cpu_coeff,
        "gpuUtilCoeffStandard": marginal.gpu_coeff_standard,
        "gpuUtilCoeffPerformance": marginal.gpu_coeff_performance,
    }
    head = {
        "coefficients": coefficients,
        "perfPressure": prepared.cluster.performance_pressure,
        "clusterTrendWPerMin": prepared.cluster.trend_w_per_min,
        "neutralScore": NEUTRAL_SCORE,
    }
    yield msgspec.json.encode(head)[:-1] + b',"nodes":['
    yield from _encoded(_node_states(copy))
    yield b"]}"


def state_table(copy: BoardCopy) -> Iterator[bytes]:
    """The same for people."""
    prepared = copy.table.prepared
    pressure, trend = prepared.cluster.performance_pressure, prepared.cluster.trend_w_per_min
    yield f"pressure {pressure:.1f}, trend {trend:+.0f} W/min; for a pod: /debug/scoring?pod=NAMESPACE/NAME\n".encode()
    rows: list[Sequence[str]] = []
    for some in _some(_node_states(copy)):
        rows = rows or [list(some[0])]
        rows += ([_shown(value) for value in state.values()] for state in some)
        yield b""
    yield from _aligned(rows)


def _node_states(copy: BoardCopy) -> Iterator[dict[str, Any]]:
    table, columns, prepared = copy.table, copy.table.columns, copy.table.prepared
    base_scores = base_score(prepared)
    for name, row in sorted((name, row) for row, name in enumerate(table.rows) if name):
        machine, status = copy.machines[row], table.statuses[row]
        known, fresh = bool(columns.has_power[row]), bool(columns.fresh[row])
        yield {
            "nodeName": name,
            "schedulableClass": table.classes[row],
            "headroom": float(prepared.headroom[row]) if fresh else None,
            "coolingStress": float(columns.cooling_stress[row]),
            "measuredPowerW": float(columns.measured_w[row]) if known else None,
            "cappedPowerW": float(columns.capped_w[row]) if known else None,
            "nodeTdpW": _tdp_w(status, machine),
            "powerTrendWPerMin": float(columns.trend_w_per_min[row]),
            "baseScore": float(base_scores[row]),
            "cpuTotalCores": _whole(machine.cores),
            "cpuMaxWattsTotal": machine.cpu_max_w,
            "gpuCount": _whole(machine.gpu_count),
            "gpuMaxWattsPerGpu": machine.gpu_max_w_each,
            "hasGpu": machine.gpu_count > 0,
            "stale": not fresh,
            "recentPodsW": float(columns.recent_w[row]),
            "expectedPodsW": float(columns.expected_w[row]),
            "gpuMaxWattsTotal": machine.gpu_max_w,
            **_narrowest(table, row),
        }


def _narrowest(table: ScoreTable, row: int) -> dict[str, Any]:
    """The group of budgets that has the least room for this node; nothing without budgets."""
    if table.prepared.rooms is None:
        return {}
    group, room_w = table.prepared.rooms.narrowest(row) or (None, None)
    return {"narrowestGroup": group, "groupRoomW": room_w}


def _tdp_w(status: NodeTwinStatus | None, machine: Machine) -> float:
    """The twin's value, or the maximum of the hardware."""
    power = status.power_measurement if status else None
    return power.node_tdp_w if power is not None and power.node_tdp_w is not None else machine.max_w


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _encoded(values: Iterable[object]) -> Iterator[bytes]:
    comma = b""
    for some in _some(values):
        yield comma + msgspec.json.encode(some)[1:-1]
        comma = b","


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[bytes]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for some in _some(rows):
        lines = (
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
            for row in some
        )
        yield "".join(lines).encode()


def _some(values: Iterable[T]) -> Iterator[list[T]]:
    left = iter(values)
    while some := list(islice(left, NODES_AT_ONCE)):
        yield some
