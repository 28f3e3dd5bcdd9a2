"""A plan: what every eligible node should be and why, and what the twin predicts for every node in scope."""

from __future__ import annotations

from msgspec import Struct

from joulie.control.caps import Caps
from joulie.control.policies.interface import Profile, State
from joulie.control.survey import DemandByClass
from joulie.control.transitions import Transition, transition
from joulie.control.twins import TwinTable
from joulie.model.names import DRAINING
from joulie.physics.hardware import Machine

PINNED = "pinned"


class Assignment(Struct, frozen=True, gc=False):
    """What one node should be. A draining node has profile eco and the caps of performance."""

    machine: Machine
    profile: Profile
    state: State
    before: State
    density: float
    caps: Caps
    reason: str
    chosen_by: str  # the policy, or `pinned`

    @property
    def node(self) -> str:
        return self.machine.node

    @property
    def draining(self) -> bool:
        return self.state == DRAINING

    @property
    def transition(self) -> Transition | None:
        return transition(self.before, self.state)


class Plan(Struct, frozen=True):
    """The result of one decision."""

    policy: str
    demand: DemandByClass  # what pods ask of nodes
    assignments: tuple[Assignment, ...]  # in the policy's order: densest first
    left_alone: tuple[str, ...]  # cordoned nodes in scope: they keep twin, label and caps
    twins: TwinTable  # every node in scope, sorted by name
    warnings: tuple[str, ...]

    def count(self, state: State) -> int:
        return sum(assignment.state == state for assignment in self.assignments)
