"""Where budgets settle when every agent follows its orders: for questions and for clusters read from files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from joulie.control.budget.counting import SETTLE_S, Confirmation, Order
from joulie.control.budget.cycle import BudgetTurn, decide_budgets
from joulie.control.budget.groups import Readings
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.memory import BudgetMemory
from joulie.control.budget.messages import confirmation_in, confirmation_to_write, order_in, order_to_write
from joulie.model.api import NodeTwin, PowerBudget
from joulie.model.api.twin import NodeTwinSpec, NodeTwinStatus, TwinControlStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Snapshot

TURNS = 12  # a cut and the raise that it allows take two each
IMAGINED = "imagined"  # stands for what a real cluster would have: uid of a twin, boot of a node


class Settled(NamedTuple):
    """The turn after which nothing is left to order, and the cluster that it was decided from."""

    turn: BudgetTurn
    snapshot: Snapshot


def settle(given: BudgetInput, budgets: Collection[PowerBudget], readings: Readings) -> Settled:
    """What becomes of a cluster under these budgets.

    Agents are taken to confirm each order at once, except those that said that their devices hold no watts: their
    nodes count what they can draw, as they do in reality.
    """
    memory = BudgetMemory()
    twins = {name: _asked(given.snapshot.twins.get(name), name) for name in given.snapshot.nodes}
    deaf = {name for name, twin in twins.items() if _cannot_confirm(twin)}
    twins = {
        name: twin if name in deaf else _confirmed(twin, order_in(twin), _boot(given, name), 0)
        for name, twin in twins.items()
    }
    number = 0
    while True:
        number += 1
        snapshot = replace(given.snapshot, twins={**given.snapshot.twins, **twins})
        then = replace(given, snapshot=snapshot, monotonic_s=number * SETTLE_S)  # the time of day stands still
        turn, memory = decide_budgets(then, budgets, memory, readings)
        if number == TURNS or (number > 1 and not turn.plan.writes and not _is_waiting(turn, deaf)):
            return Settled(turn, replace(snapshot, twins=_with_reasons(snapshot.twins, turn)))
        for write in turn.plan.writes:
            if write.node in twins:
                ordered, boot_id = _ordered(twins[write.node], write.order), _boot(given, write.node)
                is_deaf = write.node in deaf
                twins[write.node] = ordered if is_deaf else _confirmed(ordered, write.order, boot_id, number)


def _with_reasons(twins: Mapping[str, NodeTwin], turn: BudgetTurn) -> dict[str, NodeTwin]:
    """Why each node ends with so much, rather than why it was ordered when it was."""
    allocation, result = turn.plan.allocation, dict(twins)
    for row, name in enumerate(allocation.loads.names):
        twin = result.get(name)
        if twin is not None and twin.spec is not None and twin.spec.budget is not None:
            order = replace(twin.spec.budget, reason=allocation.reason(row))
            result[name] = replace(twin, spec=replace(twin.spec, budget=order))
    return result


def _is_waiting(turn: BudgetTurn, deaf: Collection[str]) -> bool:
    return any(one.standing == "waiting" and name not in deaf for name, one in turn.plan.standing.items())


def _cannot_confirm(twin: NodeTwin) -> bool:
    order, told = order_in(twin), confirmation_in(twin)
    return order is not None and not order.released and told is not None and told.held is None


def _boot(given: BudgetInput, name: str) -> str:
    node = given.snapshot.nodes.get(name)
    return node.boot_id if node is not None else ""


def _asked(twin: NodeTwin | None, name: str) -> NodeTwin:
    """The node's twin, or one as it would be made."""
    if twin is None:
        return NodeTwin(ObjectMeta(name, uid=IMAGINED), NodeTwinSpec(name))
    return twin if twin.metadata.uid else replace(twin, metadata=_with_uid(twin.metadata))


def _with_uid(metadata: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(metadata.name, generation=metadata.generation, uid=IMAGINED)


def _ordered(twin: NodeTwin, order: Order) -> NodeTwin:
    budget, failsafe = order_to_write(order, "")
    return replace(twin, spec=replace(twin.spec or NodeTwinSpec(), budget=budget, failsafe=failsafe))


def _confirmed(twin: NodeTwin, order: Order | None, boot_id: str, sequence: int) -> NodeTwin:
    """With the agent's word that it holds this order; without one, that it holds to none."""
    told = confirmation_in(twin)
    session = told.session + 1 if told is not None and sequence == 0 else told.session if told is not None else 1
    followed = order is not None and not order.released
    confirmation = Confirmation(
        twin.metadata.uid or IMAGINED,
        0 if order is None else order.number,
        boot_id,
        session,
        sequence,
        order.caps if order is not None and followed else None,
    )
    status = twin.status or NodeTwinStatus()
    control = replace(status.control_status or TwinControlStatus(), budget=confirmation_to_write(confirmation))
    return replace(twin, status=replace(status, control_status=control))
