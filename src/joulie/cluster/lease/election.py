"""Leader election by a Lease: at any moment at most one process may write.

Clocks need not agree. A candidate measures with its own clock since it saw the Lease change, and takes it over only
after the holder's full lease duration. The holder measures since before it sent its last successful renewal, and stops
earlier. Writers call `is_leader()` immediately before each write: it compares with the clock, so it is right even if
the process was suspended and nothing else had a chance to run.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from joulie.cluster.lease.record import LeaseRecord, new_lease
from joulie.cluster.port import LEASES, Cluster, ClusterError, ConflictError, NotFoundError

T = TypeVar("T")
_NEVER = float("-inf")


def boot_time_s() -> float:
    """A monotonic clock that also counts while the machine is suspended."""
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock_id is None else time.clock_gettime(clock_id)


def unique_identity(name: str) -> str:
    """A name unique to this process, even among restarts of the same pod."""
    return f"{name}_{uuid.uuid4().hex[:8]}"


class LeaseTimes(NamedTuple):
    """Lease duration, renew deadline of the holder, and retry period; each much shorter than the one before.

    The gap between the first two is for writes in progress when a holder stops.
    """

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0


class LeaderHooks:
    """Callbacks about leadership; override what is of interest."""

    def gained(self) -> None:
        """This process became the leader."""

    def lost(self, reason: str) -> None:
        """This process lost the lead; `is_leader()` was already False."""

    def leader(self, identity: str) -> None:
        """The Lease has a new holder; "": none."""

    def failed(self, error: ClusterError) -> None:
        """A call failed and will be retried."""


class LeaderElector:
    """One candidate. `cluster` should not be shared, so that other calls cannot delay renewals."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes | None = None,
        hooks: LeaderHooks | None = None,
        clock: Callable[[], float] = boot_time_s,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.identity = identity
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._lease_s, self._renew_s, self._retry_s = times or LeaseTimes()
        self._hooks = hooks or LeaderHooks()
        self._clock = clock
        self._wall_clock = wall_clock
        self._until_s = _NEVER  # this process leads until then
        self._led = False  # as last reported to the hooks
        self._record: LeaseRecord | None = None  # as last seen or written
        self._seen_s = _NEVER  # when this version was first seen
        self._stopping = asyncio.Event()

    def is_leader(self) -> bool:
        """Whether a write may be sent now, judged by the clock alone."""
        return self._clock() < self._until_s

    def seconds_left(self) -> float:
        """How long this process certainly leads without another renewal: the time limit for a write."""
        return max(0.0, self._until_s - self._clock())

    async def run(self) -> None:
        """Competes and leads until `stop` or cancellation, then releases the Lease."""
        try:
            while not self._stopping.is_set():
                wait_s = await self.step()
                try:
                    async with asyncio.timeout(wait_s):
                        await self._stopping.wait()
                except TimeoutError:
                    continue
        finally:
            await self.release()

    def stop(self) -> None:
        """Ends `run`. Writers must have stopped before, because the next leader may start at once."""
        self._stopping.set()

    async def step(self) -> float:
        """One attempt to acquire or renew the Lease; returns the wait until the next."""
        self._notice_end("the Lease was not renewed in time")
        try:
            if self._led and self._record is not None and self._record.holder == self.identity:
                await self._hold(self._record)
            else:
                await self._compete()
        except ConflictError:
            self._record = None  # another client wrote it: read it again; the lead lasts as long as it is ours
        except ClusterError as error:
            self._hooks.failed(error)
        except ValueError as error:
            self._hooks.failed(ClusterError(f"the Lease cannot be decoded: {error}"))
        self._notice_end("the Lease was not renewed in time")
        return self._wait_s()

    async def release(self) -> None:
        """Stops leading and releases the Lease; if the server does not answer, the Lease expires."""
        held, self._until_s = self._led or self._mine(), _NEVER
        self._notice_end("released")
        if not held:
            return
        try:
            if self._record is None or not self._mine():
                self._see(await self._bounded(self._get()))
            if self._record is not None and self._mine():
                try:
                    await self._write_release(self._record)
                except ConflictError:  # a renewal whose response was lost
                    record = LeaseRecord(await self._bounded(self._get()))
                    if record.holder == self.identity:
                        await self._write_release(record)
        except (ClusterError, ValueError) as error:
            self._hooks.failed(ClusterError(f"the Lease was not released: {error}"))

    async def _compete(self) -> None:
        try:
            record = self._see(await self._bounded(self._get()))
        except NotFoundError:
            began_s = self._clock()
            wanted = new_lease(self._name, self._namespace, self.identity, self._lease_s, self._wall_clock())
            self._won(began_s, await self._bounded(self._cluster.create(LEASES, wanted, namespace=self._namespace)))
            return
        if record.holder not in ("", self.identity):
            if self._led:
                self._until_s = _NEVER
                self._notice_end(f"{record.holder} holds the Lease")
            if self._expires_in_s(record) > 0:
                return
        await self._hold(record)

    async def _hold(self, record: LeaseRecord) -> None:
        """Acquires or renews exactly the version that was seen. Time is measured from before the call."""
        began_s = self._clock()
        wanted = record.taken(self.identity, self._lease_s, self._wall_clock())
        self._won(began_s, await self._bounded(self._cluster.replace(LEASES, wanted, namespace=self._namespace)))

    async def _write_release(self, record: LeaseRecord) -> None:
        released = record.released(self._wall_clock())
        await self._bounded(self._cluster.replace(LEASES, released, namespace=self._namespace))
        self._record = None

    def _won(self, began_s: float, data: bytes) -> None:
        self._see(data)
        self._until_s = began_s + self._renew_s
        if self.is_leader() and not self._led:
            self._led = True
            self._hooks.gained()

    def _see(self, data: bytes) -> LeaseRecord:
        record = LeaseRecord(data)
        known = self._record
        if known is None or known.version != record.version:
            self._seen_s = self._clock()
        if known is None or known.holder != record.holder:
            self._hooks.leader(record.holder)
        self._record = record
        return record

    def _notice_end(self, reason: str) -> None:
        if self._led and not self.is_leader():
            self._led = False
            self._hooks.lost(reason)

    def _mine(self) -> bool:
        return self._record is not None and self._record.holder == self.identity

    def _expires_in_s(self, record: LeaseRecord) -> float:
        return self._seen_s + record.duration_s(self._lease_s) - self._clock()

    def _wait_s(self) -> float:
        """The retry period with jitter, or less if a lease expires before."""
        wait_s = self._retry_s * (0.5 + 0.5 * random.random())
        if self._led:
            return min(wait_s, self.seconds_left())
        if self._record is not None and self._record.holder not in ("", self.identity):
            return max(min(wait_s, self._expires_in_s(self._record)), 0.01)
        return wait_s

    def _get(self) -> Coroutine[Any, Any, bytes]:
        return self._cluster.get(LEASES, self._name, namespace=self._namespace)

    async def _bounded(self, call: Coroutine[Any, Any, T]) -> T:
        """A hard deadline: does not even wait for the call to notice its cancellation."""
        limit_s = self._renew_s / 2
        if self._led:
            limit_s = max(0.001, min(limit_s, self.seconds_left()))
        task = asyncio.ensure_future(call)
        task.add_done_callback(_consume_error)
        try:
            done, _ = await asyncio.wait({task}, timeout=limit_s)
        finally:
            task.cancel()  # no effect on a finished call
        if not done:
            raise ClusterError(f"the Lease: no answer within {limit_s:.3g} s")
        return task.result()


def _consume_error(task: asyncio.Future[Any]) -> None:
    """Retrieves the error of an abandoned call, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
