"""Power limits and energy counters of CPU packages through powercap, as in Intel's RAPL.

The rules: docs/reference/behaviour.md, 'RAPL'.
"""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from joulie.devices.host import Host
from joulie.devices.interface import (
    NOTHING_FOUND,
    DeviceError,
    Discovered,
    Kind,
    Knob,
    LockedError,
    NoDeviceError,
    NotSupportedError,
    Setting,
    Unit,
    Value,
    ZonePower,
)
from joulie.devices.package_watts import (
    BELIEVABLE_LIMIT_W,
    MAX_LIMIT_W,
    MIN_SHARE,
    PackageMax,
    drift_tolerance,
    known_max_w,
    limit,
    package_max,
    shares_w,
)
from joulie.devices.rapl.energy import Counter, EnergyMeter
from joulie.devices.rapl.zones import ENABLED, Zone, Zones, find_zones
from joulie.devices.sysfs import Meanings, SysFs, why_not

PER_W = 1_000_000
SHORT_TIMES_LONG = 1.2

_LOCKED = "the BIOS has locked the power limits; unlock them in the firmware's setup, or use frequency instead"
# The file could be opened, so this is not about permissions: it is how the driver reports the lock bit.
_REFUSED: Meanings = MappingProxyType({errno.EACCES: (LockedError, _LOCKED)})
_NO_ZONE = (
    "no powercap zone of a CPU package: the CPU or a virtual machine has none, the module intel_rapl_msr is not"
    " loaded, or the host's /sys is not mounted with class/powercap and devices/virtual/powercap"
)


def open_rapl(host: Host) -> Rapl:
    """This machine's CPU packages."""
    return Rapl(host.sysfs, time.monotonic, host.cpu_max_w, host.found)


class Rapl:
    """The node's CPU packages, capped by their long-term and short-term power limits.

    Without `allows_bursts` both limits are the same, and set even where the long-term one does not hold anything back.

    `found` is what was in force before Joulie first wrote, as the caller's journal has it, always up to date: once a
    package is capped, its limit no longer shows its maximum. `catalogue_max_w` is of one socket.
    """

    kind: Kind = "cpu"
    name = "rapl"
    unit: Unit = "watts"

    def __init__(
        self,
        sysfs: SysFs,
        clock_s: Callable[[], float],
        catalogue_max_w: float | None = None,
        found: Mapping[Knob, Value] = NOTHING_FOUND,
    ) -> None:
        self._sysfs = sysfs
        self._clock_s = clock_s
        self._catalogue_max_w = catalogue_max_w
        self._found = found
        self._meter = EnergyMeter()
        self.allows_bursts = True

    async def discover(self) -> Discovered:
        """What the packages can do."""
        zones = find_zones(self._sysfs)
        if not zones.packages:
            return Discovered(
                "cpu", self.name, False, no_control=_NO_ZONE, no_telemetry=_NO_ZONE, quality="unavailable"
            )
        maxima = [self._max(zone, zones, self._found) for zone in zones.packages]
        known = [maximum for maximum in maxima if maximum is not None]
        max_w = math.fsum(m.watts for m in known) / zones.package_count if len(known) == len(maxima) else None
        limits = [self._sysfs.integer_or_none("/".join(zone.limit)) for zone in zones.packages if zone.limit]
        in_force = [value for value in limits if value is not None]
        return Discovered(
            kind="cpu",
            backend=self.name,
            present=True,
            count=zones.package_count,
            max_w=max_w,
            current_w=sum(in_force) / PER_W / zones.package_count if in_force else None,
            no_control=why_not(lambda: self._check_control(zones, self._found)),
            no_telemetry=why_not(lambda: self._counters(zones)),
            quality="exact" if all(m is not None and m.origin == "hardware" for m in maxima) else "heuristic",
            warnings=(*_origin_warnings(known), *self._double_warnings(zones)),
        )

    async def knobs(self) -> Sequence[Knob]:
        """Long-term limit, short-term limit and switch of every package, as far as it has them."""
        zones = find_zones(self._sysfs)
        self._check_control(zones, self._found)
        return [knob for zone in zones.packages for knob in _knobs(zone)]

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """The node's watts split over the packages that are there; at their maximum and above, all as found.

        Without bursts the maximum is a limit as any other.
        """
        zones = find_zones(self._sysfs)
        there = [zone for zone in zones.packages if zone.limit in found]
        if not there:
            raise NoDeviceError(f"none of the capped packages is there any more; {_NO_ZONE}")
        maxima_w = [self._known_max_w(zone, zones, found) for zone in there]
        shares = shares_w(target, maxima_w)
        if shares is None and not self.allows_bursts:
            shares = maxima_w
        if shares is None:
            return self.restoring({knob: found[knob] for zone in there for knob in _knobs(zone) if knob in found})
        settings = []
        for zone, max_w, share_w in zip(there, maxima_w, shares, strict=True):
            limit_uw = limit(share_w, max_w, _found_limit(zone, found), PER_W)
            settings += _capped(zone, limit_uw, found, SHORT_TIMES_LONG if self.allows_bursts else 1.0)
        return settings

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What was found: of each package the limits first, then whether they are in force."""
        ordered = sorted(found, key=lambda knob: (knob.device, knob.attribute == ENABLED, knob.attribute))
        return [_setting(knob, value) for knob in ordered if isinstance(value := found[knob], int | float)]

    def refuses(self, knob: Knob, found: Value) -> str | None:
        zones = find_zones(self._sysfs)
        zone = next((zone for zone in zones.packages if knob in _knobs(zone)), None)
        if zone is None:
            return f"no package zone of this machine has {knob.attribute} at {knob.device} (any more)"
        if knob.attribute == ENABLED:
            return None if found in (0, 1) else f"{found} is neither on nor off"
        max_w = (maximum.watts if (maximum := self._max(zone, zones, NOTHING_FOUND)) else 0.0) * PER_W
        if found is None or (found != 0 and not MIN_SHARE * max_w <= found <= MAX_LIMIT_W * PER_W):
            return f"{found} µW is not a limit that this package can have"
        return None

    def unlimited(self, knob: Knob) -> int:
        """The maximum that the hardware or the catalogue states; never what is in force now."""
        zones = find_zones(self._sysfs)
        zone = next((zone for zone in zones.packages if knob in _knobs(zone)), None)
        if zone is not None and knob.attribute == ENABLED:
            return 1
        maximum = None if zone is None else self._max(zone, zones, NOTHING_FOUND)
        if maximum is None or maximum.origin == "found":
            raise NotSupportedError(f"{knob.device}: neither the hardware nor the catalogue says its maximum")
        times = SHORT_TIMES_LONG if zone is not None and knob == zone.short_limit else 1.0
        return math.floor(times * maximum.watts * PER_W)

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """The long-term limits of all packages together; without bursts none is below its short-term limit."""
        zones = [zone for zone in find_zones(self._sysfs).packages if zone.limit is not None]
        limits = [self._held_uw(zone, values) for zone in zones]
        known = [limit for limit in limits if limit is not None]
        return math.fsum(known) / PER_W if known and len(known) == len(limits) else None

    def _held_uw(self, zone: Zone, values: Mapping[Knob, Value]) -> Value:
        held = None if zone.limit is None else values.get(zone.limit)
        short = None if zone.short_limit is None or self.allows_bursts else values.get(zone.short_limit)
        return held if held is None or short is None else max(held, short)

    async def read(self, knob: Knob) -> int:
        return self._sysfs.integer("/".join(knob))

    async def write(self, knob: Knob, value: Value) -> None:
        """LockedError where the driver refuses an opened file, or keeps the switch off: both mean the lock bit."""
        if value is None:
            raise NotSupportedError(f"{knob.device}: powercap cannot remove a limit, only set one")
        path = "/".join(knob)
        self._sysfs.write(path, int(value), _REFUSED)
        if knob.attribute == ENABLED and value and not self._sysfs.integer(path):
            raise LockedError(f"{path} stays 0: {_LOCKED}")

    async def power_w(self) -> float | None:
        """All packages together, since the last reading."""
        try:
            powers = [zone.power_w for zone in await self.zone_powers()]
        except DeviceError:  # `discover` and `zone_powers` say why
            return None
        known = [power_w for power_w in powers if power_w is not None]
        return math.fsum(known) if powers and len(known) == len(powers) else None

    async def zone_powers(self) -> Sequence[ZonePower]:
        zones = find_zones(self._sysfs)
        counters = self._counters(zones)
        self._meter.forget_all_but({counter.zone for counter in counters})
        now_s = self._clock_s()
        return [self._meter.power(counter, now_s) for counter in counters]

    async def close(self) -> None:
        """Nothing is held open."""

    def _counters(self, zones: Zones) -> list[Counter]:
        counters = []
        for zone in zones.packages:
            energy_uj = self._sysfs.integer(zone.energy)
            range_uj = self._sysfs.integer_or_none(zone.energy_range) or 0
            counters.append(Counter(zone.name, energy_uj, range_uj, self._most_w(zone, zones)))
        return counters

    def _max(self, zone: Zone, zones: Zones, found: Mapping[Knob, Value]) -> PackageMax | None:
        hardware_uw = self._sysfs.integer_or_none(zone.max_power) if zone.long_term else None
        found_uw = _found_limit(zone, found)
        if found_uw is None and zone.limit is not None:
            found_uw = self._sysfs.integer_or_none("/".join(zone.limit))
        return package_max(
            None if hardware_uw is None else hardware_uw / PER_W,
            None if self._catalogue_max_w is None else self._catalogue_max_w / zones.dies_of(zone),
            None if found_uw is None else found_uw / PER_W,
        )

    def _known_max_w(self, zone: Zone, zones: Zones, found: Mapping[Knob, Value]) -> float:
        return known_max_w(self._max(zone, zones, found), zone.name)

    def _most_w(self, zone: Zone, zones: Zones) -> float | None:
        """What the zone can draw for a while: TDP, or a limit above it, as firmware often sets."""
        maximum = self._max(zone, zones, self._found)
        candidates_w = [0.0 if maximum is None else maximum.watts]
        for knob in (zone.limit, zone.short_limit):
            if knob is not None:
                value = self._found.get(knob) or self._sysfs.integer_or_none("/".join(knob)) or 0
                candidates_w.append(value / PER_W)
        return max((w for w in candidates_w if w < BELIEVABLE_LIMIT_W), default=0.0) or None

    def _check_control(self, zones: Zones, found: Mapping[Knob, Value]) -> None:
        """A DeviceError with the reason where the packages cannot be capped."""
        if not zones.packages:
            raise NoDeviceError(_NO_ZONE)
        for zone in zones.packages:
            if zone.limit is None:
                raise NotSupportedError(
                    f"{zone.device} counts energy but has no power limit, as on most AMD: use HSMP or frequency"
                )
            path = "/".join(zone.limit)
            if not self._sysfs.integer(path) and not found.get(zone.limit) and not self._tdp_uw(zone):
                raise NotSupportedError(f"{path} and its maximum say 0: there is no limit behind it; use frequency")
            self._known_max_w(zone, zones, found)
            self._sysfs.check_writable(path)

    def _tdp_uw(self, zone: Zone) -> int | None:
        return self._sysfs.integer_or_none(zone.max_power)

    def _double_warnings(self, zones: Zones) -> list[str]:
        """Both views limit the same package and the lower one wins, so a lower second view deserves a warning."""
        warnings = []
        of_name = {zone.name: zone for zone in zones.packages}
        for double in zones.doubles:
            chosen = of_name[double.name]
            if double.limit is None or chosen.limit is None:
                continue
            theirs = self._sysfs.integer_or_none("/".join(double.limit))
            ours = self._sysfs.integer_or_none("/".join(chosen.limit))
            if theirs and ours and theirs < ours:
                warnings.append(f"{double.name} is held to {theirs / PER_W:g} W by {double.device} already")
        return warnings


def _found_limit(zone: Zone, found: Mapping[Knob, Value]) -> Value:
    return None if zone.limit is None else found.get(zone.limit)


def _knobs(zone: Zone) -> list[Knob]:
    return [knob for knob in (zone.limit, zone.short_limit, zone.switch) if knob is not None]


def _capped(zone: Zone, limit_uw: int, found: Mapping[Knob, Value], short_times: float) -> list[Setting]:
    assert zone.limit is not None
    settings = [_setting(zone.limit, limit_uw)]
    if zone.short_limit is not None and (found_short := found.get(zone.short_limit)) is not None:
        settings.append(_setting(zone.short_limit, min(found_short, math.floor(short_times * limit_uw))))
    if zone.switch is not None and zone.switch in found:
        settings.append(_setting(zone.switch, 1))
    return settings


def _setting(knob: Knob, value: float) -> Setting:
    return Setting(knob, value, 0.0 if knob.attribute == ENABLED else drift_tolerance(value, PER_W))


def _origin_warnings(maxima: Sequence[PackageMax]) -> list[str]:
    origins = {maximum.origin for maximum in maxima}
    warnings = []
    if "catalogue" in origins:
        warnings.append("the hardware does not say its maximum power; the catalogue's value is used")
    if "found" in origins:
        warnings.append("neither hardware nor catalogue says the maximum power; the limit found at the start is used")
    return warnings
