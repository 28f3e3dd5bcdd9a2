"""The taint `joulie.io/uncapped`: nodes may register with it, and the operator takes it off once a cap is confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from joulie.cluster.port import NODES, Cluster, ClusterError, MaySend
from joulie.cluster.watch.listing import listed
from joulie.control.budget.counting import CountedCaps
from joulie.control.budget.memory import BudgetMemory
from joulie.model.names import UNCAPPED_TAINT
from joulie.model.snapshot import Node

CALL_S = 10.0
NODES_AT_ONCE = 64


def to_untaint(nodes: Iterable[Node], memory: BudgetMemory, standing: Mapping[str, CountedCaps]) -> list[str]:
    """Nodes whose taint has done its work: no budget waits for a confirmation of theirs any more.

    That is where a cap is confirmed in this boot, where no budget is enforced on the node, and where none will ever be
    confirmed because it is not Joulie's to cap or its agent answered that its devices hold no watts: such a node counts
    all that it can draw, whatever runs there.
    """
    return [
        node.name
        for node in nodes
        if any(taint.key == UNCAPPED_TAINT for taint in node.taints) and _is_settled(node.name, memory, standing)
    ]


def _is_settled(name: str, memory: BudgetMemory, standing: Mapping[str, CountedCaps]) -> bool:
    if name not in memory.groups:
        return True
    member, found = memory.members[name], standing.get(name)
    if not member.is_controlled or (found is not None and found.standing == "confirmed"):
        return True
    seen, order = memory.seen.get(name), member.order
    if seen is None or order is None:
        return False
    told = seen.confirmation
    answered = (told.uid, told.number, told.boot_id) == (member.uid, order.number, member.boot_id)
    return answered and told.held is None


async def untaint(cluster: Cluster, names: Iterable[str], may_send: MaySend) -> dict[str, bytes | str]:
    """By node: the Node without the taint, or why it could not be taken off; the next turn tries again."""
    places = asyncio.Semaphore(NODES_AT_ONCE)

    async def one(name: str) -> tuple[str, bytes | str]:
        async with places:
            try:
                async with asyncio.timeout(CALL_S):
                    return name, await _untainted(cluster, name, may_send)
            except (ClusterError, TimeoutError) as error:
                return name, str(error) or "no answer in time"

    return dict(await asyncio.gather(*(one(name) for name in names)))


async def _untainted(cluster: Cluster, name: str, may_send: MaySend) -> bytes:
    """A merge patch replaces the whole list: it is made from the server's, and refused if that has changed since."""
    found = await listed(cluster, NODES, bytes, field_selector=f"metadata.name={name}")
    if not found:
        raise ClusterError("the node is gone", status=404)
    body = msgspec.json.decode(found[0].object)
    taints: list[dict[str, Any]] = body.get("spec", {}).get("taints") or []
    kept = [taint for taint in taints if taint.get("key") != UNCAPPED_TAINT]
    patch = {
        "metadata": {"resourceVersion": body["metadata"]["resourceVersion"]},
        "spec": {"taints": kept or None},
    }
    return await cluster.patch(NODES, name, patch, may_send=may_send)
