"""Power from energy counters that count up and wrap to zero (docs/reference/behaviour.md, 'Energy counters')."""

from __future__ import annotations

from typing import NamedTuple

from joulie.devices.interface import ZonePower
from joulie.devices.package_watts import BELIEVABLE_LIMIT_W

BELIEVABLE_TIMES_MAX = 1.5
MIN_INTERVAL_S = 0.1  # counters move in steps of a millisecond: two readings at once say nothing new


class Counter(NamedTuple):
    """One reading of a counter."""

    zone: str
    energy_uj: int
    range_uj: int  # where it starts again at zero; 0: not known
    max_w: float | None  # the most that the zone may draw; None: not known


class _CounterReading(NamedTuple):
    energy_uj: int
    at_s: float
    power_w: float | None


class EnergyMeter:
    """Remembers the last reading of each zone's counter."""

    def __init__(self) -> None:
        self._looks: dict[str, _CounterReading] = {}

    def power(self, counter: Counter, now_s: float) -> ZonePower:
        """The zone's mean power since the last reading."""
        last = self._looks.get(counter.zone)
        if last is not None and 0 <= now_s - last.at_s < MIN_INTERVAL_S:
            return ZonePower(counter.zone, counter.energy_uj, last.power_w)
        power_w = None if last is None else mean_power_w(last.energy_uj, counter, now_s - last.at_s)
        self._looks[counter.zone] = _CounterReading(counter.energy_uj, now_s, power_w)
        return ZonePower(counter.zone, counter.energy_uj, power_w)

    def forget_all_but(self, zones: set[str]) -> None:
        """Drop zones that have vanished: when one comes back, its counter starts over."""
        for zone in self._looks.keys() - zones:
            del self._looks[zone]


def mean_power_w(before_uj: int, now: Counter, elapsed_s: float) -> float | None:
    """Mean power between two readings, if exactly one number of wraps of the counter gives a plausible power."""
    if elapsed_s <= 0:
        return None
    most_uj = BELIEVABLE_TIMES_MAX * (now.max_w or BELIEVABLE_LIMIT_W) * elapsed_s * 1e6
    moved_uj = now.energy_uj - before_uj
    if now.range_uj <= 0:
        return moved_uj / elapsed_s / 1e6 if 0 <= moved_uj <= most_uj else None
    moved_uj %= now.range_uj
    if moved_uj > most_uj or moved_uj + now.range_uj <= most_uj:
        return None
    return moved_uj / elapsed_s / 1e6
