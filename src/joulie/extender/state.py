"""The cluster as the extender knows it: a score board, and the pods by name, changed by each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joulie.cluster.broken import BrokenObjects, OnBroken
from joulie.cluster.port import (
    NODE_HARDWARE,
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
from joulie.control.board import ScoreBoard
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus
from joulie.model.snapshot import Node, Pod, Snapshot

WATCHED = (NODES, PODS, NODE_HARDWARE, NODE_TWINS)
_EMPTY_STATUS = NodeTwinStatus()


class ExtenderState:
    """What requests are answered from. An object that cannot be read counts as absent and is named once."""

    def __init__(self, board: ScoreBoard, on_broken: OnBroken) -> None:
        self.board = board
        self.pods: dict[str, Pod] = {}
        self.on_settled: Callable[[str], None] = _nobody_expects  # a pod is bound, finished or gone
        self._live = False
        self._broken = BrokenObjects(on_broken)
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
                    put(key, value)
                    self._broken.gone(resource, key)
                case Deleted(key):
                    put(key, None)
                    self._broken.gone(resource, key)
                case Broken(key, reason):
                    put(key, None)
                    self._broken.found(resource, key, reason)
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


def _nobody_expects(_key: str) -> None:
    """Nothing was expected of the pod."""
