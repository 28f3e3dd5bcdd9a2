"""The one capper of GPU boards; what differs between vendors is the library that it talks through."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from joulie.devices.gpu.boards import BELIEVABLE_LIMIT_W, TOLERANCE_W, Board, BoardScan, describe, limit_for
from joulie.devices.gpu.bounded_calls import CALL_LIMIT_S, BoundedCalls
from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    Discovered,
    Kind,
    Knob,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
    Setting,
    Unit,
    Value,
)


class BoardLibrary(Protocol):
    """Access to a vendor's boards. Every call may block, and raises nothing but DeviceErrors."""

    name: str  # as it stands in controlStatus.backend
    vendor: str
    attribute: str  # of the knobs, with its unit
    units_per_w: int

    def scan(self) -> BoardScan:
        """All boards, read again."""
        ...

    def limit(self, device: str) -> int:
        """The limit in force."""
        ...

    def set_limit(self, device: str, limit: int) -> None:
        """Ask for a limit."""
        ...

    def power_w(self, device: str) -> float:
        """What the board draws now."""
        ...

    def close(self) -> None:
        """Let go of the library."""
        ...


class GpuCapper:
    """A limit in watts for each board of one vendor.

    What was last seen of a board is kept: it is still known when the board or its driver has gone away.
    """

    kind: Kind = "gpu"
    unit: Unit = "watts_each"

    def __init__(self, library: BoardLibrary, call_limit_s: float = CALL_LIMIT_S) -> None:
        self.name = library.name
        self._library = library
        self._calls = BoundedCalls(f"{library.vendor} GPUs", call_limit_s)
        self._latest = BoardScan(())
        self._known: dict[str, Board] = {}
        self._refused: NoPermissionError | None = None

    async def discover(self) -> Discovered:
        """Also says what the last write showed: whether limits may be set cannot be asked without setting one."""
        failure: DeviceError | None = None
        try:
            await self._scan()
        except DeviceError as error:
            failure = error
        library = self._library
        seen = describe(library.name, library.vendor, library.units_per_w, self._latest, failure or self._refused)
        return replace(seen, no_telemetry=str(failure)) if failure else seen

    async def knobs(self) -> Sequence[Knob]:
        boards = (await self._scan()).boards
        open_to_us = [board for board in boards if board.no_control is None]
        if not open_to_us:
            raise next(
                (board.no_control for board in boards if board.no_control),
                NoDeviceError(f"no {self._library.vendor} GPU was found"),
            )
        return [Knob(board.device, self._library.attribute) for board in open_to_us]

    @property
    def uncapped(self) -> Sequence[DeviceError]:
        return [board.no_control for board in self._latest.boards if board.no_control is not None]

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """Watts of each board; infinity is 100 %, as found. Each board is held within its own range."""
        units_per_w = self._library.units_per_w
        return [
            Setting(knob, limit, TOLERANCE_W * units_per_w)
            for knob, value in sorted(found.items(), key=lambda item: item[0])
            if knob.attribute == self._library.attribute
            and (limit := limit_for(self._known.get(knob.device), target * units_per_w, value, units_per_w)) is not None
        ]

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What was found, but no more than the board's default; defaults are known after `discover` or `knobs`."""
        return self.settings(math.inf, found)

    def refuses(self, knob: Knob, found: Value) -> str | None:
        if knob.attribute != self._library.attribute:
            return f"{self._library.vendor} boards have no {knob.attribute}"
        if self._latest.boards and knob.device not in self._known:
            return f"no {self._library.vendor} board {knob.device} is there (any more)"
        return None if found is not None and found > 0 else f"{found} is not a limit"

    def unlimited(self, knob: Knob) -> int:
        board = self._known.get(knob.device)
        top = (board.default or board.highest) if board else None
        if top is None:
            raise NotSupportedError(f"{knob.device}: the board reports neither its default limit nor its highest")
        return top

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """The highest limit of a board: none draws more."""
        limits = [value for value in values.values() if value is not None]
        return max(limits) / self._library.units_per_w if limits else None

    async def read(self, knob: Knob) -> Value:
        limit = await self._calls(lambda: self._library.limit(knob.device))
        if not 0 < limit <= BELIEVABLE_LIMIT_W * self._library.units_per_w:
            raise BadReadingError(f"{knob.device}: {self._library.attribute} is {limit}, which cannot be true")
        return limit

    async def write(self, knob: Knob, value: Value) -> None:
        if value is None or not math.isfinite(value) or value <= 0:
            raise DeviceFaultError(f"{knob.device}: {self._library.attribute} cannot be set to {value}")
        limit = int(value)
        try:
            await self._calls(lambda: self._library.set_limit(knob.device, limit))
        except NoPermissionError as error:
            self._refused = error
            raise
        self._refused = None

    async def power_w(self) -> float | None:
        """The sum over all boards, or None: a sum without one of them would be too low."""
        try:
            boards = self._latest.boards or (await self._scan()).boards
            if not boards:
                return None
            watts = await self._calls(lambda: [self._library.power_w(board.device) for board in boards])
        except DeviceError:
            return None
        return math.fsum(watts) if all(math.isfinite(drawn) and drawn >= 0 for drawn in watts) else None

    async def close(self) -> None:
        try:
            await self._calls(self._library.close)
        except DeviceError:
            return  # it hangs, or is gone already: there is nothing left to let go of

    async def _scan(self) -> BoardScan:
        self._latest = await self._calls(self._library.scan)
        self._known.update((board.device, board) for board in self._latest.boards)
        return self._latest
