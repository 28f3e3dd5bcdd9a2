"""The operator's conditions of a twin, including `Enforced` for an agent that no longer reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from joulie.control.conditions import Statement, by_type
from joulie.model.api import NodeTwin, NodeTwinStatus
from joulie.model.api.results import AGENT_SILENT, DRAINING, ENFORCED
from joulie.model.names import DRAINING as DRAINING_STATE

SILENT_AFTER_S = 300.0  # agents report every two minutes


def twin_statements(
    status: NodeTwinStatus, twin: NodeTwin | None, *, spec_changes: bool, silent: bool
) -> list[Statement]:
    """The operator's conditions of a twin with this status.

    The generation is that after the spec write of the same decision, whichever is written first.
    """
    if twin is None:
        generation: int | None = 1
    else:
        known = twin.metadata.generation
        generation = None if known is None else known + spec_changes
    if status.schedulable_class == DRAINING_STATE:
        draining = Statement(DRAINING, "True", "PerformancePods", "performance pods still run here", generation)
    else:
        draining = Statement(DRAINING, "False", "NotDraining", "", generation)
    enforced = by_type(twin.status.conditions if twin and twin.status else None).get(ENFORCED)
    # Kept until the agent writes the condition: giving up ownership would leave half of the entry.
    if silent or (enforced is not None and enforced.status == "Unknown"):
        said_of = enforced.observed_generation if enforced else None
        return [draining, Statement(ENFORCED, "Unknown", AGENT_SILENT, "the agent has not reported", said_of)]
    return [draining]


class SilentAgents:
    """Agents whose reports have stopped, by this process's clock, because those of the nodes may differ."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, float]] = {}  # by node: the time in the last report, and when it was seen

    def names(self, twins: Mapping[str, NodeTwin], now_s: float) -> set[str]:
        """The nodes whose last report is too old."""
        seen: dict[str, tuple[str, float]] = {}
        for name, twin in twins.items():
            control = twin.status.control_status if twin.status else None
            stamp = (control and control.cpu and control.cpu.updated_at) or ""
            if stamp:
                last = self._last.get(name)
                seen[name] = last if last is not None and last[0] == stamp else (stamp, now_s)
        self._last = seen
        return {name for name, (_, since_s) in seen.items() if now_s - since_s > SILENT_AFTER_S}
