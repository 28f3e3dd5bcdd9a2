"""Holding CPUs back by their highest frequency: one knob for each frequency policy.

The rules: docs/reference/behaviour.md, 'DVFS'.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from joulie.control.dvfs import frequency_limit_khz
from joulie.devices.host import Host
from joulie.devices.interface import (
    CpuFrequency,
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
from joulie.devices.sysfs import Meanings, SysFs
from joulie.settings import DvfsSettings

CPU_FOLDER = "devices/system/cpu"
MAX_FREQ = "scaling_max_freq"
DRIFT_SHARE = 0.01
_POLICY = re.compile(r"policy(\d+)")
_CPU = re.compile(r"cpu(\d+)")
# The driver answers so for a policy whose CPUs are all offline; its folder may stay.
_OFFLINE: Meanings = MappingProxyType({errno.EBUSY: (NoDeviceError, "all CPUs of this frequency policy are offline")})
_NO_POLICY = (
    "no frequency policy: the kernel has no cpufreq driver for this CPU (usual in virtual machines), or the host's"
    " /sys is not mounted with devices/system/cpu"
)
_NO_POWER = "frequency control measures no power"


def open_cpufreq(host: Host) -> Cpufreq:
    """This machine's frequency policies."""
    return Cpufreq(host.sysfs, host.dvfs)


class Cpufreq:
    """All frequency policies of the node, throttled alike between what was found and a floor."""

    kind: Kind = "cpu"
    name = "dvfs"
    unit: Unit = "throttle_pct"

    def __init__(self, sysfs: SysFs, settings: DvfsSettings) -> None:
        self._sysfs = sysfs
        self._settings = settings

    async def discover(self) -> Discovered:
        """How many policies can be throttled."""
        try:
            knobs = await self.knobs()
            self._sysfs.check_writable("/".join(knobs[0]))
        except DeviceError as error:
            policies = find_policies(self._sysfs)
            return Discovered(
                "cpu",
                self.name,
                present=bool(policies),
                count=len(policies),
                counts_packages=False,
                no_control=str(error),
                no_telemetry=_NO_POWER,
                quality="unavailable",
            )
        return Discovered(
            "cpu", self.name, present=True, count=len(knobs), counts_packages=False, no_telemetry=_NO_POWER
        )

    async def knobs(self) -> Sequence[Knob]:
        """The highest frequency of every policy that has a CPU online."""
        policies = find_policies(self._sysfs)
        if not policies:
            raise NoDeviceError(_NO_POLICY)
        knobs = [Knob(policy, MAX_FREQ) for policy in policies]
        online = [knob for knob in knobs if self._khz_or_none(knob.device, MAX_FREQ) is not None]
        if not online:
            self._khz(policies[0], MAX_FREQ)  # says why
        return online

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """The same throttle for every policy that is there; what is not a number throttles nothing."""
        throttle_pct = 0.0 if math.isnan(target) else target
        settings = [
            _setting(knob, self._limit_khz(knob, throttle_pct, int(found_khz), floor_khz))._replace(lower_is_fine=True)
            for knob, found_khz in found.items()
            if found_khz is not None and (floor_khz := self._floor_khz(knob.device)) is not None
        ]
        if not settings:
            raise NoDeviceError(f"none of the throttled frequency policies is there any more; {_NO_POLICY}")
        return settings

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What was found, inside what the hardware can do: with its boost off that is less than before."""
        return [
            _setting(knob, self._in_range(knob.device, value)) for knob, value in found.items() if value is not None
        ]

    def refuses(self, knob: Knob, found: Value) -> str | None:
        if knob.attribute != MAX_FREQ or knob.device not in find_policies(self._sysfs):
            return f"no frequency policy of this machine has {knob.attribute} at {knob.device} (any more)"
        return None if found is not None and found > 0 else f"{found} is not a frequency"

    def unlimited(self, knob: Knob) -> int:
        return self._khz(knob.device, "cpuinfo_max_freq")

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """The throttle of the policy that is throttled least; a policy whose floor was found in force has none."""
        throttles = []
        for knob, khz in values.items():
            found_khz, own_floor_khz = found.get(knob), self._floor_khz(knob.device)
            if khz is None or found_khz is None or own_floor_khz is None:
                continue
            floor_khz = frequency_limit_khz(100.0, int(found_khz), own_floor_khz, own_floor_khz, self._settings)
            span_khz = found_khz - floor_khz
            throttles.append(100.0 * max(0.0, found_khz - khz) / span_khz if span_khz > 0 else 0.0)
        return min(throttles, default=None)

    async def read(self, knob: Knob) -> int:
        return self._khz(knob.device, knob.attribute)

    async def write(self, knob: Knob, value: Value) -> None:
        if value is None:
            raise NotSupportedError(f"{knob.device}: cpufreq cannot remove a limit, only set one")
        self._sysfs.write("/".join(knob), int(value), _OFFLINE)

    async def power_w(self) -> None:
        """Frequency says nothing about power."""

    async def close(self) -> None:
        """Nothing is held open."""

    async def frequencies(self) -> Sequence[CpuFrequency]:
        return [frequency for policy in find_policies(self._sysfs) for frequency in self._of_policy(policy)]

    def _of_policy(self, policy: str) -> Iterator[CpuFrequency]:
        try:
            cpus = self._sysfs.read(f"{policy}/affected_cpus")
        except DeviceError:
            return
        current_khz = self._khz_or_none(policy, "scaling_cur_freq")
        max_khz = self._khz_or_none(policy, MAX_FREQ)
        yield from (CpuFrequency(int(cpu), current_khz, max_khz) for cpu in cpus.split() if cpu.isdecimal())

    def _limit_khz(self, knob: Knob, throttle_pct: float, found_khz: int, floor_khz: int) -> int:
        limit_khz = frequency_limit_khz(throttle_pct, found_khz, floor_khz, floor_khz, self._settings)
        lowest_khz = frequency_limit_khz(100.0, found_khz, floor_khz, floor_khz, self._settings)
        if limit_khz == found_khz:
            return limit_khz
        # A driver with a table of frequencies rounds down to one of them, and that is what would be read back.
        return max((khz for khz in self._table(knob.device) if lowest_khz <= khz <= limit_khz), default=limit_khz)

    def _floor_khz(self, policy: str) -> int | None:
        """The policy's own lowest frequency; None where it is offline or gone."""
        scaling_khz = self._khz_or_none(policy, "scaling_min_freq")
        if scaling_khz is None:
            return None
        return max(scaling_khz, self._khz_or_none(policy, "cpuinfo_min_freq") or 0)

    def _in_range(self, policy: str, khz: float) -> float:
        lowest_khz = self._khz_or_none(policy, "cpuinfo_min_freq") or khz
        return max(min(khz, self._khz_or_none(policy, "cpuinfo_max_freq") or khz), lowest_khz)

    def _table(self, policy: str) -> list[int]:
        try:
            listed = self._sysfs.read(f"{policy}/scaling_available_frequencies")
        except DeviceError:
            return []
        return [int(khz) for khz in listed.split() if khz.isdecimal()]

    def _khz(self, policy: str, attribute: str) -> int:
        return self._sysfs.integer(f"{policy}/{attribute}", _OFFLINE)

    def _khz_or_none(self, policy: str, attribute: str) -> int | None:
        return self._sysfs.integer_or_none(f"{policy}/{attribute}")


def find_policies(sysfs: SysFs) -> list[str]:
    """Every policy's folder, once: `cpuN/cpufreq` is a link to it, or on old kernels the folder itself."""
    policies = _numbered(_POLICY, sysfs.names(f"{CPU_FOLDER}/cpufreq"))
    if policies:
        return [f"/sys/{CPU_FOLDER}/cpufreq/{name}" for name in policies]
    folders = [f"{CPU_FOLDER}/{name}/cpufreq" for name in _numbered(_CPU, sysfs.names(CPU_FOLDER))]
    return list(dict.fromkeys(filter(None, map(sysfs.real, folders))))


def _numbered(pattern: re.Pattern[str], names: Sequence[str]) -> list[str]:
    matches = [match for name in names if (match := pattern.fullmatch(name))]
    return [match[0] for match in sorted(matches, key=lambda match: int(match[1]))]


def _setting(knob: Knob, value: float) -> Setting:
    return Setting(knob, value, DRIFT_SHARE * value)
