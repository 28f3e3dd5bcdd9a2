"""Takes the operator's lease away, so that whatever is done meanwhile is not undone by an operator.

An operator looks at its lease every two seconds and relies on it for ten at most. Whoever writes another holder into it
and waits that long knows that no operator writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from joulie.cluster.lease import LeaseTimes, unique_identity
from joulie.cluster.lease_record import LeaseRecord
from joulie.cluster.port import LEASES, Cluster, ConflictError, NotFoundError
from joulie.model.rfc3339 import readable_time_s
from joulie.operator.process import LEASE_NAME

TIMES = LeaseTimes()
CLEANUP = "joulie-cleanup"  # how its holder's name begins, so that it is not taken for an operator
HELD_FOR_S = 600.0  # longer than a cleanup takes: nobody gets the lease in between
GONE_S = 3600.0
ATTEMPTS = 20
AGAIN_S = 3 * TIMES.retry_s / 2  # within this time an operator that still runs takes a free lease


class LeaseTaker:
    """Not a candidate: it does not wait for its turn."""

    def __init__(self, cluster: Cluster, namespace: str, clock: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._identity = unique_identity(CLEANUP)
        self._was_alive = False

    async def exists(self) -> bool:
        return await self._get() is not None

    async def take(self) -> str:
        """Who held it and may have been writing until now; empty where nobody did."""
        previous = ""
        for _ in range(ATTEMPTS):
            record = await self._get()
            if record is None:
                return ""
            previous = record.holder if self._is_alive(record) else ""
            wanted = record.taken(self._identity, HELD_FOR_S, self._clock())
            try:
                await self._cluster.replace(LEASES, wanted, namespace=self._namespace)
                break
            except ConflictError:  # it was renewed meanwhile
                continue
        if previous:
            self._was_alive = True
            await asyncio.sleep(TIMES.renew_s)  # so long the old holder may still believe that it leads
        return previous

    async def renew(self) -> None:
        """Somebody may have taken it by force, as we did; then what follows is not safe, and is said at the end."""
        record = await self._get()
        if record is not None and record.holder == self._identity:
            await self._cluster.replace(
                LEASES, record.taken(self._identity, HELD_FOR_S, self._clock()), namespace=self._namespace
            )

    async def give_up(self) -> str:
        """Removes the lease; who took it again at once, if an operator led before."""
        with contextlib.suppress(NotFoundError):
            await self._cluster.delete(LEASES, LEASE_NAME, namespace=self._namespace)
        if not self._was_alive:
            return ""
        await asyncio.sleep(AGAIN_S)
        record = await self._get()
        return "" if record is None else record.holder

    def _is_alive(self, record: LeaseRecord) -> bool:
        """A holder that has not renewed for so long has gone without a goodbye, however wrong our clock may be."""
        renewed_s = readable_time_s((record.body.get("spec") or {}).get("renewTime"))
        return bool(record.holder) and (renewed_s is None or self._clock() - renewed_s < GONE_S)

    async def _get(self) -> LeaseRecord | None:
        try:
            return LeaseRecord(await self._cluster.get(LEASES, LEASE_NAME, namespace=self._namespace))
        except NotFoundError:
            return None
