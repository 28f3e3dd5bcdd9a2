"""The least that an agent does with a device, for the tests of devices: note, write, read back, put back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from joulie.devices.interface import Capper, Knob, Setting, Value

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def find(capper: Capper) -> dict[Knob, Value]:
    """Every knob's value before the first write."""

    async def look() -> dict[Knob, Value]:
        return {knob: await capper.read(knob) for knob in await capper.knobs()}

    return run(look())


def put(capper: Capper, settings: Sequence[Setting]) -> dict[Knob, Value]:
    """Write all, then read all back; asserts that each holds within its tolerance."""

    async def write() -> dict[Knob, Value]:
        for setting in settings:
            await capper.write(setting.knob, setting.value)
        return {setting.knob: await capper.read(setting.knob) for setting in settings}

    in_force = run(write())
    for setting in settings:
        value = in_force[setting.knob]
        assert value is not None
        assert setting.value is not None
        assert abs(value - setting.value) <= setting.tolerance, setting
    return in_force


class Clock:
    """A monotonic clock that moves when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
