"""The CPU cap of one node: a power limit where one can be set, frequency where not (SPEC 7).

Watts go before percent; percent become watts through the known maximum. Backends that limit power are tried in their
order; when none of them works, frequency holds the cap. Once a power limit works again the throttle is taken back
first. Only one backend acts at a time, and what another one left behind is put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from joulie.agent.actuator import Actuator, Left
from joulie.agent.attempts import Attempts
from joulie.agent.drift import ContestedError
from joulie.agent.dvfs_loop import CpuCap, DvfsLoop, DvfsView, PowerReader
from joulie.agent.journal import JournalError
from joulie.agent.outcome import Limits, Notice, Outcome
from joulie.agent.targets import Target
from joulie.devices.interface import DeviceError, NotSupportedError
from joulie.settings import DvfsSettings

_NO_BACKEND = "no backend for CPU caps is routed to this node"
_NO_MAXIMUM = "the cap is in percent of a maximum that nobody knows, and the frequency cannot be controlled"


class _Failure(NamedTuple):
    backend: str
    error: DeviceError


class CpuControl:
    """Chooses the backend and remembers which one acts."""

    def __init__(self, actuators: Sequence[Actuator], settings: DvfsSettings, power: PowerReader | None) -> None:
        self.actuators = actuators
        self.notices: list[Notice] = []
        self._limits = [actuator for actuator in actuators if actuator.capper.unit == "watts"]
        self._throttles = [actuator for actuator in actuators if actuator.capper.unit == "throttle_pct"]
        self._loop = DvfsLoop(settings, power)
        self._attempts = Attempts()
        self._active: Actuator | None = None
        self._contested = False
        self._released = False  # everything is as found, and was looked at

    @property
    def mode(self) -> Literal["none", "rapl", "dvfs"]:
        """Which way the cap is held; any power limit counts as rapl."""
        if self._active is None:
            return "none"
        return "dvfs" if self._active in self._throttles else "rapl"

    @property
    def dvfs(self) -> DvfsView:
        return self._loop.view

    async def enforce(self, target: Target, limits: Limits, now_s: float) -> Outcome:
        """One tick."""
        cap_w, cap_pct, max_w = target.cpu_w, target.cpu_pct, limits.cpu_max_w
        if cap_w is None and cap_pct is None:
            return _failed(left[0]) if (left := await self.release()) else Outcome("none")
        if cap_w is None and cap_pct is not None and cap_pct >= 100:
            return await self._as_found(max_w)
        if cap_w is None and cap_pct is not None and max_w is not None:
            cap_w = cap_pct / 100.0 * max_w
        self._released = False
        return await self._hold(CpuCap(cap_w, cap_pct, max_w), now_s)

    async def release(self) -> list[Left]:
        """Everything as found."""
        if self._released and not any(actuator.entries for actuator in self.actuators):
            return []
        left = [left for actuator in self.actuators for left in await actuator.release()]
        if not left:
            self._active, self._released = None, True
            self._loop.stop()
        return left

    async def _as_found(self, max_w: float | None) -> Outcome:
        """100 %: what was found, never above it."""
        if left := await self.release():
            return _failed(left[0])
        error: DeviceError | None = None
        for actuator in self.actuators:
            try:
                await actuator.capper.knobs()
            except DeviceError as reason:
                error = error or reason
            else:
                return Outcome("applied", actuator.capper.name, "100 %: as found", max_w)
        return Outcome("blocked", "none", _NO_BACKEND if error is None else str(error), max_w)

    async def _hold(self, cap: CpuCap, now_s: float) -> Outcome:
        failures: list[_Failure] = []
        for actuator in (*(self._limits if cap.cap_w is not None else ()), *self._throttles):
            waiting = self._attempts.waiting(actuator.owner, _key(cap), now_s)
            if waiting is not None and actuator in self._limits:
                failures.append(_Failure(actuator.capper.name, waiting))
                continue
            tried = actuator.tried
            try:
                told = await self._by(actuator, cap, now_s)
            except DeviceError as error:
                failure = _Failure(actuator.capper.name, error)
                in_use = self._active in (None, actuator)
                if self._ends_here(error) or self._attempts.failed(
                    actuator.owner, _key(cap), error, now_s, in_use=in_use, tried=actuator.tried > tried
                ):
                    return Outcome(error.result, failure.backend, str(error), cap.cap_w)
                failures.append(failure)
            else:
                return Outcome("applied", actuator.capper.name, told + _told(failures), cap.cap_w)
        if not failures:
            return Outcome("blocked", "none", _NO_MAXIMUM if self.actuators else _NO_BACKEND, cap.cap_w)
        first, *others = failures
        return Outcome(first.error.result, first.backend, str(first.error) + _told(others), cap.cap_w)

    async def _by(self, actuator: Actuator, cap: CpuCap, now_s: float) -> str:
        """Hold the cap through this backend alone; what to say of it. A DeviceError: it cannot."""
        throttles = actuator in self._throttles
        if actuator is not self._active:  # can it be used at all, before another is let go?
            await actuator.plan(0.0 if throttles else cap.cap_w or 0.0)
            if throttles and (reason := (await actuator.capper.discover()).no_control):
                raise NotSupportedError(reason)  # else it would seem to work until the first step
        left = await self._let_go(actuator)
        if throttles:
            corrected = await self._loop.tick(actuator, cap, now_s)
            told = self._loop.told
        else:
            corrected = await actuator.apply(cap.cap_w or 0.0, now_s)
            told = f"{round(cap.cap_w or 0.0, 1):g} W for all packages together"
            self._loop.stop()
        self._active = actuator
        self._attempts.succeeded(actuator.owner)
        self._contested = False
        if corrected:
            message = f"somebody else had changed the CPU cap; it was put back to: {told}"
            self.notices.append(Notice("CapPutBack", message, "warning", event=True, kind="cpu"))
        return told + _still_open(left, actuator)

    async def _let_go(self, chosen: Actuator) -> list[Left]:
        """What other backends hold is put back: all of them when the backend changes, else what was left then."""
        changes = chosen is not self._active
        others = [actuator for actuator in self.actuators if actuator is not chosen]
        return [left for other in others if changes or other.entries for left in await other.release()]

    def _ends_here(self, error: DeviceError) -> bool:
        """Whoever fights over a limit would fight over the frequency; and without a journal nothing may be written."""
        if isinstance(error, ContestedError) and not self._contested:
            self._contested = True
            self.notices.append(Notice("CapContested", str(error), "warning", event=True, kind="cpu"))
        return isinstance(error, ContestedError | JournalError)


def _key(cap: CpuCap) -> float:
    return cap.cap_w if cap.cap_w is not None else -1.0


def _failed(left: Left) -> Outcome:
    return Outcome(left.error.result, "none", str(left))


def _told(failures: Sequence[_Failure]) -> str:
    return "".join(f"; {failure.backend} cannot: {failure.error}" for failure in failures)


def _still_open(left: Sequence[Left], actuator: Actuator) -> str:
    gone = "".join(f"; {knob.device} is gone and stays in the journal" for knob in actuator.vanished[:1])
    return "".join(f"; {item}" for item in left[:1]) + gone
