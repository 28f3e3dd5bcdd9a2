"""The cluster as the operator knows it: dictionaries kept up to date by events, never rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joulie.cluster.broken import BrokenObjects, OnBroken
from joulie.cluster.ledger import version_of
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    Broken,
    Change,
    Deleted,
    Resource,
    Synced,
    Upserted,
)
from joulie.cluster.slim import DECODERS
from joulie.model.api import NodeHardware, NodeTwin
from joulie.model.snapshot import Node, Pin, Pod, Snapshot, Telemetry

WATCHED = (NODES, PODS, NODE_HARDWARE, NODE_TWINS, NODE_POWER_PROFILES)


class ClusterState:
    """Objects by key. A broken object counts as absent, is counted, and is named once until it is whole again."""

    def __init__(self, on_broken: OnBroken) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.hardware: dict[str, NodeHardware] = {}
        self.twins: dict[str, NodeTwin] = {}
        self.pins: dict[str, Pin] = {}
        self.broken = BrokenObjects(on_broken)
        self._synced: set[Resource] = set()
        # Of what we write: the last version that was told, and that of an answer which the watch has yet to reach.
        self._told: dict[Resource, dict[str, int]] = {NODES: {}, NODE_TWINS: {}}
        self._answered: dict[tuple[Resource, str], int] = {}
        self._objects: dict[Resource, dict[str, Any]] = {
            NODES: self.nodes,
            PODS: self.pods,
            NODE_HARDWARE: self.hardware,
            NODE_TWINS: self.twins,
            NODE_POWER_PROFILES: self.pins,
        }

    @property
    def synced(self) -> bool:
        """Whether everything that existed at the start is known."""
        return len(self._synced) == len(WATCHED)

    def take(self, resource: Resource, changes: Sequence[Change[Any]]) -> None:
        objects = self._objects[resource]
        for change in changes:
            match change:
                case Upserted(key, value, version):
                    if self._is_overtaken(resource, key, version):
                        continue
                    objects[key] = value
                    self.broken.gone(resource, key)
                case Deleted(key):
                    self._forget(resource, key)
                    objects.pop(key, None)
                    self.broken.gone(resource, key)
                case Broken(key, reason):
                    self._forget(resource, key)
                    objects.pop(key, None)
                    self.broken.found(resource, key, reason)
                case Synced():  # what an answer told before was told now, or belongs to another history
                    self._synced.add(resource)
                    self._answered = {known: it for known, it in self._answered.items() if known[0] != resource}

    def written(self, resource: Resource, key: str, body: bytes) -> None:
        """The answer to a write of ours, unless the watch has told of it, or of something newer, already.

        Until the watch has come so far, what it tells of the object is older and is left out: otherwise a decision in
        the meantime would write the same again. A node that the watch does not know is on its way out.
        """
        told = self._told.get(resource)
        if told is None or (resource is NODES and key not in self.nodes):
            return
        try:
            version = version_of(body)
            change: Change[Any] = Upserted(key, DECODERS[resource](body), version)
        except ValueError as error:
            version, change = 0, Broken(key, str(error))
        if 0 < version <= told.get(key, 0):
            return
        self.take(resource, [change])
        if version:
            self._answered[resource, key] = version

    def gone(self, resource: Resource, key: str) -> None:
        """The server does not know it, whatever the watch said."""
        if resource in self._objects:
            self.take(resource, [Deleted(key)])

    def _is_overtaken(self, resource: Resource, key: str, version: int) -> bool:
        """Whether an answer has told something newer; else this version is now the one that was told."""
        told = self._told.get(resource)
        if told is None:
            return False
        answered = self._answered.get((resource, key), 0)
        if 0 < version < answered:
            return True
        told[key] = version
        if answered:
            del self._answered[resource, key]
        return False

    def _forget(self, resource: Resource, key: str) -> None:
        self._answered.pop((resource, key), None)
        self._told.get(resource, {}).pop(key, None)

    def snapshot(self, telemetry: Telemetry) -> Snapshot:
        """The live dictionaries themselves: valid until the next event is taken."""
        return Snapshot(self.nodes, self.pods.values(), self.hardware, self.twins, self.pins.values(), telemetry)
