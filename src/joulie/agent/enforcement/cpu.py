"""The CPU cap of one node: a power limit where one can be set, frequency where not.

Watts go before percent; percent become watts through the known maximum. Backends that limit power are tried in their
order; when none of them works, frequency holds the cap. Once a power limit works again the throttle is taken back
first. Only one backend acts at a time, and what another one left behind is put back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from joulie.agent.enforcement.actuator import Actuator, NotRestored, lowest, not_read_back
from joulie.agent.enforcement.attempts import Attempts
from joulie.agent.enforcement.corrections import ContestedError
from joulie.agent.enforcement.dvfs_loop import DvfsLoop, DvfsView, PowerReader, WantedCpuCap
from joulie.agent.outcome import CapLimits, CapOutcome, Notice, held_words
from joulie.agent.restore.journal import JournalError
from joulie.agent.targets import CapTarget
from joulie.devices.interface import DeviceError, Knob, NotSupportedError
from joulie.settings import DvfsSettings

_NO_BACKEND = "no backend for CPU caps is routed to this node"
_NOTHING_HELD = "nothing holds the devices, and which order of a power budget should is not known"
_NO_MAXIMUM = "the cap is in percent of a maximum that is not known, and the frequency cannot be controlled"


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
        self._released = False  # everything is as found, and was checked

    @property
    def mode(self) -> Literal["none", "rapl", "dvfs"]:
        """Which way the cap is held; any power limit counts as rapl."""
        if self._active is None:
            return "none"
        return "dvfs" if self._active in self._throttles else "rapl"

    @property
    def dvfs(self) -> DvfsView:
        return self._loop.view

    async def enforce(self, target: CapTarget, limits: CapLimits, now_s: float) -> CapOutcome:
        """One tick."""
        asked_w = None if target.cpu_w_each is None else target.cpu_w_each * limits.cpu_packages
        cap_w, cap_pct, max_w = asked_w, target.cpu_pct, limits.cpu_max_w
        if cap_w is None and cap_pct is None:
            return _failed(left[0]) if (left := await self.release()) else CapOutcome("none")
        if cap_w is None and cap_pct is not None and cap_pct >= 100:
            return await self._as_found(max_w)
        if cap_w is not None and limits.cpu_floor_w is not None:
            cap_w = max(cap_w, limits.cpu_floor_w)  # below it is less than the CPUs draw idle
        elif cap_w is None and cap_pct is not None and max_w is not None:
            asked_w = cap_w = cap_pct / 100.0 * max_w
        if target.never_raise and cap_w is not None:
            asked_w = cap_w = await lowest(cap_w, self._limits)
            if not math.isfinite(cap_w):
                return CapOutcome("none", message=_NOTHING_HELD)
        self._released = False
        return await self._hold(WantedCpuCap(cap_w, cap_pct, max_w, asked_w), now_s)

    async def release(self) -> list[NotRestored]:
        """Everything as found."""
        if self._released and not any(actuator.entries for actuator in self.actuators):
            return []
        left = [left for actuator in self.actuators for left in await actuator.release()]
        if not left:
            self._active, self._released = None, True
            self._loop.stop()
        return left

    async def _as_found(self, max_w: float | None) -> CapOutcome:
        """100 %: what was found, never above it."""
        if left := await self.release():
            return _failed(left[0])
        error: DeviceError | None = None
        for actuator in self.actuators:
            try:
                await actuator.check()
                knobs = await actuator.capper.knobs()
            except DeviceError as reason:
                error = error or reason
            else:
                held_w = await _held_as_found(actuator, knobs, max_w)
                return CapOutcome("applied", actuator.capper.name, "100 %: as found", max_w, held_w, as_found=True)
        if error is None:
            return CapOutcome("blocked", "none", _NO_BACKEND, max_w)
        return CapOutcome(error.result, "none", str(error), max_w)

    async def _hold(self, cap: WantedCpuCap, now_s: float) -> CapOutcome:
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
                    return CapOutcome(error.result, failure.backend, str(error), cap.asked_w)
                failures.append(failure)
            else:
                throttles = actuator in self._throttles
                held_w = self._loop.held_w if throttles else actuator.held
                throttle_pct = self._loop.view.state.throttle_pct if throttles else None
                words = told + _told(failures)
                return CapOutcome("applied", actuator.capper.name, words, cap.asked_w, held_w, throttle_pct)
        if not failures:
            return CapOutcome("blocked", "none", _NO_MAXIMUM if self.actuators else _NO_BACKEND, cap.asked_w)
        first, *others = failures
        return CapOutcome(first.error.result, first.backend, str(first.error) + _told(others), cap.asked_w)

    async def _by(self, actuator: Actuator, cap: WantedCpuCap, now_s: float) -> str:
        """Hold the cap through this backend alone; returns what to report. A DeviceError: it cannot."""
        throttles = actuator in self._throttles
        if actuator is not self._active:  # can it be used at all, before another is given up?
            await actuator.plan(0.0 if throttles else cap.cap_w or 0.0)
            if throttles and (reason := (await actuator.capper.discover()).no_control):
                raise NotSupportedError(reason)  # else it would seem to work until the first step
        left = await self._let_go(actuator)
        if throttles:
            corrected = await self._loop.tick(actuator, cap, now_s)
            told = self._loop.told
        else:
            corrected = await actuator.apply(cap.cap_w or 0.0, now_s)
            told = f"{held_words(actuator.held, cap.asked_w)} for all packages together" + not_read_back([actuator])
            self._loop.stop()
        self._active = actuator
        self._attempts.succeeded(actuator.owner)
        self._contested = False
        if corrected:
            message = f"the CPU cap had been changed from outside; it was put back to: {told}"
            self.notices.append(Notice("CapPutBack", message, "warning", event=True, kind="cpu"))
        return told + _still_open(left, actuator)

    async def _let_go(self, chosen: Actuator) -> list[NotRestored]:
        """Restore what other backends hold: all of them when the backend changes, else what was left then."""
        changes = chosen is not self._active
        others = [actuator for actuator in self.actuators if actuator is not chosen]
        return [left for other in others if changes or other.entries for left in await other.release()]

    def _ends_here(self, error: DeviceError) -> bool:
        """What contests a limit would contest the frequency, too; and without a journal nothing may be written."""
        if isinstance(error, ContestedError) and not self._contested:
            self._contested = True
            self.notices.append(Notice("CapContested", str(error), "warning", event=True, kind="cpu"))
        return isinstance(error, ContestedError | JournalError)


async def _held_as_found(actuator: Actuator, knobs: Sequence[Knob], max_w: float | None) -> float | None:
    """What a limit that was found holds; without one, the maximum."""
    if actuator.capper.unit != "watts":
        return max_w
    try:
        seen = {knob: await actuator.capper.read(knob) for knob in knobs}
    except DeviceError:
        return None
    held_w = actuator.capper.held(seen, seen)
    return max_w if held_w is None else held_w if max_w is None else min(held_w, max_w)


def _key(cap: WantedCpuCap) -> float:
    return cap.cap_w if cap.cap_w is not None else -1.0


def _failed(left: NotRestored) -> CapOutcome:
    return CapOutcome(left.error.result, "none", str(left))


def _told(failures: Sequence[_Failure]) -> str:
    return "".join(f"; {failure.backend} cannot: {failure.error}" for failure in failures)


def _still_open(left: Sequence[NotRestored], actuator: Actuator) -> str:
    gone = "".join(f"; {knob.device} is gone and stays in the journal" for knob in actuator.vanished[:1])
    return "".join(f"; {item}" for item in left[:1]) + gone
