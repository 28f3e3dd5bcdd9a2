"""The DVFS loop on a real device: what `control.dvfs` decides is written, and only what was written is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from msgspec import Struct

from joulie.agent.enforcement.actuator import Actuator
from joulie.control.dvfs import TICKS_TO_HOLD, DvfsState, Observation, step
from joulie.devices.interface import DeviceError, NotSupportedError
from joulie.settings import DvfsSettings

FULL_PCT = 100.0
_OPEN_LOOP = "; no power is measured, so the watts that this holds are not known"
_AT_FLOOR = "the frequency was found at its lowest already (see DVFS_MIN_FREQ_KHZ), so it cannot hold the CPU back"

PowerReader = Callable[[], Awaitable[float | None]]


class DvfsView(Struct, frozen=True):
    """The loop as the metrics show it."""

    state: DvfsState
    observed_w: float | None  # the last reading, believable or not
    actions: dict[str, int]


class WantedCpuCap(Struct, frozen=True):
    """A CPU cap in the forms in which it is known."""

    cap_w: float | None
    cap_pct: float | None
    max_w: float | None
    asked_w: float | None = None  # before it was raised to what the hardware takes


class DvfsLoop:
    """One tick: read the power, let the core decide, apply its throttle."""

    def __init__(self, settings: DvfsSettings, power: PowerReader | None) -> None:
        self._settings = settings
        self._power = power
        self._state: DvfsState | None = None  # None: not acting
        self._observed_w: float | None = None
        self._reason = ""
        self._actions: Counter[str] = Counter()
        self._held_w: float | None = None
        self._held_pct: float | None = None

    @property
    def view(self) -> DvfsView:
        return DvfsView(self._state or DvfsState(), self._observed_w, dict(self._actions))

    def stop(self) -> None:
        """The throttle was taken back: the next start is from none."""
        self._state = None
        self._observed_w = self._held_w = self._held_pct = None
        self._reason = ""

    async def tick(self, actuator: Actuator, cap: WantedCpuCap, now_s: float) -> bool:
        """True where a change from outside was put back; a DeviceError where the throttle could not be applied."""
        state = self._state or DvfsState(throttle_pct=_throttle_in_journal(actuator))
        self._observed_w = None if cap.cap_w is None else await self._read_power()
        seen = Observation(now_s, self._observed_w, cap.cap_w, cap.cap_pct, cap.max_w)
        after, commands = step(state, seen, self._settings)
        corrected = await actuator.apply(after.throttle_pct, now_s)
        self._held_pct = actuator.held
        if after.throttle_pct > 0 and self._held_pct == 0:
            raise NotSupportedError(_AT_FLOOR)
        self._state = after
        self._judge(after, cap)
        for command in commands:
            self._reason = command.reason
            self._actions[command.action] += 1
        return corrected

    @property
    def held_w(self) -> float | None:
        """The cap in watts that the measured power keeps to; None: above it, or no reading says so."""
        return self._held_w

    @property
    def told(self) -> str:
        """The throttle in force and why, for people; it changes only when the loop acts."""
        asked = self._state.throttle_pct if self._state else 0.0
        pct = asked if self._held_pct is None else self._held_pct
        told = f"throttled by {pct:.3g} %" + (f": {self._reason}" if self._reason else "")
        if self._is_open_loop:
            told += _OPEN_LOOP
        elif asked >= FULL_PCT and self._held_w is None:
            told += "; this is the lowest frequency, and the power is still above the cap"
        return told

    @property
    def _is_open_loop(self) -> bool:
        state = self._state
        return state is not None and (state.cap_w is None or state.blind_ticks > TICKS_TO_HOLD)

    def _judge(self, state: DvfsState, cap: WantedCpuCap) -> None:
        """Whether the power keeps to the cap; right after an action nothing is known, and the last answer stands."""
        if self._is_open_loop:
            self._held_w = None
        elif state.ema_w is not None and state.cap_w is not None:
            self._held_w = cap.cap_w if state.ema_w <= state.cap_w + self._settings.high_margin_w else None
        elif self._held_w != cap.cap_w:  # it was about another cap
            self._held_w = None

    async def _read_power(self) -> float | None:
        if self._power is None:
            return None
        try:
            return await self._power()
        except DeviceError:
            return None


def _throttle_in_journal(actuator: Actuator) -> float:
    """The throttle that an earlier process wanted: between none and full, each knob moves in proportion."""
    entries = {entry.knob: entry for entry in actuator.entries}
    found = {knob: entry.found for knob, entry in entries.items()}
    if not found:
        return 0.0
    try:
        none, full = (
            {item.knob: item.value for item in actuator.capper.settings(throttle_pct, found)}
            for throttle_pct in (0.0, 100.0)
        )
    except DeviceError:
        return 0.0
    shares = [
        (wanted - start) / (end - start)
        for knob, start in none.items()
        if (end := full.get(knob)) is not None
        and (wanted := entries[knob].wanted) is not None
        and start is not None
        and start != end
    ]
    return min(max(100.0 * max(shares, default=0.0), 0.0), 100.0)
