"""The demo's day: how much work arrives and how warm it is outside, and the scenes it is played in. Pure.

It is a short day: its four and twenty hours of demand and weather pass in forty minutes of simulated time, because
pods, caps and rooms react within minutes and nobody wants to wait longer to see it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from joulie.errors import InputError

DAY_S = 2400.0
COOLEST_C, WARMEST_C = 14.0, 36.0
LEAST_DEMAND = 0.2  # of the busiest moment
BUSIEST_S, HOTTEST_S = 0.45 * DAY_S, 0.55 * DAY_S


class Scene(NamedTuple):
    """A part of the day: from when to when, in seconds of the day."""

    name: str
    begins_s: float
    ends_s: float

    @property
    def length_s(self) -> float:
        return self.ends_s - self.begins_s

    def day_time_s(self, elapsed_s: float) -> float:
        """The time of the day after so much simulated time; a scene that is over begins anew."""
        return self.begins_s + elapsed_s % self.length_s


MORNING = Scene("morning", 0.0, DAY_S / 3)
AFTERNOON = Scene("afternoon", DAY_S / 3, 2 * DAY_S / 3)
NIGHT = Scene("night", 2 * DAY_S / 3, DAY_S)
WHOLE_DAY = Scene("day", 0.0, DAY_S)
PARTS = (MORNING, AFTERNOON, NIGHT)
SCENES = {scene.name: scene for scene in (WHOLE_DAY, *PARTS)}


def scene_named(name: str) -> Scene:
    """InputError names the scenes that there are."""
    if name not in SCENES:
        raise InputError(f"--scene {name}: the scenes are {', '.join(SCENES)}")
    return SCENES[name]


def part_of_day(day_time_s: float) -> str:
    return next(part.name for part in reversed(PARTS) if day_time_s >= part.begins_s)


def demand(day_time_s: float) -> float:
    """How fast work arrives, over the busiest moment: a wave with its crest around noon."""
    return LEAST_DEMAND + (1.0 - LEAST_DEMAND) * _wave(day_time_s, BUSIEST_S)


def outside_c(day_time_s: float) -> float:
    """The air outside: warmest in the afternoon."""
    return COOLEST_C + (WARMEST_C - COOLEST_C) * _wave(day_time_s, HOTTEST_S)


def _wave(day_time_s: float, crest_s: float) -> float:
    """0 to 1 once a day."""
    return 0.5 + 0.5 * math.cos(2.0 * math.pi * (day_time_s - crest_s) / DAY_S)
