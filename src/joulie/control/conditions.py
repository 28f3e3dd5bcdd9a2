"""Conditions of Joulie's objects: the results of caps, and which of them changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from joulie.model.api.results import MAX_CONDITION_MESSAGE, Condition, ConditionStatus, ControlState
from joulie.model.rfc3339 import format_time

_CONTESTED, _DRY_RUN = "contested:", "SIMULATE_ONLY"  # how the agent's messages begin


class Statement(Struct, frozen=True):
    """A condition without its time: two that differ in their message alone are not worth a write."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    generation: int | None = None

    def says_the_same(self, there: Condition | None) -> bool:
        return there is not None and (self.status, self.reason, self.generation) == (
            there.status,
            there.reason,
            there.observed_generation,
        )

    def condition(self, there: Condition | None, now_s: float) -> Condition:
        """As it is written; it keeps its time for as long as its status stays."""
        same = there is not None and there.status == self.status
        since = there.last_transition_time if there is not None and same else format_time(now_s)
        message = " ".join(self.message.split())[:MAX_CONDITION_MESSAGE]
        return Condition(self.type, self.status, self.reason, message, since, self.generation)


def by_type(conditions: Iterable[Condition] | None) -> dict[str, Condition]:
    return {condition.type: condition for condition in conditions or ()}


def is_news(wanted: Iterable[Statement], there: Mapping[str, Condition]) -> bool:
    """Whether any of them differs from what the object has."""
    return any(not statement.says_the_same(there.get(statement.type)) for statement in wanted)


def written(wanted: Iterable[Statement], there: Mapping[str, Condition], now_s: float) -> list[dict[str, Any]]:
    """As they are written."""
    return [to_builtins(statement.condition(there.get(statement.type), now_s)) for statement in wanted]


def enforced(states: Sequence[ControlState]) -> tuple[ConditionStatus, str, str]:
    """Status, reason and message of the condition Enforced, from the results of a node's caps."""
    failed = [state for state in states if state.result == "error"]
    blocked = [state for state in states if state.result == "blocked"]
    for state in (*failed, *blocked):
        message = state.message or ""
        if state.result == "error":
            reason = "Error"
        elif message.startswith(_CONTESTED):
            reason = "Contested"
        else:
            reason = "DryRun" if message.startswith(_DRY_RUN) else "Blocked"
        return "False", reason, message
    applied = [state for state in states if state.result == "applied"]
    if applied:
        return "True", "Applied", "every cap that is wanted holds"
    return "False", "NotCapped", next((state.message for state in states if state.message), "no cap is wanted")
