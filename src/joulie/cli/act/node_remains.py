"""What Joulie wrote to Node objects, and how `cleanup` takes it off: labels, taints, and watts as a resource."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from joulie.cli.act.each_object import ATTEMPTS
from joulie.cli.connection import ClusterConnection
from joulie.cli.style import plural
from joulie.cluster.port import NODES, ConflictError
from joulie.model.names import GROUP, WATTS_RESOURCE

SIDES = ("capacity", "allocatable")
Object = Mapping[str, Any]


@dataclass(frozen=True)
class NodeRemains:
    """What there is to remove from one node."""

    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    watts: bool = False

    def __bool__(self) -> bool:
        return bool(self.labels or self.taints or self.watts)


def remains_of(node: Object, labels: Collection[str]) -> NodeRemains:
    """People's own labels stay, like managed or rack. Taints of Joulie's domain go: no operator would lift them."""
    status = node.get("status") or {}
    return NodeRemains(
        tuple(key for key in sorted(labels) if key in (node["metadata"].get("labels") or {})),
        tuple(taint["key"] for taint in _taints(node) if _is_ours(taint)),
        any(WATTS_RESOURCE in (status.get(side) or {}) for side in SIDES),
    )


def lines(remains: Collection[NodeRemains]) -> list[str]:
    """What would be removed, for people."""
    counted = (
        ("labels", sum(bool(one.labels) for one in remains)),
        ("taints", sum(bool(one.taints) for one in remains)),
        (f"resource {WATTS_RESOURCE}", sum(one.watts for one in remains)),
    )
    return [f"to remove: Joulie's {what} of {plural(count, 'node')}" for what, count in counted if count]


async def take_off(connection: ClusterConnection, name: str, remains: NodeRemains) -> None:
    """Removes it; a change by another client in between is kept, and so are the taints of others."""
    patch: dict[str, Any] = {"metadata": {"labels": dict.fromkeys(remains.labels)}} if remains.labels else {}
    if patch:
        await connection.cluster.patch(NODES, name, patch)
    if remains.taints:
        await _untaint(connection, name)
    if remains.watts:
        gone = {"status": {side: {WATTS_RESOURCE: None} for side in SIDES}}
        await connection.cluster.patch(NODES, name, gone, status=True)


async def _untaint(connection: ClusterConnection, name: str) -> None:
    """Taints are replaced as one list, so the patch names the version of the node that it was made from."""
    for attempt in range(1, ATTEMPTS + 1):
        for body in await connection.list_all(NODES, fields=f"metadata.name={name}"):
            node = msgspec.json.decode(body)
            kept = [taint for taint in _taints(node) if not _is_ours(taint)]
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            try:
                await connection.cluster.patch(NODES, name, {"metadata": version, "spec": {"taints": kept or None}})
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
                break
        else:
            return


def _taints(node: Object) -> Sequence[dict[str, Any]]:
    return (node.get("spec") or {}).get("taints") or ()


def _is_ours(taint: Object) -> bool:
    return str(taint.get("key", "")).startswith(f"{GROUP}/")
