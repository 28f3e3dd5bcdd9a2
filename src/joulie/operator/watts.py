"""Watts as a resource on nodes: which nodes' statuses have to be patched. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joulie.cluster.port import NODES
from joulie.control.budget.advertised import advertised, changes, held_w
from joulie.control.budget.counting import Order
from joulie.control.budget.members import BudgetInput
from joulie.model.names import WATTS_RESOURCE
from joulie.model.snapshot import Node
from joulie.operator.writes import Job, Write


def watts_jobs(given: BudgetInput, orders: Mapping[str, Order], *, enabled: bool) -> list[Job]:
    """One patch for each node that has to advertise something else; those that offer less go first.

    `orders` are those of this turn, by node: a cut is advertised together with the order. When the setting is off, what
    was advertised before is removed.
    """
    nodes = given.snapshot.nodes
    wanted = advertised(given, orders) if enabled else {}
    moved = changes(nodes.values(), wanted, held_w(given) if enabled else {})
    return [_job(name, watts) for name, watts in sorted(moved.items(), key=lambda one: (not _falls(nodes, *one), one))]


def _falls(nodes: Mapping[str, Node], name: str, watts: int | None) -> bool:
    return watts is not None and watts < (nodes[name].allocatable_watts or 0.0)


def _job(node: str, watts: int | None) -> Job:
    """Capacity and allocatable together: kubelet computes the second from the first."""
    quantity = None if watts is None else str(watts)
    body: dict[str, Any] = {"status": {side: {WATTS_RESOURCE: quantity} for side in ("capacity", "allocatable")}}
    return Job(node, (Write("patch", NODES, node, body, status=True),), reason="watts as a resource")
