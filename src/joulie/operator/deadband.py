"""When a status is worth a write: it moved past its deadband, or its readers would soon call it stale (SPEC 5, 13)."""

from __future__ import annotations

import zlib
from typing import Any, Literal

from joulie.cluster.merging import merge_patch
from joulie.control.board import updated_at_s
from joulie.model.api import NodeTwinStatus, PowerMeasurement
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
    "power_trend_w_per_min",
)
_NO_POWER = PowerMeasurement()


def needs_status_write(
    wanted: NodeTwinStatus, there: NodeTwinStatus | None, node: str, settings: OperatorSettings, now_s: float
) -> Literal["moved", "refresh"] | None:
    """Whether and why the status must be written, compared with what was last written."""
    if there is None or moved(wanted, there, settings.status_deadband_pct):
        return "moved"
    written_s = updated_at_s(there)
    if written_s is None or written_s > now_s or refresh_is_due(node, written_s, now_s, settings):
        return "refresh"
    return None


def moved(wanted: NodeTwinStatus, there: NodeTwinStatus, deadband_pct: float) -> bool:
    """Watts and W/min move past a share of the node's maximum, scores past points, everything else at all."""
    if any(getattr(wanted, name) != getattr(there, name) for name in _EXACT):
        return True
    if any(_differ(getattr(wanted, name), getattr(there, name), deadband_pct) for name in _SCORES):
        return True
    now, before = wanted.power_measurement or _NO_POWER, there.power_measurement or _NO_POWER
    if now.source != before.source:
        return True
    band_w = (now.node_tdp_w or 0.0) * deadband_pct / 100.0
    return any(_differ(getattr(now, name), getattr(before, name), band_w) for name in _WATTS)


def refresh_is_due(node: str, written_s: float, now_s: float, settings: OperatorSettings) -> bool:
    """Each node has its own moment within the interval, so refreshes are spread evenly over time.

    Looks one tick ahead: what would fall due before the next decision is due now.
    """
    interval_s = settings.twin_refresh_interval_s
    tick_s = settings.decision.plan.reconcile_interval_s
    if now_s - written_s >= interval_s:
        return True
    if now_s - written_s < tick_s / 2:  # written by this very tick or the one before it at short intervals
        return False
    phase_s = zlib.crc32(node.encode()) / 2**32 * interval_s
    since_moment_s = (now_s - phase_s) % interval_s
    return since_moment_s < tick_s


def status_patch(wanted: NodeTwinStatus, there: NodeTwinStatus | None) -> dict[str, Any]:
    """The operator's fields that differ; `controlStatus` is the agent's and never named."""
    patch = merge_patch(there or NodeTwinStatus(), wanted)
    patch.pop("controlStatus", None)
    return patch


def _differ(now: float | None, before: float | None, band: float) -> bool:
    if now is None or before is None:
        return now is not before
    return abs(now - before) > band
