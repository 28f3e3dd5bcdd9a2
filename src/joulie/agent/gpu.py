"""The GPU cap of one node, in watts of each board (SPEC 7)."""

from __future__ import annotations

from collections.abc import Sequence

from joulie.agent.actuator import Actuator, Left
from joulie.agent.drift import ContestedError
from joulie.agent.outcome import Limits, Notice, Outcome
from joulie.agent.targets import Target
from joulie.devices.interface import DeviceError, NoDeviceError

_NO_BACKEND = "no backend for GPU caps is routed to this node"
_NO_MAXIMUM = "the cap is in percent of a maximum that neither the boards nor the catalogue state"


class GpuControl:
    """Caps the boards of every vendor that is there."""

    def __init__(self, actuators: Sequence[Actuator]) -> None:
        self.actuators = actuators
        self.notices: list[Notice] = []
        self._contested = False
        self._released = False

    async def enforce(self, target: Target, limits: Limits, now_s: float) -> Outcome:
        """One tick."""
        cap_w, cap_pct = target.gpu_w_each, target.gpu_pct
        if cap_w is None and cap_pct is None:
            left = await self.release()
            return Outcome(left[0].error.result, "none", str(left[0])) if left else Outcome("none")
        self._released = False
        if cap_w is None and cap_pct is not None and cap_pct >= 100:
            return await self._hold(None, limits.gpu_max_w_each, "100 %: as found, at most the default", now_s)
        if cap_w is None and cap_pct is not None and limits.gpu_max_w_each is not None:
            cap_w = cap_pct / 100.0 * limits.gpu_max_w_each
        if cap_w is None:
            return Outcome("blocked", "none", _NO_MAXIMUM)
        return await self._hold(cap_w, cap_w, f"{round(cap_w, 1):g} W for each board", now_s)

    async def release(self) -> list[Left]:
        """Everything as found."""
        if self._released and not any(actuator.entries for actuator in self.actuators):
            return []
        left = [left for actuator in self.actuators for left in await actuator.release()]
        self._released = not left
        return left

    async def _hold(self, wanted: float | None, cap_w: float | None, told: str, now_s: float) -> Outcome:
        applied: list[str] = []
        failures: list[tuple[Actuator, DeviceError]] = []
        gone = ""
        for actuator in self.actuators:
            name = actuator.capper.name
            try:
                if await actuator.apply(wanted, now_s):
                    message = f"somebody else had changed the GPU cap; it was put back to: {told}"
                    self.notices.append(Notice("CapPutBack", message, "warning", event=True, kind="gpu"))
                applied.append(name)
                gone += "".join(f"; {knob.device} is gone and stays in the journal" for knob in actuator.vanished[:1])
            except DeviceError as error:
                failures.append((actuator, error))
        self._say_contested([error for _, error in failures if isinstance(error, ContestedError)])
        serious = [(actuator, error) for actuator, error in failures if _matters(actuator, error)]
        if serious or not applied:
            if not failures:
                return Outcome("blocked", "none", _NO_BACKEND, cap_w)
            failed, worst = (serious or failures)[0]
            return Outcome(worst.result, failed.capper.name, str(worst), cap_w)
        return Outcome("applied", "+".join(applied), told + gone, cap_w)

    def _say_contested(self, errors: Sequence[ContestedError]) -> None:
        if errors and not self._contested:
            self.notices.append(Notice("CapContested", str(errors[0]), "warning", event=True, kind="gpu"))
        self._contested = bool(errors)


def _matters(actuator: Actuator, error: DeviceError) -> bool:
    """A vendor that is simply not there matters only where no other is, or where its boards were capped."""
    return not isinstance(error, NoDeviceError) or bool(actuator.entries)
