"""The CPU packages among the powercap zones.

What a zone is, its `name` says, never its path: ids are hexadecimal and follow the order of registration; psys,
core, uncore and dram are zones too; `intel-rapl-mmio` shows a package a second time through other registers; and each
zone is reached by several paths.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from joulie.devices.interface import DeviceError, Knob
from joulie.devices.sysfs import SysFs

LONG_TERM, SHORT_TERM = "long_term", "short_term"
ENABLED = "enabled"
_FOLDERS = ("class/powercap", "devices/virtual/powercap/intel-rapl", "devices/virtual/powercap/intel-rapl-mmio")
_PACKAGE = re.compile(r"package-(\d+)(?:-die-(\d+))?")
_CONSTRAINT_NAME = re.compile(r"(constraint_\d+)_name")


class Zone(NamedTuple):
    """A package, or one die of it."""

    device: str
    name: str
    package: int
    die: int
    long_term: str | None  # constraint_N
    short_term: str | None
    has_enabled: bool

    @property
    def is_mmio(self) -> bool:
        return "/intel-rapl-mmio" in self.device

    @property
    def limit(self) -> Knob | None:
        """The long-term power limit."""
        return self._limit(self.long_term)

    @property
    def short_limit(self) -> Knob | None:
        return self._limit(self.short_term)

    @property
    def switch(self) -> Knob | None:
        """Whether the limits are in force at all."""
        return Knob(self.device, ENABLED) if self.has_enabled else None

    @property
    def max_power(self) -> str:
        """Path of the TDP; may hold 0, may be missing, and is no hard ceiling."""
        return f"{self.device}/{self.long_term}_max_power_uw"

    @property
    def energy(self) -> str:
        return f"{self.device}/energy_uj"

    @property
    def energy_range(self) -> str:
        return f"{self.device}/max_energy_range_uj"

    def _limit(self, constraint: str | None) -> Knob | None:
        return None if constraint is None else Knob(self.device, f"{constraint}_power_limit_uw")


class Zones(NamedTuple):
    """The packages in their order, and the second views of them."""

    packages: tuple[Zone, ...]
    doubles: tuple[Zone, ...]

    def dies_of(self, zone: Zone) -> int:
        """How many zones the zone's package has."""
        return sum(other.package == zone.package for other in self.packages)

    @property
    def package_count(self) -> int:
        """Packages, however many dies they have."""
        return len({zone.package for zone in self.packages})


def find_zones(sysfs: SysFs) -> Zones:
    """Scan all zones. Of two views of a package the one with a power limit counts, then the one by MSR."""
    devices = {sysfs.real(f"{folder}/{name}") for folder in _FOLDERS for name in sysfs.names(folder) if ":" in name}
    found = [zone for device in sorted(filter(None, devices)) if (zone := _zone(sysfs, device)) is not None]
    found.sort(key=lambda zone: (zone.package, zone.die, zone.long_term is None, zone.is_mmio, zone.device))
    chosen: dict[str, Zone] = {}
    doubles = [zone for zone in found if chosen.setdefault(zone.name, zone) is not zone]
    return Zones(tuple(chosen.values()), tuple(doubles))


def _zone(sysfs: SysFs, device: str) -> Zone | None:
    try:
        name = sysfs.read(f"{device}/name")
    except DeviceError:  # it went away meanwhile
        return None
    package = _PACKAGE.fullmatch(name)
    if package is None:
        return None
    files = sysfs.names(device)
    constraints = _constraints(sysfs, device, files)
    return Zone(
        device=device,
        name=name,
        package=int(package[1]),
        die=int(package[2] or 0),
        long_term=constraints.get(LONG_TERM),
        short_term=constraints.get(SHORT_TERM),
        has_enabled=ENABLED in files,
    )


def _constraints(sysfs: SysFs, device: str, files: list[str]) -> dict[str, str]:
    """constraint_N by its name: the numbers differ between machines."""
    by_name: dict[str, str] = {}
    for match in filter(None, map(_CONSTRAINT_NAME.fullmatch, files)):
        if f"{match[1]}_power_limit_uw" not in files:
            continue
        try:
            by_name.setdefault(sysfs.read(f"{device}/{match[0]}"), match[1])
        except DeviceError:  # a constraint that does not say what it limits is left alone
            continue
    return by_name
