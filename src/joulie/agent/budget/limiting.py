"""Caps under a power budget: the lower of what the profile wants and what the order allows. Pure."""

from __future__ import annotations

import math

from msgspec.structs import replace

from joulie.agent.outcome import CapLimits, CapOutcome, Enforced
from joulie.agent.targets import CapTarget
from joulie.control.budget.counting import Pair

UNLIMITED = Pair(math.inf, math.inf)  # an order that is not known: only what devices hold limits them
WHY = "a power budget allows no more"

_ROUNDING_W = 0.001  # of reading back; caps are whole watts
_NO_PROFILE = CapTarget(profile="", chosen_by="budget", origin="twin")


def limited(
    target: CapTarget | None, ceiling: Pair, limits: CapLimits, *, has_gpus: bool, never_raise: bool = False
) -> CapTarget:
    """The target under this ceiling; without a target the ceiling alone. A ceiling of 0 for GPUs is none."""
    wanted = target or _NO_PROFILE
    max_w_each = None if limits.cpu_max_w is None else limits.cpu_max_w / limits.cpu_packages
    cpu_w = _lower(ceiling.cpu_w_each, wanted.cpu_w_each, wanted.cpu_pct, max_w_each)
    cpu_pct = wanted.cpu_pct
    if max_w_each and math.isfinite(cpu_w):  # for frequency, which may have to stand in
        cpu_pct = min(100.0, 100.0 * cpu_w / max_w_each)
    gpu_w, gpu_pct = wanted.gpu_w_each, wanted.gpu_pct
    if has_gpus and ceiling.gpu_w_each > 0:
        gpu_w, gpu_pct = _lower(ceiling.gpu_w_each, gpu_w, gpu_pct, limits.gpu_max_w_each), None
    return replace(
        wanted,
        cpu_w_each=cpu_w,
        cpu_pct=cpu_pct,
        gpu_w_each=gpu_w,
        gpu_pct=gpu_pct,
        under_budget=True,
        never_raise=never_raise,
    )


def explained(enforced: Enforced, target: CapTarget, ceiling: Pair) -> Enforced:
    """With the reason where the order is what limits a device."""
    cpu = _because(enforced.cpu) if target.cpu_w_each == ceiling.cpu_w_each else enforced.cpu
    gpu = _because(enforced.gpu) if target.gpu_w_each == ceiling.gpu_w_each else enforced.gpu
    return replace(enforced, cpu=cpu, gpu=gpu)


def held_caps(enforced: Enforced, limits: CapLimits, *, has_gpus: bool) -> Pair | None:
    """What the devices hold in whole watts, rounded up; None where any of them holds nothing in watts.

    Packages count by their sum, which is what a limit is compared with; of boards it is the highest.
    """
    cpu_w = _held_w(enforced.cpu, limits.cpu_max_w)
    gpu_w = _held_w(enforced.gpu, limits.gpu_max_w_each) if has_gpus else 0.0
    if cpu_w is None or gpu_w is None:
        return None
    return Pair(_whole(cpu_w / limits.cpu_packages), _whole(gpu_w))


def _because(outcome: CapOutcome) -> CapOutcome:
    return replace(outcome, message=f"{outcome.message}; {WHY}") if outcome.result == "applied" else outcome


def _lower(ceiling_w: float, watts: float | None, pct: float | None, max_w: float | None) -> float:
    """Watts win over percent; percent of a maximum that is not known cannot be compared."""
    if watts is None and pct is not None and pct < 100 and max_w is not None:
        watts = pct / 100.0 * max_w
    return ceiling_w if watts is None else min(ceiling_w, watts)


def _held_w(outcome: CapOutcome, max_w: float | None) -> float | None:
    """A power limit that was read back; where no limit is needed, the maximum."""
    if outcome.result != "applied" or outcome.throttle_pct is not None:
        return None
    if outcome.held_w is None and outcome.cap_w is not None and max_w is not None and outcome.cap_w >= max_w:
        return max_w
    return outcome.held_w


def _whole(watts: float) -> float:
    return math.ceil(watts - _ROUNDING_W)
