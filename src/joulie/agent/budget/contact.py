"""Whether the operator's budget loop is alive: its Lease is renewed, and the watch that brings its orders works.

Time is counted by this machine's monotonic clock from when a renewal was seen; what is found at the start may be of an
operator that is long dead, and counts for nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from joulie.cluster.port import LEASES, Cluster, Synced, Upserted
from joulie.model.names import BUDGET_LEASE

# A watch without any change has its first bookmark after two minutes, and counts as dead half a minute later.
TWIN_WATCH_S = 180.0
CHECKS_PER_LEASE, MAX_CHECK_S = 20.0, 1.0


class _Lease(Struct):
    spec: Raw = Raw(b"")


_LEASE = msgspec.json.Decoder(_Lease)


def decode_lease(data: bytes) -> bytes:
    """What changes with each renewal."""
    return bytes(_LEASE.decode(data).spec)


class BudgetContact:
    """When the Lease was last seen to change. `twin_watch_age_s`: since when the watch of twins is silent."""

    def __init__(
        self,
        lease_s: float,
        twin_watch_age_s: Callable[[], float | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lease_s = lease_s
        self._twin_watch_age_s = twin_watch_age_s
        self._clock = clock
        self._seen: bytes | None = None
        self._renewed_at_s = -math.inf

    def saw(self, spec: bytes) -> None:
        """A version of the Lease; only one that differs from an earlier one is a renewal."""
        if self._seen is not None and self._seen != spec:
            self._renewed_at_s = self._clock()
        self._seen = spec

    def listed(self) -> None:
        """All that exists was told: a Lease that comes up from now on is a renewal, too."""
        self._seen = self._seen or b""

    @property
    def renewal_age_s(self) -> float:
        """Since the last renewal; infinite before the first."""
        return self._clock() - self._renewed_at_s

    @property
    def is_alive(self) -> bool:
        watch_age_s = self._twin_watch_age_s()
        heard = watch_age_s is not None and watch_age_s < max(self._lease_s, TWIN_WATCH_S)
        return heard and self.renewal_age_s < self._lease_s

    async def follow(self, cluster: Cluster, namespace: str, changed: Callable[[bool], None]) -> None:
        """Until cancelled; `changed` is called as soon as contact is lost or found."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch(cluster, namespace))
            tasks.create_task(self._notice(changed))

    async def _watch(self, cluster: Cluster, namespace: str) -> None:
        only = f"metadata.name={BUDGET_LEASE}"
        async for changes in cluster.watch(LEASES, decode_lease, namespace=namespace, field_selector=only):
            for change in changes:
                if isinstance(change, Upserted):
                    self.saw(change.object)
                elif isinstance(change, Synced):
                    self.listed()

    async def _notice(self, changed: Callable[[bool], None]) -> None:
        was_alive = self.is_alive
        while True:
            await asyncio.sleep(min(MAX_CHECK_S, self._lease_s / CHECKS_PER_LEASE))
            if (alive := self.is_alive) != was_alive:
                was_alive = alive
                changed(alive)
