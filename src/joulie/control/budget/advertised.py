"""Watts as a resource: what each node advertises as `joulie.io/watts`, so that kube-scheduler keeps to the budgets.

A node offers what budgets leave it, or all that it can draw where none holds it. Pods that do not ask for watts are
taken off. It never offers less than its pods hold: a kubelet that restarts checks them again and ends what does not
fit (docs/how-to/budgets/watts.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from joulie.control.budget.counting import Order
from joulie.control.budget.envelopes import Envelope, Pair, envelope_of
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.messages import order_in
from joulie.control.survey import BoundPods, MachineColumns
from joulie.model.snapshot import Node

MOVED_SHARE = 0.02  # smaller moves are not worth a write of every node
_NO_ORDERS: Mapping[str, Order] = {}


class HeldWatts(Struct, frozen=True):
    """What the pods on a node hold, and what those draw that asked for no watts."""

    asked_w: float = 0.0
    others_w: float = 0.0


def given_w(envelope: Envelope, order: Order | None) -> float:
    """What the node may draw in all: its caps as they count against a limit, and what no cap limits."""
    caps = envelope.top if order is None or order.released else order.caps
    counted: Pair = envelope.per_watt(rest_follows=True)
    return caps.cpu_w_each * counted.cpu_w_each + caps.gpu_w_each * counted.gpu_w_each + envelope.rest_w


def offered_w(node_w: float, held: HeldWatts) -> int:
    """Whole watts for pods: no fewer than they hold, and none for pods that did not ask."""
    return max(math.ceil(held.asked_w), math.floor(node_w - held.others_w), 0)


def advertised(given: BudgetInput, orders: Mapping[str, Order] = _NO_ORDERS) -> dict[str, int]:
    """What each node should advertise now, by name; `orders` are newer than those in the twins."""
    snapshot = given.snapshot
    assigned = {each.node: each for each in given.plan.assignments}
    machines = {name: given.machine(name, assigned.get(name)) for name in snapshot.nodes}
    held = _held(given, MachineColumns.of(list(machines.values())))
    return {
        name: offered_w(given_w(envelope_of(node, machines[name]), orders.get(name) or _ordered(given, name)), has)
        for (name, node), has in zip(snapshot.nodes.items(), held, strict=True)
    }


def changes(nodes: Iterable[Node], wanted: Mapping[str, int], held: Mapping[str, float]) -> dict[str, int | None]:
    """What has to be written, by node; None: removed, because nothing is advertised any more.

    A small move is left alone, unless the pods hold more than what stands there.
    """
    result: dict[str, int | None] = {}
    for node in nodes:
        there, watts = (node.capacity_watts, node.allocatable_watts), wanted.get(node.name)
        if watts is None:
            if there != (None, None):
                result[node.name] = None
        elif None in there or there[0] != there[1] or _moved(there[0] or 0.0, watts, held.get(node.name, 0.0)):
            result[node.name] = watts
    return result


def held_w(given: BudgetInput) -> dict[str, float]:
    """The watts that pods hold, by node; nodes without any are left out."""
    result: dict[str, float] = {}
    for pod in given.snapshot.pods:
        if pod.watts and pod.node and not pod.finished:
            result[pod.node] = result.get(pod.node, 0.0) + pod.watts
    return result


def _moved(there_w: float, wanted_w: int, asked_w: float) -> bool:
    return there_w < asked_w or abs(wanted_w - there_w) > MOVED_SHARE * max(there_w, 1.0)


def _ordered(given: BudgetInput, name: str) -> Order | None:
    twin = given.snapshot.twins.get(name)
    return None if twin is None else order_in(twin)


def _held(given: BudgetInput, columns: MachineColumns) -> list[HeldWatts]:
    """One pass over the pods, by the rows of the nodes."""
    index = {name: row for row, name in enumerate(given.snapshot.nodes)}
    asked, others = np.zeros(len(index)), BoundPods()
    for pod in given.snapshot.pods:
        row = index.get(pod.node)
        if row is None or pod.finished:
            continue
        if pod.watts:
            asked[row] += pod.watts
        else:
            others.add(row, pod)
    drawn = others.added_power_w(columns, given.settings.marginal)
    return [HeldWatts(*pair) for pair in zip(asked.tolist(), drawn.tolist(), strict=True)]
