"""Orders and confirmations as twins carry them, to and from what the budget loop and the agent's rule work with."""

from __future__ import annotations

from joulie.control.budget.counting import Confirmation, Order, Pair
from joulie.model.api import NodeTwin
from joulie.model.api.orders import BudgetCaps, BudgetConfirmation, BudgetOrder

MAX_REASON_CHARS = 1024


def order_in(twin: NodeTwin) -> Order | None:
    """The order that the twin carries; None: no budget has held its node yet."""
    spec = twin.spec
    if spec is None or spec.budget is None:
        return None
    told = spec.budget
    caps = _pair(told.caps)
    return Order(
        twin.metadata.uid or "",
        told.order,
        caps,
        caps if told.at_most is None else _pair(told.at_most).at_least(caps),
        None if spec.failsafe is None else _pair(spec.failsafe),
        tuple(told.groups or ()),
        bool(told.released),
    )


def order_to_write(order: Order, reason: str) -> tuple[BudgetOrder, BudgetCaps | None]:
    """`spec.budget` and `spec.failsafe` for this order."""
    failsafe = None if order.failsafe is None else _caps(order.failsafe)
    told = BudgetOrder(
        order.number,
        _caps(order.caps),
        _caps(order.at_most),
        list(order.groups) or None,
        order.released or None,
        reason[:MAX_REASON_CHARS] or None,
    )
    return told, failsafe


def confirmation_in(twin: NodeTwin) -> Confirmation | None:
    """What the node's agent last confirmed; None: it has said nothing of budgets."""
    control = twin.status.control_status if twin.status is not None else None
    if control is None or control.budget is None:
        return None
    told = control.budget
    held = None if told.held is None else _pair(told.held)
    return Confirmation(told.twin_uid, told.order, told.boot_id, told.session, told.sequence, held)


def confirmation_to_write(confirmation: Confirmation) -> BudgetConfirmation:
    """`status.controlStatus.budget` for this confirmation."""
    held = None if confirmation.held is None else _caps(confirmation.held)
    return BudgetConfirmation(
        confirmation.uid,
        confirmation.number,
        confirmation.boot_id,
        confirmation.session,
        confirmation.sequence,
        held,
    )


def _pair(caps: BudgetCaps) -> Pair:
    return Pair(caps.cpu_watts_per_package or 0.0, caps.gpu_watts_per_gpu or 0.0)


def _caps(pair: Pair) -> BudgetCaps:
    """A node without GPUs has no watts for them, rather than zero."""
    return BudgetCaps(pair.cpu_w_each, pair.gpu_w_each or None)
