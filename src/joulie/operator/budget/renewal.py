"""The Lease `joulie-budget`: its renewals tell agents that an operator watches over the budgets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from joulie.cluster.lease.record import LeaseRecord, new_lease
from joulie.cluster.port import LEASES, Cluster, ClusterError, NotFoundError
from joulie.model.names import BUDGET_LEASE

RENEW_S = 15.0
CALL_S = 5.0


class BudgetLease:
    """Renewed after turns that went well; an agent that sees no renewal falls back to its failsafe caps."""

    def __init__(self, cluster: Cluster, namespace: str, identity: str, clock: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._renewed_s: float | None = None

    async def renew_if_due(self, monotonic_s: float) -> None:
        """ClusterError where it could not be renewed."""
        if self._renewed_s is not None and monotonic_s - self._renewed_s < RENEW_S:
            return
        try:
            async with asyncio.timeout(CALL_S):
                await self._renew()
        except TimeoutError:
            raise ClusterError(f"the Lease {BUDGET_LEASE}: no answer within {CALL_S:g} s") from None
        self._renewed_s = monotonic_s

    async def _renew(self) -> None:
        now_s = self._clock()
        try:
            record = LeaseRecord(await self._cluster.get(LEASES, BUDGET_LEASE, namespace=self._namespace))
        except NotFoundError:
            wanted = new_lease(BUDGET_LEASE, self._namespace, self._identity, RENEW_S, now_s)
            await self._cluster.create(LEASES, wanted, namespace=self._namespace)
            return
        taken = record.taken(self._identity, RENEW_S, now_s)
        await self._cluster.replace(LEASES, taken, namespace=self._namespace)
