"""Executes jobs: many nodes concurrently, each node's writes in order, each write only while leading."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from joulie.cluster.patches import apply_status
from joulie.cluster.port import NODE_TWINS, NODES, Cluster, ClusterError, ConflictError, NotFoundError, Resource
from joulie.operator.rate_limit import TokenBucket, pause
from joulie.operator.writes import Job, Write

CONCURRENT_JOBS = 64
ATTEMPTS = 4
FIRST_RETRY_S = 0.2
MAX_RETRY_S = 5.0  # upper bound for Retry-After; the next decision retries anyway
CALL_DEADLINE_S = 10.0


class NotLeadingError(Exception):
    """Another process may lead by now, so nothing more is written."""


class WriteListener(Protocol):
    """Receives the responses to writes, which arrive before the watch reports them."""

    def written(self, resource: Resource, key: str, body: bytes) -> None:
        """The object after a write."""
        ...

    def gone(self, resource: Resource, key: str) -> None: ...


@dataclass
class WriteOutcome:
    """The results of a batch of jobs."""

    done: list[Job] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # by node
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by verb and resource
    lost_lead: bool = False


class Applier:
    """Writes jobs through the port."""

    def __init__(
        self, cluster: Cluster, bucket: TokenBucket, lead_left_s: Callable[[], float], known: WriteListener
    ) -> None:
        self._cluster = cluster
        self.bucket = bucket
        self._lead_left_s = lead_left_s
        self._known = known
        self.in_flight = 0  # calls without a response yet

    async def run(self, jobs: Iterable[Job], outcome: WriteOutcome | None = None) -> WriteOutcome:
        """Runs all jobs. The next decision retries a failed one, because its difference still exists.

        `outcome` is filled as jobs finish, so that a caller knows what was done even after cancellation.
        """
        outcome = outcome or WriteOutcome()
        waiting = deque(jobs)
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(CONCURRENT_JOBS, len(waiting))):
                workers.create_task(self._work(waiting, outcome))
        return outcome

    async def _work(self, waiting: deque[Job], outcome: WriteOutcome) -> None:
        while waiting and not outcome.lost_lead:
            job = waiting.popleft()
            try:
                for write in job.writes:
                    await self._write(write)
                    kind = f"{write.resource.plural}/status" if write.status else write.resource.plural
                    outcome.writes[write.verb, kind] += 1
                outcome.done.append(job)
            except NotLeadingError:
                outcome.lost_lead = True
            except ClusterError as error:
                outcome.failed[job.node] = str(error)

    async def _write(self, write: Write) -> None:
        """One write, retried while the error is transient; deleting what does not exist succeeds."""
        delay_s = FIRST_RETRY_S
        for attempt in range(1, ATTEMPTS + 1):
            await self.bucket.take(self._leads)
            left_s = self._lead_left_s()
            if left_s <= 0:
                raise NotLeadingError
            try:
                self.in_flight += 1
                try:
                    async with asyncio.timeout(min(left_s, CALL_DEADLINE_S)):
                        await self._call(write)
                finally:
                    self.in_flight -= 1
                return
            except NotFoundError:
                self._known.gone(write.resource, write.name)
                if write.verb == "delete":
                    return
                raise
            except (ClusterError, TimeoutError) as error:
                fault = error if isinstance(error, ClusterError) else ClusterError("no answer in time")
                again = fault.is_transient or (fault.status == 409 and write.verb == "patch")
                if attempt == ATTEMPTS or not again:
                    raise fault from None
                await pause(min(fault.retry_after_s or delay_s, MAX_RETRY_S), self._leads)
                delay_s *= 2

    async def _call(self, write: Write) -> None:
        if write.verb == "delete":
            await self._cluster.delete(write.resource, write.name, uid=write.uid, may_send=self._leads)
            return
        if write.verb == "create":
            answer = await self._create(write)
        else:
            answer = await self._patch(write)
        if answer is not None:
            self._known.written(write.resource, write.name, answer)

    async def _patch(self, write: Write) -> bytes:
        if not write.status:
            return await self._cluster.patch(write.resource, write.name, write.body, may_send=self._leads)
        if write.resource is NODES:  # kubelet's status: only the keys that are named
            return await self._cluster.patch(write.resource, write.name, write.body, status=True, may_send=self._leads)
        status = write.body["status"]
        return await apply_status(
            self._cluster, write.resource, write.name, status, owned=write.owned, may_send=self._leads
        )

    async def _create(self, write: Write) -> bytes | None:
        """Patches the object if it exists already.

        Its creation may have succeeded with a lost response, or it is a twin that cannot be decoded.
        """
        try:
            return await self._cluster.create(
                write.resource, write.body, namespace=write.namespace, may_send=self._leads
            )
        except ConflictError:
            if write.resource is not NODE_TWINS:  # an Event of that name has the same content
                return None
            spec = {"spec": write.body["spec"]}
            return await self._cluster.patch(write.resource, write.name, spec, may_send=self._leads)

    def _leads(self) -> bool:
        """Checked again right before sending, because the process may have been suspended since the last check."""
        return self._lead_left_s() > 0
