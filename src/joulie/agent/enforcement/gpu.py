"""The GPU cap of one node, in watts of each board (docs/reference/behaviour.md, 'GPU boards')."""

from __future__ import annotations

import math
from collections.abc import Sequence

from joulie.agent.enforcement.actuator import Actuator, NotRestored, lowest, not_read_back
from joulie.agent.enforcement.corrections import ContestedError
from joulie.agent.outcome import CapLimits, CapOutcome, Notice, held_words
from joulie.agent.targets import CapTarget
from joulie.devices.interface import DeviceError, NoDeviceError, PartialCapper

_NO_BACKEND = "no backend for GPU caps is routed to this node"
_NO_MAXIMUM = "the cap is in percent of a maximum that neither the boards nor the catalogue state"


class GpuControl:
    """Caps the boards of every vendor that is there."""

    def __init__(self, actuators: Sequence[Actuator]) -> None:
        self.actuators = actuators
        self.notices: list[Notice] = []
        self._contested = False
        self._released = False

    async def enforce(self, target: CapTarget, limits: CapLimits, now_s: float) -> CapOutcome:
        """One tick."""
        cap_w, cap_pct = target.gpu_w_each, target.gpu_pct
        if cap_w is None and cap_pct is None:
            left = await self.release()
            return CapOutcome(left[0].error.result, "none", str(left[0])) if left else CapOutcome("none")
        self._released = False
        if cap_w is None and cap_pct is not None and cap_pct >= 100:
            return await self._hold(None, limits.gpu_max_w_each, "100 %: as found, at most the default", now_s)
        if cap_w is None and cap_pct is not None and limits.gpu_max_w_each is not None:
            cap_w = cap_pct / 100.0 * limits.gpu_max_w_each
        if cap_w is None:
            return CapOutcome("blocked", "none", _NO_MAXIMUM)
        if target.never_raise:
            cap_w = await lowest(cap_w, self.actuators)
        if not math.isfinite(cap_w):
            return CapOutcome("none")
        return await self._hold(cap_w, cap_w, "", now_s)

    async def release(self) -> list[NotRestored]:
        """Everything as found."""
        if self._released and not any(actuator.entries for actuator in self.actuators):
            return []
        left = [left for actuator in self.actuators for left in await actuator.release()]
        self._released = not left
        return left

    async def _hold(self, wanted: float | None, cap_w: float | None, told: str, now_s: float) -> CapOutcome:
        applied: list[str] = []
        held: list[float | None] = []
        failures: list[tuple[Actuator, DeviceError]] = []
        gone = ""
        for actuator in self.actuators:
            try:
                corrected = await actuator.apply(wanted, now_s)
                held.append(actuator.held)
                if corrected:
                    now = told or _each(actuator.held, cap_w)
                    message = f"the GPU cap had been changed from outside; it was put back to: {now}"
                    self.notices.append(Notice("CapPutBack", message, "warning", event=True, kind="gpu"))
                applied.append(actuator.capper.name)
                if wanted is not None:  # at full power nothing is asked of a board that takes no limit
                    failures += [(actuator, error) for error in _uncapped(actuator, cap_w)]
                gone += "".join(f"; {knob.device} is gone and stays in the journal" for knob in actuator.vanished[:1])
            except DeviceError as error:
                failures.append((actuator, error))
        self._say_contested([error for _, error in failures if isinstance(error, ContestedError)])
        serious = [(actuator, error) for actuator, error in failures if _matters(actuator, error)]
        if serious or not applied:
            if not failures:
                return CapOutcome("blocked", "none", _NO_BACKEND, cap_w)
            failed, worst = (serious or failures)[0]
            return CapOutcome(worst.result, failed.capper.name, str(worst), cap_w)
        known = [each for each in held if each is not None]
        held_w = cap_w if wanted is None and not known else max(known) if len(known) == len(held) else None
        words = (told or _each(held_w, cap_w)) + not_read_back(self.actuators) + gone
        return CapOutcome("applied", "+".join(applied), words, cap_w, held_w, as_found=wanted is None)

    def _say_contested(self, errors: Sequence[ContestedError]) -> None:
        if errors and not self._contested:
            self.notices.append(Notice("CapContested", str(errors[0]), "warning", event=True, kind="gpu"))
        self._contested = bool(errors)


def _each(held_w: float | None, cap_w: float | None) -> str:
    return f"{held_words(held_w, cap_w)} for each board"


def _uncapped(actuator: Actuator, cap_w: float | None) -> list[DeviceError]:
    """Boards without a limit beside others that are held: the cap is not that of each board."""
    refusals = actuator.capper.uncapped if isinstance(actuator.capper, PartialCapper) else ()
    held = f"the other boards are held to {held_words(actuator.held, cap_w)}"
    return [type(error)(f"{error}; {held}") for error in refusals]


def _matters(actuator: Actuator, error: DeviceError) -> bool:
    """A vendor that is absent matters only where there is no other, or where its boards were capped."""
    return not isinstance(error, NoDeviceError) or bool(actuator.entries)
