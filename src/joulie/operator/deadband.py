"""When a status must be written: it moved past its deadband, or it would soon count as stale.

See docs/reference/behaviour.md, 'Writing less'.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from joulie.control.conditions import Statement, by_type, written
from joulie.control.placement.board import updated_at_s
from joulie.control.scoring.trend import STEADY_TREND_SCALE, TREND_LIMIT
from joulie.model.api import NodeTwinStatus, PowerMeasurement
from joulie.model.api.results import AGENT_SILENT
from joulie.settings import OperatorSettings

_SCORES = (
    "predicted_power_headroom_score",
    "predicted_cooling_stress_score",
    "predicted_psu_stress_score",
    "hardware_density_score",
)
_EXACT = ("schedulable_class", "effective_cap_state", "estimated_pue")
_WATTS = (
    "measured_node_power_w",
    "cpu_capped_power_w",
    "gpu_capped_power_w",
    "node_capped_power_w",
    "cpu_tdp_w",
    "gpu_tdp_w",
    "node_tdp_w",
)
TREND_BONUS_POINTS = 5.0
_NO_POWER = PowerMeasurement()
OWN_FIELDS = tuple(
    name for name in NodeTwinStatus.__struct_encode_fields__ if name not in ("controlStatus", "conditions")
)


def needs_status_write(
    wanted: NodeTwinStatus,
    there: NodeTwinStatus | None,
    statements: Sequence[Statement],
    node: str,
    settings: OperatorSettings,
    now_s: float,
) -> Literal["moved", "refresh"] | None:
    """Whether and why the status must be written, compared with the one in the cluster."""
    if there is None or moved(wanted, there, settings.status_deadband_pct):
        return "moved"
    conditions = by_type(there.conditions)
    news = [each for each in statements if not each.says_the_same(conditions.get(each.type))]
    if news:  # after an upgrade no twin has any, and a pool falls silent as a whole: such writes are spread out
        urgent = any(each.type in conditions and each.reason != AGENT_SILENT for each in news)
        return "moved" if urgent else "refresh"
    written_s = updated_at_s(there)
    if written_s is None or written_s > now_s or refresh_is_due(node, written_s, now_s, settings):
        return "refresh"
    return None


def moved(wanted: NodeTwinStatus, there: NodeTwinStatus, deadband_pct: float) -> bool:
    """Watts have a deadband relative to the node's maximum, scores one in points, everything else none.

    The trend's deadband is measured by its effect on the score: relative to the maximum, it would hide a trend on a
    large node that decides where pods go.
    """
    if any(getattr(wanted, name) != getattr(there, name) for name in _EXACT):
        return True
    if any(_differ(getattr(wanted, name), getattr(there, name), deadband_pct) for name in _SCORES):
        return True
    now, before = wanted.power_measurement or _NO_POWER, there.power_measurement or _NO_POWER
    if now.source != before.source:
        return True
    if _trend_moved(now.power_trend_w_per_min, before.power_trend_w_per_min):
        return True
    band_w = (now.node_tdp_w or 0.0) * deadband_pct / 100.0
    return any(_differ(getattr(now, name), getattr(before, name), band_w) for name in _WATTS)


def refresh_is_due(node: str, written_s: float, now_s: float, settings: OperatorSettings) -> bool:
    """Each node has its own phase within the interval, so that refreshes are spread evenly.

    What would fall due before the next decision is due now.
    """
    interval_s = settings.twin_refresh_interval_s
    tick_s = settings.decision.plan.reconcile_interval_s
    if now_s - written_s >= interval_s:
        return True
    if now_s - written_s < tick_s / 2:  # written by this tick, or at short intervals by the one before
        return False
    phase_s = zlib.crc32(node.encode()) / 2**32 * interval_s
    since_moment_s = (now_s - phase_s) % interval_s
    return since_moment_s < tick_s


def applied_status(
    wanted: NodeTwinStatus, there: NodeTwinStatus | None, statements: Sequence[Statement], now_s: float
) -> dict[str, Any]:
    """All fields of the operator and its conditions, without `controlStatus`, which the agent owns."""
    status: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(wanted, control_status=None))
    conditions = by_type(there.conditions if there is not None else None)
    return status | {"conditions": written(statements, conditions, now_s)}


def _trend_moved(now: float | None, before: float | None) -> bool:
    if now is None or before is None:
        return now is not before
    return abs(_clamped(now) - _clamped(before)) >= TREND_BONUS_POINTS * STEADY_TREND_SCALE


def _clamped(trend_w_per_min: float) -> float:
    """A trend within the limits of its score term, at the scale of a steady cluster."""
    limit = TREND_LIMIT * STEADY_TREND_SCALE
    return min(max(trend_w_per_min, -limit), limit)


def _differ(now: float | None, before: float | None, band: float) -> bool:
    if now is None or before is None:
        return now is not before
    return abs(now - before) > band
