"""Why a node is what it is: the words of the operator's last plan, or of a plan made anew."""

from __future__ import annotations

import time
from collections.abc import Callable

from joulie import plugins
from joulie.control.cycle import decide
from joulie.control.plan import Assignment, Plan
from joulie.errors import JoulieError
from joulie.model.snapshot import Snapshot
from joulie.overview.nodes import NodeOverview
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings

FORESEEN = "becomes"
MAX_SHARE = 0.02  # of the time may go into plans that are made only for their words


class Reasons:
    """`told` is the plan of an operator in this process; where it has none, one is made of what is seen."""

    def __init__(self, settings: DecisionSettings, told: Callable[[], Plan | None]) -> None:
        self._settings, self._told = settings, told
        self._plan: Plan | None = None
        self._made: Plan | None = None
        self._remade_from_s = float("-inf")
        self._by_node: dict[str, Assignment] = {}

    def of(self, view: NodeOverview, snapshot: Snapshot, now_s: float) -> str:
        """Why the node is what it is, or what it will be and why; empty where it is not known."""
        if view.scope == "cordoned":
            return "cordoned: Joulie leaves it as it is"
        if view.scope == "reserved":
            return "reserved: Joulie does not touch it"
        if view.scope == "out":
            return "outside the operator's node selector: Joulie does not touch it"
        self._use(self._told() or self._remade(snapshot, now_s))
        assignment = self._by_node.get(view.name)
        if assignment is None:
            return ""
        if assignment.state == view.state:
            return assignment.reason
        return f"{FORESEEN} {assignment.state} with the next decision: {assignment.reason}"

    def _use(self, plan: Plan | None) -> None:
        if plan is not self._plan:
            self._plan = plan
            self._by_node = {one.node: one for one in plan.assignments} if plan is not None else {}

    def _remade(self, snapshot: Snapshot, now_s: float) -> Plan | None:
        """The reasons depend on the policy alone, so the plain cooling model will do."""
        began_s = time.monotonic()
        if began_s > self._remade_from_s:
            settings = self._settings
            try:
                policy = plugins.policy(settings.plan.policy_type)
                cooling = LinearCoolingModel(settings.twin)
                self._made = decide(snapshot, settings, now_s, policy=policy, cooling=cooling)
            except JoulieError:  # the operator says what is wrong with it; here a reason is missing
                self._made = None
            took_s = time.monotonic() - began_s
            self._remade_from_s = began_s + took_s / MAX_SHARE
        return self._made
