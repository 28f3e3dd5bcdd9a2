"""Which changes of state are to be told: each once, when the last of its writes has arrived."""

from __future__ import annotations

from typing import NamedTuple

from joulie.control.plan import Plan
from joulie.control.policies.interface import State
from joulie.control.transitions import Transition, transition
from joulie.operator.apply import Outcome
from joulie.operator.writes import Job


class Told(NamedTuple):
    """A change of a node's state, and why."""

    node: str
    transition: Transition
    reason: str


class Story:
    """Remembers what a failed write held up: the objects then show half of the change, and would hide the rest."""

    def __init__(self) -> None:
        self._held_up: dict[str, State] = {}  # by node: where its change began

    def changes(self, plan: Plan, jobs: list[Job], outcome: Outcome) -> list[Told]:
        """What happened in this decision, earlier beginnings included."""
        done = {job.node for job in outcome.done}
        unfinished = {job.node: job for job in jobs if job.node not in done}
        told = [Told(job.node, job.transition, job.reason) for job in outcome.done if job.transition is not None]
        earlier = {node: before for node, before in self._held_up.items() if node not in unfinished}
        if earlier:
            told = [change for change in told if change.node not in earlier]
            for assignment in plan.assignments:
                before = earlier.get(assignment.node)
                change = transition(before, assignment.state) if before else None
                if change is not None:
                    told.append(Told(assignment.node, change, assignment.reason))
        held_up: dict[str, State] = {}
        for node, job in unfinished.items():
            if node in self._held_up:
                held_up[node] = self._held_up[node]
            elif job.transition is not None:
                held_up[node] = job.transition.from_state
        self._held_up = held_up
        return told

    def forget(self) -> None:
        """Another may lead by now and tell what is left."""
        self._held_up.clear()
