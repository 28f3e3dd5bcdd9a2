"""Devices behind an HTTP endpoint, as the simulator offers them (SPEC 8): a CPU by watts or throttle, GPUs by watts.

The cappers of a node share one `HttpNode`, which asks once for what all of them want to know. Restoring takes the limit
away: what was found may be the cap of another agent of the pool, and the interface has a word for "none".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from joulie.devices.http_client import HttpNode, Telemetry
from joulie.devices.interface import (
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


class HttpCapper:
    """One limit of one node: which, depends on `action`, `attribute` and `unit`."""

    name = "http"
    kind: Kind
    unit: Unit
    action: str
    attribute: str
    released: Value = None  # what takes the limit away
    tolerance = 1.0

    def __init__(self, at: HttpNode, node: str) -> None:
        self.at = at
        self._node = node
        self._found: Discovered | None = None

    async def discover(self) -> Discovered:
        """From `/state` where it tells of hardware; that the endpoint answers at all is asked of `/telemetry`."""
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
        return (Knob(self.at.control_url, self.attribute),)

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        value = self._within_range(target) if math.isfinite(target) else self.released
        return [Setting(knob, value, self.tolerance) for knob in found]

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        return [Setting(knob, self.released, self.tolerance) for knob in found]

    async def read(self, knob: Knob) -> Value:
        value = self._in_force(await self.at.telemetry())
        if value is not None and not math.isfinite(value):
            raise BadReadingError(f"{self.at.telemetry_url}: {self.attribute} is {value}")
        return value

    async def write(self, knob: Knob, value: Value) -> None:
        await self.at.control(self.action, self.attribute, value, self._node)

    async def power_w(self) -> float | None:
        try:
            return (await self.at.telemetry()).cpu_power_w
        except NotSupportedError:
            return None

    async def close(self) -> None:
        """The connections are the client's."""

    def _within_range(self, target: float) -> Value:
        return target

    def _in_force(self, heard: Telemetry) -> Value:
        raise NotImplementedError

    def _discovered(self, told: NodeHardwareStatus | None, heard: Telemetry) -> Discovered:
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
    action = "rapl.set_power_cap_watts"
    attribute = "capWatts"

    def _within_range(self, target: float) -> Value:
        found = self._found
        if found is None or not found.count:
            return _clamped(target, None, None, 1)
        return _clamped(target, found.min_w, found.max_w, found.count)

    def _in_force(self, heard: Telemetry) -> Value:
        if heard.cpu is None:
            raise NotSupportedError(f"{self.at.telemetry_url}: the answer has no cpu.capWatts")
        return heard.cpu.cap_watts


class HttpThrottle(HttpCapper):
    """A throttle of all CPU cores."""

    kind: Kind = "cpu"
    unit: Unit = "throttle_pct"
    action = "dvfs.set_throttle_pct"
    attribute = "throttlePct"
    released: Value = 0.0

    def _within_range(self, target: float) -> Value:
        return min(max(target, 0.0), 100.0)

    def _in_force(self, heard: Telemetry) -> Value:
        if heard.cpu is None or heard.cpu.throttle_pct is None:
            raise NotSupportedError(f"{self.at.telemetry_url}: the answer has no cpu.throttlePct")
        return heard.cpu.throttle_pct


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

    def _in_force(self, heard: Telemetry) -> Value:
        """What was accepted: a board takes a moment to settle there."""
        if heard.gpu is None:
            raise NoDeviceError(f"{self.at.telemetry_url}: the node has no GPU")
        target = heard.gpu.cap_watts_per_gpu_target
        return heard.gpu.cap_watts_per_gpu_applied if target is UNSET else target

    def _discovered(self, told: NodeHardwareStatus | None, heard: Telemetry) -> Discovered:
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
            current_w=there.cap_watts_per_gpu_applied if there else None,
            no_telemetry=None if there and there.power_watts_total is not None else "no powerWattsTotal",
            quality="exact" if known else "heuristic",
        )


def _clamped(target: float, low: float | None, high: float | None, count: int) -> Value:
    """Inside the range; the maximum is no limit at all."""
    if high is not None and target >= high * count:
        return None
    return round(max(target, 0.0 if low is None else low * count), 3)


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None
