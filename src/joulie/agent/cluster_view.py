"""What an agent knows of the cluster: its own nodes, their twins and pins, and the profiles that route them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from joulie.agent.shards import Shard
from joulie.cluster.decoding import conversion, decoders
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    TELEMETRY_PROFILES,
    Change,
    Cluster,
    Deleted,
    Resource,
    Synced,
    Undecodable,
    Upserted,
)
from joulie.cluster.undecodable import OnUndecodable, UndecodableObjects
from joulie.model.api import NodeHardware, NodeTwin, TelemetryProfile
from joulie.model.kubernetes import NodeObject
from joulie.model.snapshot import Node, Pin
from joulie.settings import AgentSettings

_NODE = msgspec.json.Decoder(NodeObject)


class SeenNode(NamedTuple):
    """A node, and its uid: what is published about it is deleted with it."""

    node: Node
    uid: str | None


def decode_seen_node(data: bytes) -> SeenNode:
    try:
        told = _NODE.decode(data)
    except ValueError:
        return SeenNode(decoders.decode_node(data), None)  # explains what is wrong
    return SeenNode(conversion.to_node(told), told.metadata.uid)


_WATCHED = (NODES, NODE_TWINS, NODE_POWER_PROFILES, TELEMETRY_PROFILES, NODE_HARDWARE)
_DECODERS = {**decoders.DECODERS, NODES: decode_seen_node}


class AgentScope:
    """Which nodes this agent looks after, and how to ask the API server for their objects alone."""

    def __init__(self, settings: AgentSettings, shard: Shard) -> None:
        self.single = settings.node_name if settings.mode == "daemonset" else ""
        self._selector = settings.pool_node_selector.text
        self._shard = shard

    def owns(self, node: str) -> bool:
        return node == self.single if self.single else self._shard.owns(node)

    def selectors(self, resource: Resource) -> dict[str, str]:
        """Pins and profiles name their nodes in the spec, which cannot be selected by; there are few of them."""
        if self.single and resource in (NODES, NODE_TWINS, NODE_HARDWARE):
            return {"field_selector": f"metadata.name={self.single}"}
        return {"label_selector": self._selector} if resource is NODES and not self.single else {}


class AgentView:
    """Objects by name, kept up to date by events. One that cannot be read counts as absent, and is logged once."""

    def __init__(self, scope: AgentScope, on_undecodable: OnUndecodable) -> None:
        self.scope = scope
        self.nodes: dict[str, SeenNode] = {}
        self.others: dict[str, Node | None] = {}  # in scope, looked after by other shards; None: of no interest here
        self.journalled: frozenset[str] = frozenset()  # nodes whose journals are here
        self.twins: dict[str, NodeTwin] = {}
        self.pins: dict[str, Pin] = {}
        self.profiles: dict[str, TelemetryProfile] = {}
        self.hardware: dict[str, NodeHardware] = {}
        self.members_version = 0  # grows when a node comes or goes
        self.profiles_version = 0  # routes made from an older one are rebuilt
        self.lost_twins: set[str] = set()  # what was written to them is gone, too
        self.woken: set[str] = set()  # nodes whose target may have changed
        self.all_woken = False
        self.change = asyncio.Event()
        self._pins_of: dict[str, list[Pin]] | None = None
        self._undecodable = UndecodableObjects(on_undecodable)
        self._synced: set[Resource] = set()
        self._objects: dict[Resource, dict[str, Any]] = {
            NODES: self.nodes,
            NODE_TWINS: self.twins,
            NODE_POWER_PROFILES: self.pins,
            TELEMETRY_PROFILES: self.profiles,
            NODE_HARDWARE: self.hardware,
        }

    @property
    def synced(self) -> bool:
        return len(self._synced) == len(_WATCHED)

    def pins_of(self, node: str) -> Sequence[Pin]:
        if self._pins_of is None:
            self._pins_of = {}
            for pin in self.pins.values():
                self._pins_of.setdefault(pin.node, []).append(pin)
        return self._pins_of.get(node, ())

    def take_woken(self, all_nodes: Iterable[str]) -> set[str]:
        """The nodes that changed since the last call."""
        woken = set(all_nodes) if self.all_woken else self.woken
        self.woken, self.all_woken = set(), False
        self.change.clear()
        return woken

    def take(self, resource: Resource, changes: Sequence[Change[Any]]) -> None:
        objects = self._objects[resource]
        for change in changes:
            match change:
                case Upserted(key, value):
                    if resource in (NODES, NODE_TWINS, NODE_HARDWARE) and not self.scope.owns(key):
                        self._note_other(resource, key, value)
                        continue
                    before = objects.get(key)
                    objects[key] = value
                    self._undecodable.gone(resource, key)
                    self._wake(resource, key, before, value)
                case Deleted(key):
                    if resource is NODES:
                        self.others.pop(key, None)
                    if resource is NODE_TWINS and key in objects:
                        self.lost_twins.add(key)
                    self._undecodable.gone(resource, key)
                    self._wake(resource, key, objects.pop(key, None), None)
                case Undecodable(key, reason):
                    if resource not in (NODES, NODE_TWINS, NODE_HARDWARE) or self.scope.owns(key):
                        self._wake(resource, key, objects.pop(key, None), None)
                        self._undecodable.found(resource, key, reason)
                case Synced():
                    self._synced.add(resource)
                    self.members_version += 1
                    self.change.set()

    def _note_other(self, resource: Resource, key: str, value: Any) -> None:
        if resource is not NODES:
            return
        if key not in self.others:
            self.members_version += 1
        self.others[key] = value.node if key in self.journalled else None

    def _wake(self, resource: Resource, key: str, before: Any, after: Any) -> None:
        """Wake the nodes concerned; what the agent itself writes wakes none."""
        if resource is NODE_HARDWARE:
            return
        if resource is NODE_TWINS and before and after and before.spec == after.spec:
            return
        if resource is NODES and before and after and before.node == after.node:
            return
        if resource is NODES and (before is None) != (after is None):
            self.members_version += 1
        if resource is TELEMETRY_PROFILES:
            if before and after and before.spec == after.spec:
                return
            self.profiles_version += 1
            self.all_woken = True
        elif resource is NODE_POWER_PROFILES:
            self._pins_of = None
            if before and after and replace(before, status=None) == replace(after, status=None):
                return
            self.woken |= {pin.node for pin in (before, after) if pin and self.scope.owns(pin.node)}
        else:
            self.woken.add(key)
        self.change.set()


async def keep_up_to_date(cluster: Cluster, view: AgentView) -> None:
    """Follow all watches until cancelled."""

    async def follow(resource: Resource) -> None:
        async for changes in cluster.watch(resource, _DECODERS[resource], **view.scope.selectors(resource)):
            view.take(resource, changes)

    async with asyncio.TaskGroup() as watches:
        for resource in _WATCHED:
            watches.create_task(follow(resource))
