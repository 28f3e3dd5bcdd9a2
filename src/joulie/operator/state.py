"""The cluster as the operator knows it: dictionaries updated by watch events, never rebuilt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    POWER_BUDGETS,
    TELEMETRY_PROFILES,
    Change,
    Deleted,
    Resource,
    Synced,
    Undecodable,
    Upserted,
)
from joulie.cluster.undecodable import OnUndecodable, UndecodableObjects
from joulie.cluster.watch.deltas import version_of
from joulie.model.api import NodeHardware, NodeTwin, PowerBudget, TelemetryProfile
from joulie.model.snapshot import Node, Pin, Pod, Snapshot, Telemetry

NEEDED = (NODES, PODS, NODE_HARDWARE, NODE_TWINS, NODE_POWER_PROFILES)  # for a decision
WATCHED = (*NEEDED, POWER_BUDGETS, TELEMETRY_PROFILES)


class ClusterState:
    """Objects by key. An undecodable object counts as absent, is counted, and is reported once."""

    def __init__(self, on_undecodable: OnUndecodable) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.hardware: dict[str, NodeHardware] = {}
        self.twins: dict[str, NodeTwin] = {}
        self.pins: dict[str, Pin] = {}
        self.budgets: dict[str, PowerBudget] = {}
        self.profiles: dict[str, TelemetryProfile] = {}
        self.undecodable = UndecodableObjects(on_undecodable)
        self._synced: set[Resource] = set()
        # Of kinds that are written: the last version from the watch, and that of a response ahead of it.
        self._watched: dict[Resource, dict[str, int]] = {
            resource: {} for resource in (NODES, NODE_TWINS, NODE_POWER_PROFILES, POWER_BUDGETS, TELEMETRY_PROFILES)
        }
        self._responded: dict[tuple[Resource, str], int] = {}
        self._objects: dict[Resource, dict[str, Any]] = {
            NODES: self.nodes,
            PODS: self.pods,
            NODE_HARDWARE: self.hardware,
            NODE_TWINS: self.twins,
            NODE_POWER_PROFILES: self.pins,
            POWER_BUDGETS: self.budgets,
            TELEMETRY_PROFILES: self.profiles,
        }

    @property
    def synced(self) -> bool:
        """Whether the first list of every kind that a decision needs is complete."""
        return self._synced.issuperset(NEEDED)

    @property
    def budgets_synced(self) -> bool:
        return self.synced and POWER_BUDGETS in self._synced

    @property
    def all_synced(self) -> bool:
        return self._synced.issuperset(WATCHED)

    def take(self, resource: Resource, changes: Sequence[Change[Any]]) -> None:
        objects = self._objects[resource]
        for change in changes:
            match change:
                case Upserted(key, value, version):
                    if self._is_overtaken(resource, key, version):
                        continue
                    objects[key] = value
                    self.undecodable.gone(resource, key)
                case Deleted(key):
                    self._forget(resource, key)
                    objects.pop(key, None)
                    self.undecodable.gone(resource, key)
                case Undecodable(key, reason):
                    self._forget(resource, key)
                    objects.pop(key, None)
                    self.undecodable.found(resource, key, reason)
                case Synced():  # earlier responses are included now, or belong to another history
                    self._synced.add(resource)
                    self._responded = {known: it for known, it in self._responded.items() if known[0] != resource}

    def written(self, resource: Resource, key: str, body: bytes) -> None:
        """Takes the response to a write, unless the watch has already delivered it or something newer.

        Until the watch has reached that version, its older events about the object are ignored: otherwise a decision in
        the meantime would write the same again. A node that the watch does not know is being deleted.
        """
        watched = self._watched.get(resource)
        if watched is None or (resource is NODES and key not in self.nodes):
            return
        try:
            version = version_of(body)
            change: Change[Any] = Upserted(key, DECODERS[resource](body), version)
        except ValueError as error:
            version, change = 0, Undecodable(key, str(error))
        if 0 < version <= watched.get(key, 0):
            return
        self.take(resource, [change])
        if version:
            self._responded[resource, key] = version

    def has_reached(self, resource: Resource, versions: Mapping[str, int]) -> bool:
        """Whether no object that a list has shown is newer than what is known of it here."""
        known = self._watched[resource]
        return all(
            max(known.get(key, -1), self._responded.get((resource, key), -1)) >= version
            for key, version in versions.items()
        )

    def budget_specs(self) -> dict[str, tuple[int | None, dict[str, str] | None]]:
        """What people have written: a status alone changes nothing of it."""
        return {
            name: (budget.metadata.generation, budget.metadata.annotations) for name, budget in self.budgets.items()
        }

    def gone(self, resource: Resource, key: str) -> None:
        """The server does not have it, whatever the watch says."""
        if resource in self._objects:
            self.take(resource, [Deleted(key)])

    def _is_overtaken(self, resource: Resource, key: str, version: int) -> bool:
        """Whether a response was newer; otherwise remembers this version."""
        watched = self._watched.get(resource)
        if watched is None:
            return False
        responded = self._responded.get((resource, key), 0)
        if 0 < version < responded:
            return True
        watched[key] = version
        if responded:
            del self._responded[resource, key]
        return False

    def _forget(self, resource: Resource, key: str) -> None:
        self._responded.pop((resource, key), None)
        self._watched.get(resource, {}).pop(key, None)

    def snapshot(self, telemetry: Telemetry) -> Snapshot:
        """A view of the live dictionaries, valid until the next event."""
        return Snapshot(self.nodes, self.pods.values(), self.hardware, self.twins, self.pins.values(), telemetry)
