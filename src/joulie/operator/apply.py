"""Executes jobs: many nodes at once, each node's writes in order, each write only while we lead."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from joulie.cluster.port import NODE_TWINS, Cluster, ClusterError, ConflictError, NotFoundError, Resource
from joulie.operator.pacing import TokenBucket, pause
from joulie.operator.writes import Job, Write

CONCURRENT_JOBS = 64
ATTEMPTS = 4
FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 5.0  # whatever the server asks for: the next decision tries again anyway
CALL_DEADLINE_S = 10.0


class NotLeadingError(Exception):
    """Somebody else may lead by now: nothing more is written."""


class Known(Protocol):
    """What is known of the cluster; answers to writes tell it something before the watch does."""

    def written(self, resource: Resource, key: str, body: bytes) -> None:
        """The object as it is after a write."""
        ...

    def gone(self, resource: Resource, key: str) -> None: ...


@dataclass
class Outcome:
    """What became of a batch of jobs."""

    done: list[Job] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # by node
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by verb and resource
    lost_lead: bool = False


class Applier:
    """Writes jobs through the port."""

    def __init__(self, cluster: Cluster, bucket: TokenBucket, lead_left_s: Callable[[], float], known: Known) -> None:
        self._cluster = cluster
        self.bucket = bucket
        self._lead_left_s = lead_left_s
        self._known = known
        self.in_flight = 0  # calls that the server may still carry out

    async def run(self, jobs: Iterable[Job], outcome: Outcome | None = None) -> Outcome:
        """All jobs; a job that fails is tried again at the next decision, because its difference is still there.

        `outcome` grows meanwhile: whoever hands it in knows what was done even if this is cancelled.
        """
        outcome = outcome or Outcome()
        waiting = deque(jobs)
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(CONCURRENT_JOBS, len(waiting))):
                workers.create_task(self._work(waiting, outcome))
        return outcome

    async def _work(self, waiting: deque[Job], outcome: Outcome) -> None:
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
        """One write, tried again while the fault may pass; a deletion of what is gone is done."""
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
                again = fault.may_pass or (fault.status == 409 and write.verb == "patch")
                if attempt == ATTEMPTS or not again:
                    raise fault from None
                await pause(min(fault.retry_after_s or delay_s, LONGEST_RETRY_S), self._leads)
                delay_s *= 2

    async def _call(self, write: Write) -> None:
        if write.verb == "delete":
            await self._cluster.delete(write.resource, write.name, uid=write.uid, may_send=self._leads)
            return
        if write.verb == "create":
            answer = await self._create(write)
        else:
            answer = await self._cluster.patch(
                write.resource, write.name, write.body, status=write.status, may_send=self._leads
            )
        if answer is not None:
            self._known.written(write.resource, write.name, answer)

    async def _create(self, write: Write) -> bytes | None:
        """What exists already is brought to what was to be created.

        It may be ours, with an answer that got lost; or a twin that cannot be read and counts as absent.
        """
        try:
            return await self._cluster.create(
                write.resource, write.body, namespace=write.namespace, may_send=self._leads
            )
        except ConflictError:
            if write.resource is not NODE_TWINS:  # an event of that name tells the same
                return None
            spec = {"spec": write.body["spec"]}
            return await self._cluster.patch(write.resource, write.name, spec, may_send=self._leads)

    def _leads(self) -> bool:
        """Asked again when the bytes are about to leave: the process may have stood still since the last look."""
        return self._lead_left_s() > 0
