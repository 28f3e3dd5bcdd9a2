"""Writes orders into twins: cuts before raises, each at most once, and none that could arrive late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from joulie.cluster.patches import merge_patch
from joulie.cluster.port import NODE_TWINS, Cluster, ClusterError, ConflictError, NotFoundError
from joulie.cluster.watch.listing import listed
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.messages import order_in, order_to_write
from joulie.control.budget.planning import OrderWrite
from joulie.model.api import NodeTwin, NodeTwinSpec
from joulie.model.names import API_VERSION
from joulie.operator.state import ClusterState

CONCURRENT_WRITES = 64
WRITE_S = 10.0  # the API server drops a request after this time, so a write without an answer is dead then
TRIES = 3  # against other writers of the same twin: agents and the reconcile loop


class InFlight(NamedTuple):
    """An order whose write was not answered."""

    caps: Pair
    dies_at_s: float


class OrderWriter:
    """Remembers every write that may still arrive: until it is dead, its caps count."""

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        lead_left_s: Callable[[], float],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._lead_left_s = lead_left_s
        self._monotonic_s = monotonic_s
        self._in_flight: dict[str, InFlight] = {}
        self.written = 0
        self.failed: dict[str, str] = {}  # by node, in the last turn

    @property
    def in_flight(self) -> dict[str, Pair]:
        return {name: each.caps for name, each in self._in_flight.items()}

    def forget(self) -> None:
        """A process that no longer leads knows nothing; what it wrote dies before the next leader raises."""
        self._in_flight.clear()

    async def ask_for_lost(self) -> None:
        """Looks up what became of writes that are certainly dead by now."""
        now_s = self._monotonic_s()
        for name in [name for name, each in self._in_flight.items() if now_s > each.dies_at_s]:
            if await self._look_up(name):
                del self._in_flight[name]

    async def write(self, writes: Sequence[OrderWrite]) -> None:
        """Cuts first, then raises, many at a time; nodes whose last write is still open wait for the next turn."""
        self.failed = {}
        for is_cut in (True, False):
            waiting = [each for each in writes if each.is_cut is is_cut and each.node not in self._in_flight]
            places = asyncio.Semaphore(CONCURRENT_WRITES)
            async with asyncio.TaskGroup() as group:
                for each in waiting:
                    group.create_task(self._write_in_turn(each, places))

    async def _write_in_turn(self, write: OrderWrite, places: asyncio.Semaphore) -> None:
        async with places:
            try:
                for _ in range(TRIES):
                    if await self._write(write):
                        self.written += 1
                        return
                self.failed[write.node] = "others kept writing to its twin"
            except (ClusterError, TimeoutError) as error:
                self.failed[write.node] = str(error) or "no answer in time"

    async def _write(self, write: OrderWrite) -> bool:
        """One try; False: another client changed the twin, and its order is still the one that was decided upon."""
        left_s = self._lead_left_s()
        if left_s <= 0:
            raise ClusterError("no longer the leader")
        twin = self._state.twins.get(write.node)
        if not _continues(twin, write):
            raise ClusterError("its twin has changed")
        self._in_flight[write.node] = InFlight(write.order.caps, self._monotonic_s() + WRITE_S)
        try:
            async with asyncio.timeout(min(left_s, WRITE_S)):
                body = await self._send(twin, write)
        except (ConflictError, NotFoundError):
            del self._in_flight[write.node]
            await self._look_up(write.node)
            return False
        except ClusterError as error:
            if not error.is_transient:
                del self._in_flight[write.node]
            raise
        del self._in_flight[write.node]
        self._state.written(NODE_TWINS, write.node, body)
        return True

    async def _send(self, twin: NodeTwin | None, write: OrderWrite) -> bytes:
        budget, failsafe = order_to_write(write.order, write.reason)
        if twin is None:
            spec = NodeTwinSpec(node_name=write.node, budget=budget, failsafe=failsafe)
            created: dict[str, Any] = {
                "apiVersion": API_VERSION,
                "kind": "NodeTwin",
                "metadata": {"name": write.node},
                "spec": msgspec.to_builtins(spec),
            }
            return await self._cluster.create(NODE_TWINS, created, may_send=self._leads)
        there = twin.spec or NodeTwinSpec(node_name=write.node)
        patch = {
            "metadata": {"resourceVersion": twin.metadata.resource_version},
            "spec": merge_patch(there, replace(there, budget=budget, failsafe=failsafe)),
        }
        return await self._cluster.patch(NODE_TWINS, write.node, patch, may_send=self._leads)

    async def _look_up(self, name: str) -> bool:
        """Takes the twin as the server has it; False: no answer."""
        try:
            async with asyncio.timeout(WRITE_S):
                found = await listed(self._cluster, NODE_TWINS, bytes, field_selector=f"metadata.name={name}")
        except (ClusterError, TimeoutError):
            return False
        for each in found:
            self._state.written(NODE_TWINS, name, each.object)
        if not found:
            self._state.gone(NODE_TWINS, name)
        return True

    def _leads(self) -> bool:
        return self._lead_left_s() > 0


def _continues(twin: NodeTwin | None, write: OrderWrite) -> bool:
    """Whether the twin still carries the order after which this one was decided."""
    if twin is None:
        return not write.order.uid
    known = order_in(twin)
    number = known.number if known is not None else 0
    return (twin.metadata.uid or "") == write.order.uid and number == write.after
