"""What the agent needs of a device, whichever it is: find out, read, set, put back.

A backend offers *knobs*: single values on a device that can be read and written. What to do with them is the same for
all of them and stands in the agent alone: note what was found, write, read back, notice drift, restore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol

from msgspec import Struct

from joulie.errors import JoulieError
from joulie.model.api.hardware import QualityLevel

Value = int | float | None  # None: no limit is set (only backends that can take a limit away)
Kind = Literal["cpu", "gpu"]
Unit = Literal["watts", "watts_each", "throttle_pct"]


class DeviceError(JoulieError):
    """Something about a device did not work. The message says what, where, and what a person can do."""

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
    """The firmware holds the value, or somebody else does and would not let go."""

    result = "blocked"


class WriteIgnoredError(DeviceError):
    """The write was taken without complaint, and reading back shows that nothing came of it."""


class BadReadingError(DeviceError):
    """What was read is no number or cannot be true."""


class DeviceFaultError(DeviceError):
    """The device, its driver or the way to it failed; it may work the next time."""


class Knob(NamedTuple):
    """One value on one device. Its name holds for as long as the machine runs, whatever order things are found in."""

    device: str  # real path, UUID, PCI address or URL
    attribute: (
        str  # with its unit as the hardware has it: constraint_0_power_limit_uw, scaling_max_freq, power_limit_mw
    )


class Setting(NamedTuple):
    """A knob and what it is to be."""

    knob: Knob
    value: Value
    tolerance: float = 0.0  # a value read back that differs by no more than this is the same
    lower_is_fine: bool = False  # firmware may hold it lower for a while, as in heat, without anybody's contest


class Discovered(Struct, frozen=True):
    """What a backend found on the node. What is not known is None, never 0."""

    kind: Kind
    backend: str
    present: bool
    count: int = 0  # packages, frequency policies or boards
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


class Capper(Protocol):
    """One way to hold back one kind of device of one node.

    The target is in watts of all CPU packages together, in watts of each GPU board, or in percent of throttle (0 is
    none, 100 is down to the floor), as the backend's `unit` says.
    """

    kind: Kind
    name: str  # as it stands in controlStatus.backend: rapl, dvfs, hsmp, nvidia, amd, http, fake
    unit: Unit

    async def discover(self) -> Discovered:
        """Look anew at what is there. Never raises for what is merely absent or not allowed: it says so."""
        ...

    async def knobs(self) -> Sequence[Knob]:
        """What would be written to, now; a DeviceError with the reason where nothing can be."""
        ...

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What each knob is to be for this target, in the order of writing, always inside the hardware's range.

        Never above what was found before the first write: 100 % means as found, not more.
        """
        ...

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What puts the knobs back, in the order of writing."""
        ...

    async def read(self, knob: Knob) -> Value:
        """The value that is in force, which may differ from the one asked for."""
        ...

    async def write(self, knob: Knob, value: Value) -> None:
        """Ask for a value. Whether it came into force is found out by reading."""
        ...

    async def power_w(self) -> float | None:
        """What all devices of this kind draw together; None where one look is not enough or nothing can be read."""
        ...

    async def close(self) -> None:
        """Let go of what was opened; writes nothing."""
        ...
