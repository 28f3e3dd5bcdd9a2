"""Holding a power cap by frequency where no power limit can be set: observation in, commands out.

A reading passes a plausibility check, the median of three and an exponential mean; two consecutive means outside the
margins around the cap change the throttle by one step, at most once in a cooldown. The step halves when the direction
turns and grows back when it repeats, so the loop settles inside its margins instead of swinging across them. Without
believable readings it holds, then falls back to the open loop: a throttle of 100 − cap percent.

Imports no numpy: the agent runs on every node.

The rules: docs/reference/behaviour.md, 'DVFS'.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from joulie.settings import DvfsSettings

READINGS_FOR_MEDIAN = 3
TICKS_TO_HOLD = 3
BELIEVABLE_TIMES_MAX = 1.2
MIN_STEP_PCT = 1.0
STEP_GROWTH = 1.5
STEP_SHRINK = 0.5


class Observation(Struct, frozen=True):
    """What is known at one tick."""

    now_s: float
    power_w: float | None  # of all CPU packages; None: nothing could be read
    cap_w: float | None  # None: the cap is known in percent alone
    cap_pct: float | None = None
    max_w: float | None = None  # of all CPU packages


class SetThrottle(NamedTuple):
    """Set every frequency policy to this throttle: 0 is none, 100 is down to the floor."""

    throttle_pct: float
    action: Literal["throttle_up", "throttle_down", "open_loop"]
    reason: str


class DvfsState(Struct, frozen=True):
    """Everything the loop remembers between two ticks."""

    throttle_pct: float = 0.0
    cap_w: float | None = None
    readings_w: tuple[float, ...] = ()
    ema_w: float | None = None
    above: int = 0
    below: int = 0
    blind_ticks: int = 0
    step_pct: float | None = None  # None: no action yet, the first takes the full step
    direction: int = 0  # of the last action: 1 up, -1 down
    acted_at_s: float = -math.inf


def step(state: DvfsState, seen: Observation, settings: DvfsSettings) -> tuple[DvfsState, tuple[SetThrottle, ...]]:
    """One tick: the next state, and the commands to execute (none or one)."""
    if seen.cap_w is None:  # a closed loop that starts later must not resume from earlier readings
        state = replace(state, cap_w=None, readings_w=(), ema_w=None, above=0, below=0, blind_ticks=0)
        return _open_loop(state, seen, "the cap is known in percent alone")
    if seen.cap_w != state.cap_w:  # a new target: what was learnt about the old one does not help
        state = replace(state, cap_w=seen.cap_w, above=0, below=0, step_pct=None, direction=0)
    if not _is_believable(seen):
        state = replace(state, blind_ticks=state.blind_ticks + 1)
        if state.blind_ticks <= TICKS_TO_HOLD:  # a dropped reading moves nothing: else every second one could blind us
            return state, ()
        state = replace(state, above=0, below=0, readings_w=(), ema_w=None)
        return _open_loop(state, seen, f"no believable power reading for {state.blind_ticks} ticks")
    state = _listen(state, seen, settings)
    return _act(state, seen, settings)


def _is_believable(seen: Observation) -> bool:
    power_w = seen.power_w
    if power_w is None or not math.isfinite(power_w) or power_w <= 0:
        return False
    return seen.max_w is None or power_w <= BELIEVABLE_TIMES_MAX * seen.max_w


def _listen(state: DvfsState, seen: Observation, settings: DvfsSettings) -> DvfsState:
    """Smooth the reading and count on which side of the margins the mean lies."""
    assert seen.power_w is not None
    assert state.cap_w is not None
    readings_w = (*state.readings_w, seen.power_w)[-READINGS_FOR_MEDIAN:]
    median_w = sorted(readings_w)[len(readings_w) // 2]
    if len(readings_w) == 2:
        median_w = sum(readings_w) / 2
    ema_w = median_w
    if state.ema_w is not None:
        ema_w = settings.ema_alpha * median_w + (1 - settings.ema_alpha) * state.ema_w
    return replace(
        state,
        readings_w=readings_w,
        ema_w=ema_w,
        blind_ticks=0,
        above=state.above + 1 if ema_w > state.cap_w + settings.high_margin_w else 0,
        below=state.below + 1 if ema_w < state.cap_w - settings.low_margin_w else 0,
    )


def _act(state: DvfsState, seen: Observation, settings: DvfsSettings) -> tuple[DvfsState, tuple[SetThrottle, ...]]:
    if seen.now_s - state.acted_at_s < settings.cooldown_s:
        return state, ()
    if state.above >= settings.trip_count and state.throttle_pct < 100:
        direction = 1
    elif state.below >= settings.trip_count and state.throttle_pct > 0:
        direction = -1
    else:
        return state, ()
    step_pct = _next_step_pct(state, direction, settings)
    throttle_pct = min(max(state.throttle_pct + direction * step_pct, 0.0), 100.0)
    side = "above" if direction > 0 else "below"
    reason = f"{state.ema_w:.0f} W on average is {side} the cap of {state.cap_w:.0f} W and its margin"
    command = SetThrottle(throttle_pct, "throttle_up" if direction > 0 else "throttle_down", reason)
    # Counters, mean and median start over: what was measured before the action says nothing about after it.
    after = DvfsState(
        throttle_pct=throttle_pct,
        cap_w=state.cap_w,
        step_pct=step_pct,
        direction=direction,
        acted_at_s=seen.now_s,
    )
    return after, (command,)


def _next_step_pct(state: DvfsState, direction: int, settings: DvfsSettings) -> float:
    if state.step_pct is None:
        return settings.step_pct
    if direction != state.direction:
        return max(state.step_pct * STEP_SHRINK, MIN_STEP_PCT)
    return min(state.step_pct * STEP_GROWTH, settings.step_pct)


def _open_loop(state: DvfsState, seen: Observation, why: str) -> tuple[DvfsState, tuple[SetThrottle, ...]]:
    """The percent path; where not even a percentage is known, hold."""
    cap_pct = seen.cap_pct
    if cap_pct is None and seen.cap_w is not None and seen.max_w:
        cap_pct = 100.0 * seen.cap_w / seen.max_w
    if cap_pct is None:
        return state, ()
    throttle_pct = min(max(100.0 - cap_pct, 0.0), 100.0)
    if throttle_pct == state.throttle_pct:
        return state, ()
    state = replace(state, throttle_pct=throttle_pct, acted_at_s=seen.now_s, step_pct=None, direction=0)
    return state, (SetThrottle(throttle_pct, "open_loop", why),)


def frequency_limit_khz(
    throttle_pct: float, found_max_khz: int, scaling_min_khz: int, cpuinfo_min_khz: int, settings: DvfsSettings
) -> int:
    """`scaling_max_freq` of a frequency policy: between what was found and a floor that is never crossed."""
    floor_khz = min(found_max_khz, max(settings.min_freq_khz, scaling_min_khz, cpuinfo_min_khz))
    pct = min(max(throttle_pct, 0.0), 100.0)
    return max(floor_khz, math.floor(found_max_khz - pct / 100.0 * (found_max_khz - floor_khz)))
