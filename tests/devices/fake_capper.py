"""A device in memory behind the real interface, with faults on demand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from joulie.devices.interface import (
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

LIMIT = "power_limit_w"
THROTTLE = "throttle_pct"


class FakeCapper:
    """Units that take a limit in watts, or a throttle in percent.

    A fault is an error put into `on_read` or `on_write` for a knob, a knob put into `deaf` (it takes writes and ignores
    them), or a unit put into `gone`. `writes` has all that was asked of it, in order.
    """

    def __init__(
        self,
        kind: Kind = "cpu",
        unit: Unit = "watts",
        *,
        name: str = "fake",
        count: int = 2,
        min_w: float = 50.0,
        max_w: float = 200.0,
        found: float | None = None,
    ) -> None:
        self.kind: Kind = kind
        self.unit = unit
        self.name = name
        self.min_w, self.max_w = min_w, max_w
        attribute = THROTTLE if unit == "throttle_pct" else LIMIT
        full = 0.0 if unit == "throttle_pct" else max_w
        self.values: dict[Knob, float] = {
            Knob(f"{name}-{kind}-{number}", attribute): full if found is None else found for number in range(count)
        }
        self.on_read: dict[Knob, DeviceError] = {}
        self.on_write: dict[Knob, DeviceError] = {}
        self.deaf: set[Knob] = set()
        self.gone: set[Knob] = set()
        self.blocked: DeviceError | None = None  # nothing can be controlled, for this reason
        self.power: float | None = None
        self.writes: list[tuple[Knob, Value]] = []
        self.closed = False

    async def discover(self) -> Discovered:
        """All units that are not gone."""
        there = self._there()
        watts = self.unit != "throttle_pct"
        return Discovered(
            kind=self.kind,
            backend=self.name,
            present=bool(there),
            count=len(there),
            raw_model=f"fake {self.kind}",
            vendor="fake",
            min_w=self.min_w if watts else None,
            max_w=self.max_w if watts else None,
            default_w=self.max_w if watts else None,
            current_w=math.fsum(self.values[knob] for knob in there) / len(there) if watts and there else None,
            no_control=None if self.blocked is None else str(self.blocked),
            no_telemetry="no power is set" if self.power is None else None,
        )

    async def knobs(self) -> Sequence[Knob]:
        if self.blocked is not None:
            raise self.blocked
        if not self._there():
            raise NoDeviceError(f"{self.name}: nothing is there")
        return self._there()

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        there = [knob for knob in self._there() if knob in found]
        if not there:
            raise NoDeviceError(f"{self.name}: nothing is there any more")
        if math.isnan(target):
            return self.restoring({knob: found[knob] for knob in there})
        if self.unit == "throttle_pct":
            return [Setting(knob, max(found[knob] or 0.0, min(max(target, 0.0), 100.0))) for knob in there]
        each_w = target / len(there) if self.unit == "watts" else target
        capped_w = min(max(each_w, self.min_w), self.max_w)
        return [
            Setting(knob, capped_w if (value := found[knob]) is None else min(capped_w, value), 0.01 * self.max_w)
            for knob in there
        ]

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        return [Setting(knob, value) for knob, value in found.items()]

    def refuses(self, knob: Knob, found: Value) -> str | None:
        return None if knob in self.values else f"{self.name} has no {knob.attribute} at {knob.device}"

    def unlimited(self, knob: Knob) -> Value:
        return 0.0 if self.unit == "throttle_pct" else self.max_w

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        known = [value for value in values.values() if value is not None]
        if not known:
            return None
        return math.fsum(known) if self.unit == "watts" else max(known) if self.unit == "watts_each" else min(known)

    async def read(self, knob: Knob) -> Value:
        self._check(knob, self.on_read)
        return self.values[knob]

    async def write(self, knob: Knob, value: Value) -> None:
        self.writes.append((knob, value))
        self._check(knob, self.on_write)
        if value is None:
            raise NotSupportedError(f"{knob.device}: a limit cannot be taken away")
        if knob not in self.deaf:
            self.values[knob] = value

    async def power_w(self) -> float | None:
        return self.power

    async def close(self) -> None:
        self.closed = True

    def _there(self) -> list[Knob]:
        return [knob for knob in self.values if knob not in self.gone]

    def _check(self, knob: Knob, faults: Mapping[Knob, DeviceError]) -> None:
        if knob not in self.values or knob in self.gone:
            raise NoDeviceError(f"{knob.device} is not there any more")
        if knob in faults:
            raise faults[knob]
