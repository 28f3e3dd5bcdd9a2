"""What the agent needs of any device: discover, read, set, restore.

A backend offers *knobs*: single values on a device that can be read and written. What is done with them is the same
for every backend and lives in the agent: record what was found, write, read back, notice drift, restore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from joulie.errors import JoulieError
from joulie.model.api.hardware import QualityLevel

Value = int | float | None  # None: no limit is set (only backends that can take a limit away)
Kind = Literal["cpu", "gpu"]
Unit = Literal["watts", "watts_each", "throttle_pct"]


class DeviceError(JoulieError):
    """A device did not do what it should. The message says what, where, and what a person can do."""

    result: ClassVar[Literal["blocked", "error"]] = "error"


class NoPermissionError(DeviceError):
    """The process may not read or write it."""

    result = "blocked"


class NotSupportedError(DeviceError):
    """The hardware, its driver or this kernel cannot do it."""

    result = "blocked"


class NoDeviceError(DeviceError):
    """There is no such device (any more)."""

    result = "blocked"


class LockedError(DeviceError):
    """The firmware or another program holds the value."""

    result = "blocked"


class WriteIgnoredError(DeviceError):
    """The write was accepted without an error, but reading back shows no effect."""


class BadReadingError(DeviceError):
    """A reading is not a number or cannot be true."""


class DeviceFaultError(DeviceError):
    """The device, its driver or the connection to it failed; the next try may work."""


class Knob(NamedTuple):
    """One value on one device. The name is stable while the machine runs, whatever order devices are found in."""

    device: str  # real path, UUID, PCI address or URL
    attribute: (
        str  # with its unit as the hardware has it: constraint_0_power_limit_uw, scaling_max_freq, power_limit_mw
    )


NOTHING_FOUND: Mapping[Knob, Value] = MappingProxyType({})


class Setting(NamedTuple):
    """A knob and the value it should have."""

    knob: Knob
    value: Value
    tolerance: float = 0.0  # a value read back that differs by no more than this is the same
    lower_is_fine: bool = False  # firmware may hold it lower for a while, as in heat; that is no drift


class Discovered(Struct, frozen=True):
    """What a backend found on the node. What is not known is None, never 0."""

    kind: Kind
    backend: str
    present: bool
    count: int = 0
    raw_model: str | None = None
    vendor: str | None = None
    min_w: float | None = None  # of each package or board, as the hardware says
    max_w: float | None = None
    default_w: float | None = None
    current_w: float | None = None
    no_control: str | None = None  # why caps cannot be set; None: they can
    no_telemetry: str | None = None  # why power cannot be read; None: it can
    quality: QualityLevel = "exact"
    warnings: tuple[str, ...] = ()
    counts_packages: bool = True  # `count` is of packages or boards; False: of something finer, such as policies


class Address(NamedTuple):
    """Where a device behind HTTP is: a name that may be shown, and its addresses, credentials included."""

    device: str
    control: str
    telemetry: str


@runtime_checkable
class RemoteCapper(Protocol):
    """A backend of a remote device, which acknowledges each command.

    Until it has acknowledged one it does not count as working, whatever can be read from it.
    """

    @property
    def address(self) -> Address: ...

    @property
    def acknowledged(self) -> bool: ...

    @property
    def reads_back(self) -> bool:
        """Whether it shows what it holds; else all that is known is what it acknowledged."""
        ...


@runtime_checkable
class PartialCapper(Protocol):
    """A backend that may be able to limit some of its devices and not the others."""

    @property
    def uncapped(self) -> Sequence[DeviceError]:
        """Why the others cannot be limited, one reason each; empty: all can."""
        ...


@runtime_checkable
class BurstCapper(Protocol):
    """A backend whose devices may draw more than their limit for moments, unless told not to."""

    allows_bursts: bool


class Capper(Protocol):
    """One way to limit one kind of device of one node.

    The target is in watts of all CPU packages together, in watts of each GPU board, or in percent of throttle (0 is
    none, 100 is down to the floor), as the backend's `unit` says.
    """

    kind: Kind
    name: str  # as it stands in controlStatus.backend and in the journal
    unit: Unit

    async def discover(self) -> Discovered:
        """Look again at what is there. Never raises for what is absent or not permitted: the answer says so."""
        ...

    async def knobs(self) -> Sequence[Knob]:
        """What would be written to now; a DeviceError with the reason where nothing can be."""
        ...

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """The value of each knob for this target, in the order of writing, always inside the hardware's range.

        Never above what was found before the first write: 100 % means as found, not more.
        """
        ...

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What restores the knobs, in the order of writing."""
        ...

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """What these values of its knobs amount to, in the backend's unit; None: no limit, or not known."""
        ...

    async def read(self, knob: Knob) -> Value:
        """The value that is in force, which may differ from the one asked for."""
        ...

    async def write(self, knob: Knob, value: Value) -> None:
        """Ask for a value. Whether it is in force, reading shows."""
        ...

    def refuses(self, knob: Knob, found: Value) -> str | None:
        """Why this value is not put back there; None: it may be.

        A journal can be old or forged: only knobs that the backend itself names are written, inside their range.
        """
        ...

    def unlimited(self, knob: Knob) -> Value:
        """The hardware's own default or maximum; a DeviceError where it is not known."""
        ...

    async def power_w(self) -> float | None:
        """What all devices of this kind draw together; None where one reading is not enough or none is to be had."""
        ...

    async def close(self) -> None:
        """Close what was opened; writes nothing."""
        ...


class ZonePower(NamedTuple):
    """What one zone drew since the last reading; None for a first reading, or one that cannot be true."""

    zone: str
    energy_uj: int
    power_w: float | None


@runtime_checkable
class EnergyReader(Protocol):
    """A backend that counts energy by zone."""

    async def zone_powers(self) -> Sequence[ZonePower]:
        """Each zone's energy counter and power, for the metrics; a DeviceError where one cannot be read."""
        ...


class CpuFrequency(NamedTuple):
    """One CPU at one moment; None where it cannot be read."""

    cpu: int
    current_khz: int | None
    max_khz: int | None


@runtime_checkable
class FrequencyReader(Protocol):
    """A backend that reads frequencies."""

    async def frequencies(self) -> Sequence[CpuFrequency]:
        """Every online CPU's frequency now and at most, for the metrics."""
        ...
