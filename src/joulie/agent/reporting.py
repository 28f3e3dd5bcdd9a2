"""Writes what the agent has to say: paced, only what changed, and again until it is said."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from joulie.agent.outcome import Notice
from joulie.agent.status import (
    ControlReports,
    Results,
    Write,
    control_status_of,
    event_write,
    hardware_writes,
    profile_write,
    twin_write,
)
from joulie.agent.watching import View
from joulie.cluster.node_events import NAMESPACE
from joulie.cluster.port import EVENTS, Cluster, ClusterError, ConflictError, NotFoundError
from joulie.logs import Log
from joulie.model.api import NodeHardwareStatus

LOOK_S = 10.0  # so often it is looked what falls due by itself
LEAST_PAUSE_S = 0.02
HARDWARE_AGAIN_S = 60.0  # so often it is looked whether all that was published is still there
AT_ONCE = 64
LEAST_RATE_PER_S, NODES_PER_WRITE = 10.0, 10.0  # 1,000 nodes: 110 writes a second at most
LONGEST_WAIT_S = 30.0
MOST_EVENTS = 1000  # that wait; older ones are dropped, for what they told has passed
REFUSED_AGAIN_S = 120.0  # what the server refused for good is tried again so much later


class _Job(NamedTuple):
    """The writes of one object, and what to remember once they are done."""

    key: str
    writes: Callable[[float], list[Write]]
    done: Callable[[float], None]


class Reporter:
    """Everything that the agent writes to the API server goes through here."""

    def __init__(self, cluster: Cluster, view: View, reporter: str, clock: Callable[[], float] = time.time) -> None:
        self.writes: Counter[tuple[str, str]] = Counter()  # by verb and resource
        self.failures = 0
        self._cluster = cluster
        self._view = view
        self._reporter = reporter
        self._clock = clock
        self._twins = ControlReports()
        self._profiles = ControlReports()
        self._profiles_of: dict[str, tuple[str, ...]] = {}
        self._hardware: dict[str, NodeHardwareStatus] = {}
        self._new_hardware: set[str] = set()  # of which something is, or may be, to be written
        self._all_hardware_at_s = 0.0
        self._leaving: set[str] = set()
        self._events: deque[Write] = deque(maxlen=MOST_EVENTS)
        self._refused_until_s: dict[str, float] = {}
        self._complaints: dict[str, str] = {}  # last words about each kind of write
        self._news = asyncio.Event()
        self._next_slot_s = 0.0
        self._hurried = False
        self._log = Log("agent")

    # What there is to say

    def results(self, node: str, results: Results, profiles: Iterable[str]) -> None:
        """What became of a node's caps; told to its twin, and to the profiles of that node alone."""
        self._leaving.discard(node)
        self._twins.already_there(node, control_status_of(self._view.twins.get(node)))
        news = self._twins.want(node, results)
        profiles = tuple(profiles)
        for profile in self._profiles_of.pop(node, ()):
            if profile not in profiles:
                self._profiles.forget(profile)  # it speaks of another node now, or is gone
        for profile in profiles:
            news |= self._profiles.want(profile, results)
        if profiles:
            self._profiles_of[node] = profiles
        if news:
            self._news.set()

    def hardware(self, node: str, found: NodeHardwareStatus) -> None:
        if self._hardware.get(node) != found:
            self._hardware[node] = found
            self._new_hardware.add(node)
            self._news.set()

    def event(self, node: str, notice: Notice) -> None:
        self._events.append(event_write(node, notice, self._clock(), self._reporter))
        self._news.set()

    def farewell(self, node: str) -> None:
        """What was last said of it is still written, and then no more."""
        self._hardware.pop(node, None)
        self._leaving.add(node)
        self._news.set()

    # Saying it

    async def run(self) -> None:
        """Until cancelled; a server that does not answer is given time."""
        wait_s = 1.0
        while True:
            self._news.clear()
            if await self.flush():
                wait_s = 1.0
                # A look costs as much as there are nodes: what comes meanwhile is taken together.
                await asyncio.sleep(min(1.0, LEAST_PAUSE_S + len(self._view.nodes) / 10_000))
                try:
                    async with asyncio.timeout(LOOK_S):
                        await self._news.wait()
                except TimeoutError:
                    continue
            else:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def flush(self, *, hurried: bool = False) -> bool:
        """Everything that is due now; False: the server could not be reached for some of it. `hurried`: at no pace."""
        self._hurried = hurried
        wall_s = self._clock()
        waiting = deque(job for job in self._jobs(wall_s) if self._refused_until_s.get(job.key, 0.0) <= wall_s)
        well = True

        async def work() -> None:
            nonlocal well
            while waiting and well:
                well = await self._do(waiting.popleft()) and well

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(AT_ONCE, len(waiting))):
                workers.create_task(work())
        for job in waiting:  # not even tried
            self._remember(job.key)
        while well and self._events:
            well = await self._tell(self._events.popleft())
        return well

    def _jobs(self, wall_s: float) -> list[_Job]:
        """By object: what to write, and what to remember once it is written; results before hardware."""
        jobs: list[_Job] = []
        view = self._view
        while view.lost_twins:
            self._twins.lost(view.lost_twins.pop())
        for node in [node for node in self._leaving if node not in view.twins or self._twins.is_told(node)]:
            self._leaving.discard(node)
            self._twins.forget(node)
        for name, results in self._twins.due(wall_s):
            if name in view.twins:
                jobs.append(_control_job(self._twins, "twin", name, results))
        for name, results in self._profiles.due(wall_s):
            if name in view.profiles:
                jobs.append(_control_job(self._profiles, "profile", name, results))
        return [*jobs, *self._hardware_jobs(wall_s)]

    def _hardware_jobs(self, wall_s: float) -> list[_Job]:
        """Of the nodes with news, and now and then of all: somebody may have taken an object away."""
        view, jobs = self._view, []
        if wall_s >= self._all_hardware_at_s:
            self._all_hardware_at_s = wall_s + HARDWARE_AGAIN_S
            self._new_hardware |= self._hardware.keys()
        for node in self._new_hardware & view.nodes.keys():  # nothing is published of a node that is not there (yet)
            self._new_hardware.discard(node)
            found = self._hardware.get(node)
            if found is not None and hardware_writes(node, None, found, view.hardware.get(node), wall_s):
                jobs.append(self._hardware_job(node, view.nodes[node].uid, found))
        return jobs

    def _hardware_job(self, node: str, uid: str | None, found: NodeHardwareStatus) -> _Job:
        there = self._view.hardware.get(node)
        return _Job(f"hardware {node}", lambda wall_s: hardware_writes(node, uid, found, there, wall_s), lambda _: None)

    async def _do(self, job: _Job) -> bool:
        """One object's writes; False: nobody answered."""
        wall_s = self._clock()
        try:
            for write in job.writes(wall_s):
                await self._send(write)
        except NotFoundError:
            return True  # the watch will tell
        except ClusterError as error:
            return self._failed(job.key, error, wall_s)
        self._refused_until_s.pop(job.key, None)
        job.done(wall_s)
        return True

    async def _tell(self, event: Write) -> bool:
        try:
            await self._send(event)
        except ClusterError as error:
            if error.may_pass:
                self._events.appendleft(event)
            return self._failed(f"event {event.name}", error, self._clock())
        return True

    async def _send(self, write: Write) -> None:
        await self._turn()
        if write.verb == "patch_status":
            await self._cluster.patch(write.resource, write.name, write.body, status=True)
        else:
            namespace = NAMESPACE if write.resource is EVENTS else ""
            try:
                await self._cluster.create(write.resource, write.body, namespace=namespace)
            except ConflictError:
                return  # it is there, which is all that was wanted
        part = "/status" if write.verb == "patch_status" else ""
        self.writes[write.verb.removesuffix("_status"), f"{write.resource.plural}{part}"] += 1

    async def _turn(self) -> None:
        """Writes leave one after the other at an even pace, which grows with the number of nodes."""
        if self._hurried:
            return
        rate_per_s = LEAST_RATE_PER_S + len(self._view.nodes) / NODES_PER_WRITE
        now_s = time.monotonic()
        self._next_slot_s = max(now_s, self._next_slot_s) + 1.0 / rate_per_s
        await asyncio.sleep(max(0.0, self._next_slot_s - now_s - 1.0 / rate_per_s))

    def _remember(self, key: str) -> None:
        """Results stay due by themselves until they are written; hardware has to be named again."""
        kind, _, name = key.partition(" ")
        if kind == "hardware":
            self._new_hardware.add(name)

    def _failed(self, key: str, error: ClusterError, wall_s: float) -> bool:
        self.failures += 1
        kind, _, name = key.partition(" ")
        if not error.may_pass:
            self._refused_until_s[key] = wall_s + REFUSED_AGAIN_S
        self._remember(key)
        if self._complaints.get(kind) != str(error):  # once, not for every node and every try
            self._complaints[kind] = str(error)
            self._log.warning("report not written, it is tried again", report=kind, object=name, error=str(error))
        return not error.may_pass


def _control_job(reports: ControlReports, kind: str, name: str, results: Results) -> _Job:
    build = twin_write if kind == "twin" else profile_write
    return _Job(
        f"{kind} {name}",
        lambda wall_s: [build(name, results, wall_s)],
        lambda wall_s: reports.written(name, results, wall_s),
    )
