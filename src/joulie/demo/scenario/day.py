"""The demo's day: how much work arrives and how warm it is outside, and the scenes it is played in. Pure.

It is a short day: its twenty-four hours of demand and weather pass in forty minutes of simulated time, because pods,
caps and rooms react within minutes, and waiting longer would show nothing more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from joulie.errors import InputError

DAY_S = 2400.0
COOLEST_C, WARMEST_C = 14.0, 36.0
MIN_DEMAND = 0.2  # of the busiest moment
BUSIEST_S, HOTTEST_S = 0.45 * DAY_S, 0.55 * DAY_S


class DemoScene(NamedTuple):
    """A part of the day: from when to when, in seconds of the day."""

    name: str
    begins_s: float
    ends_s: float

    @property
    def length_s(self) -> float:
        return self.ends_s - self.begins_s

    def day_time_s(self, elapsed_s: float) -> float:
        """The time of day after this much simulated time; a scene that is over starts again."""
        return self.begins_s + elapsed_s % self.length_s


MORNING = DemoScene("morning", 0.0, DAY_S / 3)
AFTERNOON = DemoScene("afternoon", DAY_S / 3, 2 * DAY_S / 3)
NIGHT = DemoScene("night", 2 * DAY_S / 3, DAY_S)
WHOLE_DAY = DemoScene("day", 0.0, DAY_S)
PARTS = (MORNING, AFTERNOON, NIGHT)
FEED_CUT = DemoScene("feed-cut", 300.0, 1600.0)  # up to the cut of a feed and beyond
COMPARED = (WHOLE_DAY, *PARTS)  # whose energy is compared with and without Joulie
SCENES = {scene.name: scene for scene in (*COMPARED, FEED_CUT)}


def scene_named(name: str) -> DemoScene:
    """InputError names the scenes that there are."""
    if name not in SCENES:
        raise InputError(f"--scene {name}: the scenes are {', '.join(SCENES)}")
    return SCENES[name]


def part_of_day(day_time_s: float) -> str:
    return next(part.name for part in reversed(PARTS) if day_time_s >= part.begins_s)


def demand(day_time_s: float) -> float:
    """How fast work arrives, over the busiest moment: a wave with its crest around noon."""
    return MIN_DEMAND + (1.0 - MIN_DEMAND) * _wave(day_time_s, BUSIEST_S)


def outside_c(day_time_s: float) -> float:
    """The air outside: warmest in the afternoon."""
    return COOLEST_C + (WARMEST_C - COOLEST_C) * _wave(day_time_s, HOTTEST_S)


def _wave(day_time_s: float, crest_s: float) -> float:
    """0 to 1 once a day."""
    return 0.5 + 0.5 * math.cos(2.0 * math.pi * (day_time_s - crest_s) / DAY_S)
