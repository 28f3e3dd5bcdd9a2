"""The cluster as the extender knows it: a score board, and the pods by name, changed by each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joulie.cluster import slim
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_TWINS,
    NODES,
    PODS,
    Broken,
    Change,
    Decode,
    Deleted,
    Resource,
    Synced,
    Upserted,
)
from joulie.control.board import ScoreBoard
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus
from joulie.model.snapshot import Node, Pod, Snapshot

DECODERS: dict[Resource, Decode[Any]] = {
    NODES: slim.decode_node,
    PODS: slim.decode_pod,
    NODE_HARDWARE: slim.decode_hardware,
    NODE_TWINS: slim.decode_twin,
}
WATCHED = tuple(DECODERS)
_EMPTY_STATUS = NodeTwinStatus()

OnBroken = Callable[[Resource, str, str], None]


class ExtenderState:
    """What requests are answered from. An object that cannot be read counts as absent and is named once."""

    def __init__(self, board: ScoreBoard, on_broken: OnBroken) -> None:
        self.board = board
        self.pods: dict[str, Pod] = {}
        self.on_settled: Callable[[str], None] = _nobody_expects  # a pod is bound, finished or gone
        self._live = False
        self._on_broken = on_broken
        self._broken: dict[tuple[str, str], str] = {}  # why, by kind and key, until it is whole again or gone
        self._synced: set[Resource] = set()
        self._put: dict[Resource, Callable[[str, Any], None]] = {
            NODES: self._put_node,
            PODS: self._put_pod,
            NODE_HARDWARE: self._put_hardware,
            NODE_TWINS: self._put_twin,
        }

    @property
    def synced(self) -> bool:
        """Whether everything that existed at the start is known."""
        return len(self._synced) == len(WATCHED)

    def waits_for_a_node(self, key: str) -> bool:
        """Whether the scheduler may be about to bind it; it may know of a pod before we do. Files never bind one."""
        known = self.pods.get(key)
        return self._live and (known is None or not (known.node or known.finished))

    def take(self, resource: Resource, changes: Sequence[Change[Any]]) -> None:
        self._live = True
        put = self._put[resource]
        for change in changes:
            match change:
                case Upserted(key, value, _):
                    fault = _misnamed(resource, key, value)
                    put(key, None if fault else value)
                    self._note(resource, key, fault)
                case Deleted(key):
                    put(key, None)
                    self._note(resource, key, None)
                case Broken(key, reason):
                    put(key, None)
                    self._note(resource, key, reason)
                case Synced():
                    self._synced.add(resource)

    def load(self, snapshot: Snapshot) -> None:
        """Everything that was read from files, at once."""
        for name, hardware in snapshot.hardware.items():
            self._put_hardware(name, hardware)
        for name, node in snapshot.nodes.items():
            self._put_node(name, node)
        for name, twin in snapshot.twins.items():
            self._put_twin(name, twin)
        for pod in snapshot.pods:
            self._put_pod(f"{pod.namespace}/{pod.name}", pod)
        self._synced.update(WATCHED)

    def _put_node(self, name: str, node: Node | None) -> None:
        self.board.put_node(name, node)

    def _put_hardware(self, name: str, hardware: NodeHardware | None) -> None:
        self.board.put_hardware(name, hardware)

    def _put_twin(self, name: str, twin: NodeTwin | None) -> None:
        self.board.put_twin(name, None if twin is None else twin.status or _EMPTY_STATUS)

    def _put_pod(self, key: str, pod: Pod | None) -> None:
        self.board.put_pod(key, self.pods.get(key), pod)
        if pod is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
        if pod is None or pod.node or pod.finished:
            self.on_settled(key)

    def _note(self, resource: Resource, key: str, fault: str | None) -> None:
        """Say what is broken, but not again with every change that leaves it so."""
        if fault is None:
            if self._broken:
                self._broken.pop((resource.kind, key), None)
        elif self._broken.get((resource.kind, key)) != fault:
            self._broken[resource.kind, key] = fault
            self._on_broken(resource, key, fault)


def _nobody_expects(_key: str) -> None:
    """Nothing was expected of the pod."""


def _misnamed(resource: Resource, key: str, value: Any) -> str | None:
    """A twin speaks for the node of its own name; any other would be a second one for that node."""
    if resource is NODE_TWINS and value.node != key:
        return f"spec.nodeName: {value.node} is not the name of the object"
    return None
