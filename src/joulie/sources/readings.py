"""The last plausible reading of each node from one source, until it is too old."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from joulie.model.snapshot import PowerReading
from joulie.physics.power import is_believable
from joulie.sources.node_queries import NodeAnswer
from joulie.sources.plausibility import (
    ABOVE_MAXIMUM,
    NEGATIVE,
    NOT_FINITE,
    OUT_OF_RANGE,
    SILENT,
    RejectedSensors,
    Rejection,
    check_age,
)
from joulie.sources.utilisation import Load

MaxWatts = Mapping[str, float]  # by node
R = TypeVar("R", PowerReading, Load)


def check_power(reading: PowerReading, node_max_w: float) -> Rejection | None:
    """Why a reading of node power is implausible; None if the twin would use it."""
    power_w = reading.power_w
    if is_believable(power_w, node_max_w):
        return None
    if not math.isfinite(power_w):
        return Rejection(NOT_FINITE, f"{power_w} W")
    if power_w < 0:
        return Rejection(NEGATIVE, f"{power_w:g} W")
    return Rejection(ABOVE_MAXIMUM, f"{power_w:g} W of {node_max_w:g} W")


def check_load(load: Load, _node_max_w: float) -> Rejection | None:
    """The same for a utilisation, which is a share of 1."""
    if not math.isfinite(load.share):
        return Rejection(NOT_FINITE, f"{load.share}")
    return None if 0 <= load.share <= 1 else Rejection(OUT_OF_RANGE, f"{load.share:g}")


class NodeReadings(Generic[R]):
    """Checks a source's readings and keeps the plausible ones."""

    def __init__(self, what: str, max_age_s: float, judge: Callable[[R, float], Rejection | None]) -> None:
        self._max_age_s = max_age_s
        self._judge: Callable[[R, float], Rejection | None] = judge
        self._believed: dict[str, R] = {}
        self._ever_seen: set[str] = set()
        self._rejected = RejectedSensors(what, max_age_s)
        self._news: list[str] = []

    @property
    def rejected(self) -> int:
        """How many nodes' sensors are rejected or silent, now or a moment ago."""
        return len(self._rejected.nodes)

    def take(self, answer: NodeAnswer[R], max_w: MaxWatts, now_s: float) -> list[Rejection]:
        """Replaces the last readings by these; returns the rejections.

        A node whose own query failed keeps its reading. One that was seen before and is missing now is silent: where
        the server omits what is too old, this is how a timestamp that stands still shows.
        """
        believed: dict[str, R] = {}
        rejections: dict[str, Rejection] = {}
        for node, reading in answer.readings.items():
            rejection = self._judge(reading, max_w[node]) or check_age(now_s - reading.measured_at_s, self._max_age_s)
            if rejection is None:
                believed[node] = reading
            else:
                rejections[node] = rejection
        refused = list(rejections.values())
        answered = answer.readings.keys() | answer.unanswered.keys()
        known = (self._ever_seen | answer.readings.keys()) & max_w.keys()
        rejections.update((node, Rejection(SILENT, "")) for node in known - answered)
        self._ever_seen = known
        self._news += self._rejected.update(rejections, believed, max_w, now_s)
        self._believed = {n: self._believed[n] for n in answer.unanswered if n in self._believed} | believed
        return refused

    def news(self) -> list[str]:
        """Messages since the last call."""
        news, self._news = self._news, []
        return news

    def fresh(self, nodes: Collection[str], now_s: float) -> dict[str, R]:
        """The readings of these nodes that are not too old, nor in the future after the clock was set back."""
        return {
            node: reading
            for node, reading in self._believed.items()
            if abs(now_s - reading.measured_at_s) <= self._max_age_s and node in nodes
        }

    def measured_at_s(self, node: str) -> float | None:
        """When the node's reading was taken."""
        reading = self._believed.get(node)
        return None if reading is None else reading.measured_at_s
