"""The DVFS loop on a real device: what `control.dvfs` decides is written, and only what was written is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from msgspec import Struct

from joulie.agent.actuator import Actuator
from joulie.control.dvfs import DvfsState, Observation, step
from joulie.devices.interface import DeviceError
from joulie.settings import DvfsSettings

PowerReader = Callable[[], Awaitable[float | None]]


class DvfsView(Struct, frozen=True):
    """The loop as the metrics show it."""

    state: DvfsState
    observed_w: float | None  # the last reading, believable or not
    actions: dict[str, int]


class CpuCap(Struct, frozen=True):
    """A CPU cap in the forms in which it is known."""

    cap_w: float | None
    cap_pct: float | None
    max_w: float | None


class DvfsLoop:
    """One tick: read the power, let the core decide, apply its throttle."""

    def __init__(self, settings: DvfsSettings, power: PowerReader | None) -> None:
        self._settings = settings
        self._power = power
        self._state: DvfsState | None = None  # None: not acting
        self._observed_w: float | None = None
        self._reason = ""
        self._actions: Counter[str] = Counter()

    @property
    def view(self) -> DvfsView:
        return DvfsView(self._state or DvfsState(), self._observed_w, dict(self._actions))

    def stop(self) -> None:
        """The throttle was taken back: the next start is from none."""
        self._state = None
        self._observed_w = None
        self._reason = ""

    async def tick(self, actuator: Actuator, cap: CpuCap, now_s: float) -> bool:
        """Whether somebody else's change was put back; a DeviceError where the throttle could not be applied."""
        state = self._state or DvfsState(throttle_pct=_throttle_in_journal(actuator))
        self._observed_w = None if cap.cap_w is None else await self._read_power()
        seen = Observation(now_s, self._observed_w, cap.cap_w, cap.cap_pct, cap.max_w)
        after, commands = step(state, seen, self._settings)
        corrected = await actuator.apply(after.throttle_pct, now_s)
        self._state = after
        for command in commands:
            self._reason = command.reason
            self._actions[command.action] += 1
        return corrected

    @property
    def told(self) -> str:
        """The throttle in force and why, for people; it changes only when the loop acts."""
        pct = self._state.throttle_pct if self._state else 0.0
        return f"throttled by {pct:.3g} %" + (f": {self._reason}" if self._reason else "")

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
