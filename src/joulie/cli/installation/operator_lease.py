"""The operator's lease, seen from outside: its holder, how long it has been silent, and how `cleanup` takes it over."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from joulie.cluster.lease.election import LeaseTimes, unique_identity
from joulie.cluster.lease.record import LeaseRecord
from joulie.cluster.port import LEASES, Cluster, ClusterError, ConflictError, NotFoundError
from joulie.model.rfc3339 import readable_time_s
from joulie.operator.process import LEASE_NAME

if TYPE_CHECKING:
    from joulie.cli.connection import ClusterConnection

SLACK_S = 5.0  # clocks may differ by a few seconds
TIMES = LeaseTimes()
CLEANUP = "joulie-cleanup"  # prefix of its identity, so that it is not mistaken for an operator
HELD_FOR_S = 600.0  # longer than any cleanup, so that no operator gets the lease in between
GONE_S = 3600.0
ATTEMPTS = 20
AGAIN_S = 3 * TIMES.retry_s / 2  # a running operator takes a free lease within this time


class OperatorLease(NamedTuple):
    """The lease of an operator; every namespace in which one ran has one."""

    namespace: str
    holder: str  # "": not held
    renewed_at_s: float | None
    lasts_s: float
    written_at_s: float | None = None  # last renewal by the API server's clock; None: unknown

    def leads(self, now_s: float) -> bool:
        """Whether the holder is alive, as far as the local clock can tell."""
        return bool(self.holder) and self.renewed_at_s is not None and self.silent_s(now_s) <= self.lasts_s + SLACK_S

    def silent_s(self, now_s: float) -> float:
        """Since the last renewal, by the API server's clock if known: a holder with a wrong clock still leads."""
        return now_s - (self.written_at_s or self.renewed_at_s or 0.0)

    @property
    def ahead_s(self) -> float:
        """How far the holder's clock is ahead of the API server's; 0 if unknown."""
        if self.written_at_s is None or self.renewed_at_s is None:
            return 0.0
        return self.renewed_at_s - self.written_at_s


async def operator_leases(connection: ClusterConnection, name: str = LEASE_NAME) -> tuple[OperatorLease, ...] | None:
    """The leases of this name in all namespaces; None if listing them is not allowed."""
    try:
        bodies = await connection.list_all(LEASES, fields=f"metadata.name={name}")
    except ClusterError:
        return None
    return tuple(_lease(msgspec.json.decode(body)) for body in bodies)


def _lease(body: dict[str, object]) -> OperatorLease:
    metadata, spec = body["metadata"], body.get("spec") or {}
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    stamps = [
        stamp_s
        for entry in metadata.get("managedFields") or ()
        if str(entry.get("manager")).startswith("joulie")
        and "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        and (stamp_s := readable_time_s(entry.get("time"))) is not None
    ]
    lasts_s = float(spec.get("leaseDurationSeconds") or LeaseTimes().lease_s)
    return OperatorLease(
        metadata["namespace"],
        spec.get("holderIdentity") or "",
        readable_time_s(spec.get("renewTime")),
        lasts_s,
        max(stamps, default=None),
    )


class LeaseTakeover:
    """Takes the lease by force, so that no operator undoes what `cleanup` does meanwhile.

    An operator checks its lease every two seconds and relies on it for at most ten. After another holder has been
    written and that time has passed, no operator writes.
    """

    def __init__(self, cluster: Cluster, namespace: str, clock: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._identity = unique_identity(CLEANUP)
        self._was_alive = False

    async def exists(self) -> bool:
        return await self._get() is not None

    async def take(self) -> str:
        """Takes the lease and returns the holder that may have been writing until now; empty if there was none."""
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
            except ConflictError:  # renewed meanwhile
                continue
        if previous:
            self._was_alive = True
            await asyncio.sleep(TIMES.renew_s)  # the old holder may believe for this long that it leads
        return previous

    async def renew(self) -> None:
        """Extends the lease if it is still ours; `give_up` reports an operator that took it back."""
        record = await self._get()
        if record is not None and record.holder == self._identity:
            await self._cluster.replace(
                LEASES, record.taken(self._identity, HELD_FOR_S, self._clock()), namespace=self._namespace
            )

    async def give_up(self) -> str:
        """Removes the lease and returns the operator that took it again at once, if one led before."""
        with contextlib.suppress(NotFoundError):
            await self._cluster.delete(LEASES, LEASE_NAME, namespace=self._namespace)
        if not self._was_alive:
            return ""
        await asyncio.sleep(AGAIN_S)
        record = await self._get()
        return "" if record is None else record.holder

    def _is_alive(self, record: LeaseRecord) -> bool:
        """A holder that has not renewed for this long is dead, even if the local clock is wrong."""
        renewed_s = readable_time_s((record.body.get("spec") or {}).get("renewTime"))
        return bool(record.holder) and (renewed_s is None or self._clock() - renewed_s < GONE_S)

    async def _get(self) -> LeaseRecord | None:
        try:
            return LeaseRecord(await self._cluster.get(LEASES, LEASE_NAME, namespace=self._namespace))
        except NotFoundError:
            return None
