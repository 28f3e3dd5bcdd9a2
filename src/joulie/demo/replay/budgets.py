"""Power budgets inside a replay: the operator's `decide_budgets` and the agents' rules, called without a network.

An agent follows an order within the step after it, and its confirmation is there at the next turn. What operator and
agents take for that in reality, the live demo measures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from joulie.catalogue.lookup import Catalogue
from joulie.control.budget.counting import Confirmation, Pair
from joulie.control.budget.cycle import BudgetTurn, decide_budgets
from joulie.control.budget.groups import Readings
from joulie.control.budget.holding import Kept, caps_to_hold, followed
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.memory import BudgetMemory
from joulie.control.budget.messages import confirmation_to_write, order_to_write
from joulie.control.plan import Plan
from joulie.model.api import NodeTwin, NodeTwinSpec, NodeTwinStatus, PowerBudget
from joulie.model.api.twin import TwinControlStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Snapshot
from joulie.settings import DecisionSettings
from joulie.simulator.simulation import Simulation

_NOTHING_READ = Readings({}, {}, {})
_SESSION = 1


class ReplayBudgets:
    """The budget loop, and of each node the order that its agent follows."""

    def __init__(
        self, simulation: Simulation, settings: DecisionSettings, catalogue: Catalogue, nodes: Iterable[str]
    ) -> None:
        self._simulation, self._settings, self._catalogue = simulation, settings, catalogue
        self._memory = BudgetMemory()
        self._kept: dict[str, Kept] = {}
        self._sequence = 0
        # Agents spoke before there was a budget: nothing holds their nodes yet.
        self._twins = {name: _twin(name, None, Confirmation(name, 0, "", _SESSION, 0, None)) for name in nodes}

    def allowed(self, node: str) -> Pair | None:
        """What the node's devices may be capped to at most; None: no budget holds it."""
        kept = self._kept.get(node)
        return None if kept is None else caps_to_hold(kept, in_contact=True)

    def turn(self, budgets: Collection[PowerBudget], snapshot: Snapshot, plan: Plan, now_s: float) -> BudgetTurn:
        """One turn of the loop; agents follow its orders from now on."""
        seen = replace(snapshot, twins=self._twins)
        given = BudgetInput(seen, plan, self._settings, now_s, self._catalogue)
        decided, self._memory = decide_budgets(given, budgets, self._memory, _NOTHING_READ)
        for write in decided.plan.writes:
            order = write.order
            kept = followed(self._kept.get(write.node), order)
            if kept is None:
                self._kept.pop(write.node, None)
            else:
                self._kept[write.node] = kept
            budget, failsafe = order_to_write(order, write.reason)
            spec = NodeTwinSpec(node_name=write.node, budget=budget, failsafe=failsafe)
            self._twins[write.node] = replace(self._twins[write.node], spec=spec)
        return decided

    def twin(self, node: str) -> NodeTwin:
        return self._twins[node]

    def confirm(self, sockets: Mapping[str, float]) -> None:
        """Every agent says which order it follows and what it reads back from its devices."""
        self._sequence += 1
        for node, kept in self._kept.items():
            said = Confirmation(node, kept.order.number, "", _SESSION, self._sequence, self._held(node, sockets[node]))
            self._twins[node] = _twin(node, self._twins[node].spec, said)

    def _held(self, node: str, sockets: float) -> Pair:
        fleet, place = self._simulation.fleet, self._simulation.index[node]
        boards = fleet.gpus.cap_target_w[fleet.boards_of(place)]
        cpu_w = float(fleet.cpus.cap_target_w[place]) / sockets
        return Pair(math.ceil(cpu_w - 1e-6), math.ceil(float(boards.max(initial=0.0)) - 1e-6))


def _twin(name: str, spec: NodeTwinSpec | None, said: Confirmation) -> NodeTwin:
    status = NodeTwinStatus(control_status=TwinControlStatus(budget=confirmation_to_write(said)))
    return NodeTwin(ObjectMeta(name=name, uid=name), spec=spec, status=status)
