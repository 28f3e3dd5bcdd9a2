"""Devices behind an HTTP endpoint, as the simulator offers them: a CPU by watts or throttle, GPUs by watts.

The cappers of a node share one `HttpNode`, which asks once for what all of them want to know. Restoring takes the limit
away: what was found may be the cap of another agent of the pool, and the interface has a word for "none". Endpoints
that do not know that word are sent what was found.

The rules: docs/reference/behaviour.md, 'Simulator HTTP API'.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from joulie.devices.http.client import HttpNode, NodeTelemetry, RefusedError
from joulie.devices.interface import (
    Address,
    BadReadingError,
    DeviceError,
    Discovered,
    Kind,
    Knob,
    NoDeviceError,
    NotSupportedError,
    Setting,
    Unit,
    Value,
)
from joulie.model.api.hardware import CpuHardware, GpuCapRange, GpuHardware, NodeHardwareStatus, SocketCapRange

POLL_S = 0.6  # a little longer than an answer is cached
STILL_S = 2.0  # a value that has not moved for this long has settled
SETTLE_S = 15.0  # a limit that takes longer to come into force is not waited for
ENDLESS_W = 32_768  # holds nothing back: for endpoints that take no limit away and had none before


class HttpCapper:
    """One limit of one node; `action`, `attribute` and `unit` say which."""

    name = "http"
    kind: Kind
    unit: Unit
    action: str
    attribute: str
    mode: str | None = None  # the value of a route's mode that asks for this limit alone
    released: Value = None  # what takes the limit away
    tolerance = 1.0
    _is_target = True  # what is read is what was accepted, not a value still moving there

    def __init__(self, at: HttpNode, node: str) -> None:
        self.at = at
        self._node = node
        self._found: Discovered | None = None
        self._before: Value = None  # what was found, for endpoints that cannot take a limit away
        self._lifted_at: Value = None  # what such an endpoint was sent instead
        self._was_shown = False  # the endpoint has shown this limit: where it shows none any more, there is none
        self._is_shown = True  # the last reading was of the device, not of what it acknowledged

    @property
    def address(self) -> Address:
        return Address(self.at.device, self.at.control_url, self.at.telemetry_url)

    @property
    def acknowledged(self) -> bool:
        return self.action in self.at.acknowledged

    @property
    def reads_back(self) -> bool:
        return self._is_shown

    async def discover(self) -> Discovered:
        """From `/state` where it describes the hardware; whether the endpoint works at all, `/telemetry` shows."""
        warnings: tuple[str, ...] = ()
        told: NodeHardwareStatus | None = None
        try:
            try:
                told = await self.at.hardware()
            except BadReadingError as error:
                warnings = (str(error),)
            self._found = replace(self._discovered(told, await self.at.telemetry()), warnings=warnings)
        except DeviceError as error:
            self._found = Discovered(
                self.kind, self.name, False, no_control=str(error), no_telemetry=str(error), quality="unavailable"
            )
        return self._found

    async def knobs(self) -> Sequence[Knob]:
        return (Knob(self.at.device, self.attribute),)

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        value = self._within_range(target) if math.isfinite(target) else self.released
        self._before = next(iter(found.values()), None)
        return [Setting(knob, value, self.tolerance) for knob in found]

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        self._before = next(iter(found.values()), None)
        return [Setting(knob, self.released, self.tolerance) for knob in found]

    def refuses(self, knob: Knob, found: Value) -> str | None:
        if knob != (self.at.device, self.attribute):
            return f"{self.at.device} has no such value"
        if found is not None and not (math.isfinite(found) and found >= 0):
            return f"{found} is not a limit"
        return None

    def unlimited(self, knob: Knob) -> Value:
        return self.released

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """Without a limit a device holds its own maximum, however much was asked for.

        None where the endpoint shows no limit: that a command was taken says nothing of what the device holds.
        """
        if not self._is_shown:
            return None
        value = next(iter(values.values()), None)
        return self._highest() if value is None else value

    async def read(self, knob: Knob) -> Value:
        value = self._seen_or_acknowledged(self._in_force(await self.at.telemetry()))
        if value is not None and not math.isfinite(value):
            raise BadReadingError(f"{self.at.device}: {self.attribute} is {value}")
        return None if self._is_none(value) else value

    def _seen_or_acknowledged(self, told: Value | UnsetType) -> Value:
        """What the endpoint shows; of one that never shows this limit, what it last acknowledged."""
        self._is_shown = self._was_shown = self._was_shown or told is not UNSET
        if self._is_shown:
            return self.released if told is UNSET else told
        self._is_target = True
        return self.at.acknowledged.get(self.action, self.released)

    async def write(self, knob: Knob, value: Value) -> None:
        """Returns once the value has settled or stopped moving; reading it back shows the result."""
        if knob != (self.at.device, self.attribute):
            raise NoDeviceError(f"{knob.device} {knob.attribute} is not at {self.at.device}")
        if value is None:
            await self._lift(knob)
        else:
            await self._command(value)
            await self._settle(knob, value)

    async def _command(self, value: Value) -> None:
        await self.at.control(self.action, self.attribute, value, self._node)

    async def _lift(self, knob: Knob) -> None:
        """Remove the limit; where that is refused or has no effect, set what was found, else the maximum.

        Where neither is known a limit that no machine reaches is set: the node must not stay capped.
        """
        self._lifted_at = None
        with suppress(RefusedError, NotSupportedError):
            await self._command(None)
            await self._settle(knob, None)
            if await self._reads(knob, None):
                return
        instead = self._before if self._before is not None and self._before > 0 else self._highest()
        if instead is None:
            instead = await self._lift_endlessly(knob)
        else:
            await self._command(instead)
            await self._settle(knob, instead)
        self._lifted_at = instead

    async def _lift_endlessly(self, knob: Knob) -> Value:
        """Returns what is in force then: some endpoints hold it to their own maximum."""
        before = await self.read(knob)
        await self._command(ENDLESS_W)
        await self._settle(knob, ENDLESS_W)
        after = await self.read(knob)
        return ENDLESS_W if after is None or before is None or after <= before else after

    async def _settle(self, knob: Knob, value: Value) -> None:
        """Wait a limited time: some endpoints show a limit while it moves to its target, and some show it late.

        Where a limit was to be taken away and nothing moves, the endpoint has no word for that, which shows soon.
        """
        loop = asyncio.get_running_loop()
        began_s = moved_at_s = loop.time()
        last: object = None
        patience_s = STILL_S if value is None else SETTLE_S
        while loop.time() - began_s < SETTLE_S and loop.time() - moved_at_s < patience_s:
            try:
                if await self._reads(knob, value):
                    return
                seen = (await self.read(knob),)
            except DeviceError:
                return  # reading it back will say why
            if self._is_target:
                return  # it does not move: this is what was accepted
            if seen != last:
                patience_s = patience_s if last is None else STILL_S
                last, moved_at_s = seen, loop.time()
            await asyncio.sleep(POLL_S)

    async def _reads(self, knob: Knob, value: Value) -> bool:
        seen = await self.read(knob)
        if seen is None or value is None:
            return seen is None and (value is None or self._is_none(value))
        return abs(seen - value) <= self.tolerance

    def _is_none(self, value: Value) -> bool:
        """Whether a limit in force amounts to none: at the maximum, or at the value that was sent to lift it."""
        if value is None or self.unit == "throttle_pct":
            return value is None
        tops = [top for top in (self._highest(), self._lifted_at) if top is not None]
        return value <= 0 or any(value >= top - self.tolerance for top in tops)

    def _highest(self) -> float | None:
        """The hardware's maximum for this limit, where it is known."""
        return None

    async def power_w(self) -> float | None:
        try:
            return (await self.at.telemetry()).cpu_power_w
        except NotSupportedError:
            return None

    async def close(self) -> None:
        """The connections are the client's."""

    def _within_range(self, target: float) -> Value:
        return target

    def _in_force(self, heard: NodeTelemetry) -> Value | UnsetType:
        """UNSET: the endpoint does not show it."""
        raise NotImplementedError

    def _discovered(self, told: NodeHardwareStatus | None, heard: NodeTelemetry) -> Discovered:
        known = told is not None and told.cpu is not None
        cpu = (told and told.cpu) or CpuHardware()
        caps = cpu.cap_range or SocketCapRange()
        return Discovered(
            self.kind,
            self.name,
            present=True,
            count=int(cpu.sockets or 0),
            raw_model=cpu.raw_model or cpu.model,
            vendor=cpu.vendor,
            min_w=_positive(caps.min_watts_per_socket),
            max_w=_positive(caps.max_watts_per_socket),
            no_telemetry=None if heard.cpu_power_w is not None else "the answer has no packagePowerWatts",
            quality="exact" if known else "heuristic",
        )


class HttpWatts(HttpCapper):
    """A power limit of all CPU packages together."""

    kind: Kind = "cpu"
    unit: Unit = "watts"
    mode = "rapl"
    action = "rapl.set_power_cap_watts"
    attribute = "capWatts"

    def _within_range(self, target: float) -> Value:
        found = self._found
        if found is None or not found.count:
            return _clamped(target, None, None, 1)
        return _clamped(target, found.min_w, found.max_w, found.count)

    def _highest(self) -> float | None:
        found = self._found
        return None if found is None or found.max_w is None or not found.count else found.max_w * found.count

    def _in_force(self, heard: NodeTelemetry) -> Value | UnsetType:
        """What was accepted, where the endpoint reports it apart from what is in force."""
        if heard.cpu is None:
            return UNSET
        target = heard.cpu.target_cap_watts
        self._is_target = target is not UNSET
        return heard.cpu.cap_watts if target is UNSET else target


class HttpThrottle(HttpCapper):
    """A throttle of all CPU cores."""

    kind: Kind = "cpu"
    unit: Unit = "throttle_pct"
    mode = "dvfs"
    action = "dvfs.set_throttle_pct"
    attribute = "throttlePct"
    released: Value = 0

    def _within_range(self, target: float) -> Value:
        return math.floor(min(max(target, 0.0), 100.0) + 0.5)  # whole percent: some endpoints take nothing else

    def _in_force(self, heard: NodeTelemetry) -> Value | UnsetType:
        shown = UNSET if heard.cpu is None else heard.cpu.throttle_pct
        return self.released if shown is None else shown


class HttpGpus(HttpCapper):
    """A power limit of each GPU board."""

    kind: Kind = "gpu"
    unit: Unit = "watts_each"
    action = "gpu.set_power_cap_watts"
    attribute = "capWattsPerGpu"

    async def power_w(self) -> float | None:
        try:
            heard = await self.at.telemetry()
        except NotSupportedError:
            return None
        return heard.gpu.power_watts_total if heard.gpu else None

    def _within_range(self, target: float) -> Value:
        found = self._found
        return _clamped(target, found.min_w if found else None, found.max_w if found else None, 1)

    def _highest(self) -> float | None:
        return self._found.max_w if self._found else None

    def _in_force(self, heard: NodeTelemetry) -> Value | UnsetType:
        """What was accepted: a board takes a moment to settle there."""
        if heard.gpu is None:
            raise NoDeviceError(f"{self.at.device}: the node has no GPU")
        target = heard.gpu.cap_watts_per_gpu_target
        self._is_target = target is not UNSET
        return heard.gpu.cap_watts_per_gpu_applied if target is UNSET else target

    def _discovered(self, told: NodeHardwareStatus | None, heard: NodeTelemetry) -> Discovered:
        known = told is not None and told.gpu is not None
        gpu, there = (told and told.gpu) or GpuHardware(), heard.gpu
        count = int(gpu.count or (there and there.count) or 0)
        present = count > 0 and not (there is not None and there.present is False)
        if not present:
            absent = "the node has no GPU"
            return Discovered(self.kind, self.name, False, no_control=absent, no_telemetry=absent)
        caps = gpu.cap_range_per_gpu or GpuCapRange()
        return Discovered(
            self.kind,
            self.name,
            present=True,
            count=count,
            raw_model=gpu.raw_model or gpu.model,
            vendor=gpu.vendor,
            min_w=_positive(caps.min_watts),
            max_w=_positive(caps.max_watts),
            default_w=_positive(caps.default_watts),
            current_w=(there.cap_watts_per_gpu_applied or None) if there else None,
            no_telemetry=None if there and there.power_watts_total is not None else "no powerWattsTotal",
            quality="exact" if known else "heuristic",
        )


HTTP_CAPPERS: tuple[type[HttpCapper], ...] = (HttpWatts, HttpThrottle, HttpGpus)  # in order of preference


def _clamped(target: float, low: float | None, high: float | None, count: int) -> Value:
    """Inside the range; the maximum is no limit at all."""
    if high is not None and target >= high * count:
        return None
    return round(max(target, 0.0 if low is None else low * count), 3)


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None
