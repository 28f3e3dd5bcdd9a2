"""The cluster as the extender knows it: a score board and the pods by key, updated by watch events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_TWINS,
    NODES,
    PODS,
    POWER_BUDGETS,
    Change,
    Deleted,
    Resource,
    Synced,
    Undecodable,
    Upserted,
)
from joulie.cluster.undecodable import OnUndecodable, UndecodableObjects
from joulie.control.placement.board import ScoreBoard, updated_at_s
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus, PowerBudget
from joulie.model.snapshot import Node, Pod, Snapshot

NEEDED = (NODES, PODS, NODE_HARDWARE, NODE_TWINS)
# Budgets move scores, and nothing waits for them: an older installation has neither the kind nor the right to read it.
WATCHED = (*NEEDED, POWER_BUDGETS)
_EMPTY_STATUS = NodeTwinStatus()


class ExtenderState:
    """What requests are answered from. Undecodable objects count as absent and are reported once."""

    def __init__(
        self, board: ScoreBoard, on_undecodable: OnUndecodable, clock: Callable[[], float] = time.time
    ) -> None:
        self.board = board
        self.clock_ahead_s = 0.0  # the operator's clock minus ours, from its last refresh
        self._clock = clock
        self._refreshed: dict[str, tuple[float, float]] = {}  # by node: the time in its twin, and when that was seen
        self.pods: dict[str, Pod] = {}
        self.on_settled: Callable[[str], None] = _ignore  # a pod was bound, finished or deleted
        self.on_waiting: Callable[[str], object] = _ignore  # a pod is pending
        self._live = False
        self._undecodable = UndecodableObjects(on_undecodable)
        self._synced: set[Resource] = set()
        self._put: dict[Resource, Callable[[str, Any], None]] = {
            NODES: self._put_node,
            PODS: self._put_pod,
            NODE_HARDWARE: self._put_hardware,
            NODE_TWINS: self._put_twin,
            POWER_BUDGETS: self._put_budget,
        }

    @property
    def synced(self) -> bool:
        """Whether the first list of every kind that is needed is complete."""
        return self._synced.issuperset(NEEDED)

    def may_be_bound(self, key: str) -> bool:
        """Whether the scheduler may be about to bind the pod, which it may know before we do; never with files."""
        return self._live and (key not in self.pods or self.waiting(key) is not None)

    def waiting(self, key: str) -> Pod | None:
        """The pod, if it is known and pending."""
        known = self.pods.get(key)
        return None if known is None or known.node or known.finished else known

    def take(self, resource: Resource, changes: Sequence[Change[Any]]) -> None:
        self._live = True
        put = self._put[resource]
        for change in changes:
            match change:
                case Upserted(key, value, _):
                    put(key, value)
                    self._undecodable.gone(resource, key)
                case Deleted(key):
                    put(key, None)
                    self._undecodable.gone(resource, key)
                case Undecodable(key, reason):
                    put(key, None)
                    self._undecodable.found(resource, key, reason)
                case Synced():
                    self._synced.add(resource)

    def load(self, snapshot: Snapshot, budgets: Iterable[PowerBudget] = ()) -> None:
        """Takes everything from files at once."""
        for name, hardware in snapshot.hardware.items():
            self._put_hardware(name, hardware)
        for name, node in snapshot.nodes.items():
            self._put_node(name, node)
        for name, twin in snapshot.twins.items():
            self._put_twin(name, twin)
        for pod in snapshot.pods:
            self._put_pod(f"{pod.namespace}/{pod.name}", pod)
        for budget in budgets:
            self._put_budget(budget.metadata.name, budget)
        self._synced.update(WATCHED)

    def _put_node(self, name: str, node: Node | None) -> None:
        self.board.put_node(name, node)

    def _put_hardware(self, name: str, hardware: NodeHardware | None) -> None:
        self.board.put_hardware(name, hardware)

    def _put_twin(self, name: str, twin: NodeTwin | None) -> None:
        status = None if twin is None else twin.status or _EMPTY_STATUS
        self.board.put_twin(name, status, self._alive_s(name, status) if self._live else None)
        self.board.put_orders(name, twin)

    def _put_budget(self, name: str, budget: PowerBudget | None) -> None:
        self.board.put_budget(name, budget)

    def _alive_s(self, name: str, status: NodeTwinStatus | None) -> float | None:
        """When the twin was last refreshed, by our own clock.

        Clocks differ between machines, so the time in a twin only shows whether the operator has written since. The
        first one seen is taken as it is, but never as later than now.
        """
        at_s, now_s = updated_at_s(status), self._clock()
        if at_s is None:
            self._refreshed.pop(name, None)
            return None
        before_s, alive_s = self._refreshed.get(name, (math.inf, 0.0))
        if at_s > before_s:
            self.clock_ahead_s, alive_s = at_s - now_s, now_s
        elif at_s < before_s:
            alive_s = min(at_s, now_s)
        self._refreshed[name] = at_s, alive_s
        return alive_s

    def _put_pod(self, key: str, pod: Pod | None) -> None:
        self.board.put_pod(key, self.pods.get(key), pod)
        if pod is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
        if pod is None or pod.node or pod.finished:
            self.on_settled(key)
        else:
            self.on_waiting(key)


def _ignore(_key: str) -> None:
    """The default: nothing is informed."""
