"""Plausibility of sensor readings: why one is rejected, how often, and one log line.

See docs/reference/behaviour.md, 'Readings that are not believed'.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from joulie.physics.power import BELIEVABLE_TIMES_MAX

NOT_FINITE = "not_finite"
NEGATIVE = "negative"
ABOVE_MAXIMUM = "above_maximum"
TOO_OLD = "too_old"
OUT_OF_RANGE = "out_of_range"
SILENT = "silent"

IN_WORDS = {
    NOT_FINITE: "is not a number",
    NEGATIVE: "is below zero",
    ABOVE_MAXIMUM: f"is above {BELIEVABLE_TIMES_MAX:g} times what the hardware can draw",
    TOO_OLD: "has a timestamp that is too old",
    OUT_OF_RANGE: "is not between 0 and 1",
    SILENT: "has no fresh sample any more",
}
NAMED = 5


class Rejection(NamedTuple):
    """Why a reading is rejected, and the reading as text."""

    reason: str
    shown: str


def check_age(age_s: float, max_age_s: float) -> Rejection | None:
    """Rejects a reading whose timestamp is too old, or has stopped moving: it says nothing about now."""
    return Rejection(TOO_OLD, f"{age_s:.0f} s old") if age_s > max_age_s else None


class RejectedSensors:
    """Remembers whose readings were rejected: each is reported once until it has been plausible for a while.

    A sensor that is right every other time would otherwise be reported for ever.
    """

    def __init__(self, what: str, settle_s: float) -> None:
        self._what = what
        self._settle_s = settle_s
        self._last_rejected_s: dict[str, float] = {}

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes whose readings are rejected, or were a moment ago."""
        return frozenset(self._last_rejected_s)

    def update(
        self, rejections: Mapping[str, Rejection], believed: Collection[str], nodes: Collection[str], now_s: float
    ) -> list[str]:
        """Messages: one for each reason that is new for some nodes, one for the nodes that recovered."""
        newly: dict[str, list[str]] = {}
        for node, rejection in rejections.items():
            if node not in self._last_rejected_s:
                newly.setdefault(rejection.reason, []).append(
                    f"{node} ({rejection.shown})" if rejection.shown else node
                )
            self._last_rejected_s[node] = now_s
        recovered = [
            node
            for node, at_s in self._last_rejected_s.items()
            if node in believed and node not in rejections and not 0 <= now_s - at_s <= self._settle_s
        ]
        for node in recovered:
            del self._last_rejected_s[node]
        if len(self._last_rejected_s) > len(rejections):
            present = set(nodes)
            self._last_rejected_s = {node: at_s for node, at_s in self._last_rejected_s.items() if node in present}
        messages = [
            f"{self._what} of {_some(names)} {IN_WORDS[reason]}: rejected" for reason, names in sorted(newly.items())
        ]
        return messages + ([f"{self._what} of {_some(recovered)} is accepted again"] if recovered else [])


def _some(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more nodes"
