"""Events and log lines of transitions: each transition once, when the last of its writes has arrived."""

from __future__ import annotations

from typing import Any, NamedTuple

from joulie.cluster.node_events import EventDetails, node_event
from joulie.control.plan import Plan
from joulie.control.policies.interface import State
from joulie.control.transitions import Transition, transition
from joulie.model.names import DRAINING, ECO
from joulie.operator.apply import WriteOutcome
from joulie.operator.writes import Job


class StateChange(NamedTuple):
    """A change of a node's state, and why."""

    node: str
    transition: Transition
    reason: str


class PendingTransitions:
    """Remembers transitions that a failed write interrupted: the objects show only half of them."""

    def __init__(self) -> None:
        self._interrupted: dict[str, State] = {}  # by node: the state before

    def changes(self, plan: Plan, jobs: list[Job], outcome: WriteOutcome) -> list[StateChange]:
        """The transitions completed by this decision, including interrupted ones."""
        done = {job.node for job in outcome.done}
        unfinished = {job.node: job for job in jobs if job.node not in done}
        completed = [
            StateChange(job.node, job.transition, job.reason) for job in outcome.done if job.transition is not None
        ]
        earlier = {node: before for node, before in self._interrupted.items() if node not in unfinished}
        if earlier:
            completed = [change for change in completed if change.node not in earlier]
            for assignment in plan.assignments:
                before = earlier.get(assignment.node)
                change = transition(before, assignment.state) if before else None
                if change is not None:
                    completed.append(StateChange(assignment.node, change, assignment.reason))
        interrupted: dict[str, State] = {}
        for node, job in unfinished.items():
            if node in self._interrupted:
                interrupted[node] = self._interrupted[node]
            elif job.transition is not None:
                interrupted[node] = job.transition.from_state
        self._interrupted = interrupted
        return completed

    def forget(self) -> None:
        """Another process may lead by now and will report the rest."""
        self._interrupted.clear()


_REASONS = {DRAINING: "PowerDraining", ECO: "PowerEco"}


def event(node: str, transition: Transition, reason: str, now_s: float, reporter: str) -> dict[str, Any]:
    """The Event of a transition, with its reason."""
    note = f"{transition.from_state} → {transition.to_state}: {reason}"
    what = _REASONS.get(transition.to_state, "PowerPerformance")
    return node_event(node, EventDetails("operator", reporter, what, note), now_s)
