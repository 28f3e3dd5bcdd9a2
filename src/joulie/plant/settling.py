"""First-order settling, solved exactly for a step of any length: what follows its target with a time constant."""

from __future__ import annotations

import math

from joulie.plant.curves import Numbers

CPU_CAP_TAU_S = 0.25
GPU_CAP_TAU_S = 0.15
CPU_TELEMETRY_TAU_S = 0.25
GPU_TELEMETRY_TAU_S = 1.0


def share_gone(dt_s: float, tau_s: float) -> float:
    """The share of the way to the target that is done after `dt_s`: 1 − e^(−dt/τ)."""
    return -math.expm1(-dt_s / tau_s)


def mean_share_gone(dt_s: float, tau_s: float) -> float:
    """The same on average over the step."""
    return 1.0 - share_gone(dt_s, tau_s) * tau_s / dt_s if dt_s > 0 else 0.0


def settle(value: Numbers, target: Numbers, dt_s: float, tau_s: float) -> Numbers:
    """Moves `value` in place towards `target`; its mean over the step."""
    way = target - value
    mean: Numbers = value + way * mean_share_gone(dt_s, tau_s)
    value += way * share_gone(dt_s, tau_s)
    return mean
