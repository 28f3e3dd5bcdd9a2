"""The last believed reading of each node from one source, until it is too old."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from joulie.model.snapshot import PowerReading
from joulie.physics.power import is_believable
from joulie.sources.belief import (
    ABOVE_MAXIMUM,
    NEGATIVE,
    NOT_FINITE,
    OUT_OF_RANGE,
    SILENT,
    Disbelief,
    Lie,
    age_lie,
)
from joulie.sources.node_queries import NodeAnswer
from joulie.sources.utilisation import Load

MaxWatts = Mapping[str, float]  # by node
R = TypeVar("R", PowerReading, Load)


def power_lie(reading: PowerReading, node_max_w: float) -> Lie | None:
    """What is wrong with a reading of node power; None when the twin would believe it."""
    power_w = reading.power_w
    if is_believable(power_w, node_max_w):
        return None
    if not math.isfinite(power_w):
        return Lie(NOT_FINITE, f"{power_w} W")
    if power_w < 0:
        return Lie(NEGATIVE, f"{power_w:g} W")
    return Lie(ABOVE_MAXIMUM, f"{power_w:g} W of {node_max_w:g} W")


def load_lie(load: Load, _node_max_w: float) -> Lie | None:
    """Likewise for a utilisation, which is a share of 1."""
    if not math.isfinite(load.share):
        return Lie(NOT_FINITE, f"{load.share}")
    return None if 0 <= load.share <= 1 else Lie(OUT_OF_RANGE, f"{load.share:g}")


class NodeReadings(Generic[R]):
    """Judges what a source says of each node, and keeps what is believed."""

    def __init__(self, what: str, max_age_s: float, judge: Callable[[R, float], Lie | None]) -> None:
        self._max_age_s = max_age_s
        self._judge: Callable[[R, float], Lie | None] = judge
        self._believed: dict[str, R] = {}
        self._ever_heard: set[str] = set()
        self._disbelief = Disbelief(what, max_age_s)
        self._news: list[str] = []

    @property
    def disbelieved(self) -> int:
        """How many nodes' sensors lie or fell silent, now or a moment ago."""
        return len(self._disbelief.nodes)

    def take(self, answer: NodeAnswer[R], max_w: MaxWatts, now_s: float) -> list[Lie]:
        """Puts an answer in place of the last one; what of it is not believed.

        A node whose own question failed keeps its reading. One that was heard before and is missing now has fallen
        silent: where the server leaves out what is too old, this is all that is seen of a time stamp that stands still.
        """
        believed: dict[str, R] = {}
        lies: dict[str, Lie] = {}
        for node, reading in answer.readings.items():
            lie = self._judge(reading, max_w[node]) or age_lie(now_s - reading.measured_at_s, self._max_age_s)
            if lie is None:
                believed[node] = reading
            else:
                lies[node] = lie
        refused = list(lies.values())
        answered = answer.readings.keys() | answer.unanswered.keys()
        known = (self._ever_heard | answer.readings.keys()) & max_w.keys()
        lies.update((node, Lie(SILENT, "")) for node in known - answered)
        self._ever_heard = known
        self._news += self._disbelief.update(lies, believed, max_w, now_s)
        self._believed = {n: self._believed[n] for n in answer.unanswered if n in self._believed} | believed
        return refused

    def news(self) -> list[str]:
        """What is to be said since the last call."""
        news, self._news = self._news, []
        return news

    def fresh(self, nodes: Collection[str], oldest_s: float) -> dict[str, R]:
        """The readings of these nodes that are not too old."""
        return {node: r for node, r in self._believed.items() if r.measured_at_s >= oldest_s and node in nodes}

    def measured_at_s(self, node: str) -> float | None:
        """When the node's reading was taken."""
        reading = self._believed.get(node)
        return None if reading is None else reading.measured_at_s
