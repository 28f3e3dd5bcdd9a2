"""Sensors that are not believed: why, how often, and said once (SPEC 13, "Twin")."""

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
    TOO_OLD: "has a time stamp that is too old",
    OUT_OF_RANGE: "is not between 0 and 1",
    SILENT: "has no fresh sample any more",
}
NAMED = 5


class Lie(NamedTuple):
    """Why a reading is not believed, and the reading in words."""

    reason: str
    shown: str


def age_lie(age_s: float, max_age_s: float) -> Lie | None:
    """A reading whose time stamp lies too far back, or stands still, says nothing of now."""
    return Lie(TOO_OLD, f"{age_s:.0f} s old") if age_s > max_age_s else None


class Disbelief:
    """Remembers who lies, so that each is named once until it has told the truth for a while.

    A sensor that is right every other time would otherwise be named for ever.
    """

    def __init__(self, what: str, settle_s: float) -> None:
        self._what = what
        self._settle_s = settle_s
        self._last_lie_s: dict[str, float] = {}

    @property
    def nodes(self) -> frozenset[str]:
        """Whose sensors lie, or lied a moment ago."""
        return frozenset(self._last_lie_s)

    def update(
        self, lies: Mapping[str, Lie], believed: Collection[str], nodes: Collection[str], now_s: float
    ) -> list[str]:
        """What is to be said now: one line for each reason that is new to some nodes, one for those that recovered."""
        newly: dict[str, list[str]] = {}
        for node, lie in lies.items():
            if node not in self._last_lie_s:
                newly.setdefault(lie.reason, []).append(f"{node} ({lie.shown})" if lie.shown else node)
            self._last_lie_s[node] = now_s
        honest = [
            node
            for node, at_s in self._last_lie_s.items()
            if node in believed and node not in lies and not 0 <= now_s - at_s <= self._settle_s
        ]
        for node in honest:
            del self._last_lie_s[node]
        if len(self._last_lie_s) > len(lies):
            present = set(nodes)
            self._last_lie_s = {node: at_s for node, at_s in self._last_lie_s.items() if node in present}
        messages = [
            f"{self._what} of {_some(names)} {IN_WORDS[reason]}: not believed"
            for reason, names in sorted(newly.items())
        ]
        return messages + ([f"{self._what} of {_some(honest)} is believed again"] if honest else [])


def _some(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more nodes"
