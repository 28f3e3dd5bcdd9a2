"""Writes the agent's reports: paced, only what changed, and retried until it is written."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from joulie.agent.cluster_view import AgentView
from joulie.agent.outcome import Notice
from joulie.agent.reporting.status import (
    ControlReports,
    ControlResults,
    PinReport,
    StatusWrite,
    control_status_of,
    enforced_condition,
    enforced_of,
    event_write,
    hardware_writes,
    is_ahead,
    pin_write,
    profile_write,
    twin_write,
)
from joulie.cluster.node_events import NAMESPACE
from joulie.cluster.patches import apply_status
from joulie.cluster.port import EVENTS, Cluster, ClusterError, ConflictError, NotFoundError
from joulie.control.conditions import by_type, is_news
from joulie.logs import Log
from joulie.model.api import NodeHardwareStatus
from joulie.model.api.results import AGENT_SILENT, Condition

POLL_S = 10.0  # how often to look for what falls due by itself
MIN_PAUSE_S = 0.02
HARDWARE_AGAIN_S = 60.0  # how often to check that all that was published is still there
AT_ONCE = 64
MIN_RATE_PER_S, NODES_PER_WRITE = 10.0, 10.0  # 1,000 nodes: 110 writes a second at most
MAX_WAIT_S = 30.0
MAX_EVENTS = 1000  # that wait; older ones are dropped, for their news is stale
REFUSED_AGAIN_S = 120.0  # how long until what the server refused for good is tried again

_TWIN = "twin "


class _Job(NamedTuple):
    """The writes of one object, and what to remember once they are done."""

    key: str
    writes: Callable[[float], list[StatusWrite]]
    done: Callable[[float], None]


class Reporter:
    """Everything that the agent writes to the API server goes through here."""

    def __init__(
        self, cluster: Cluster, view: AgentView, reporter: str, clock: Callable[[], float] = time.time
    ) -> None:
        self.writes: Counter[tuple[str, str]] = Counter()  # by verb and resource
        self.failures = 0
        self._cluster = cluster
        self._view = view
        self._reporter = reporter
        self._clock = clock
        self._twins = ControlReports()
        self._profiles = ControlReports()
        self._profiles_of: dict[str, tuple[str, ...]] = {}
        self._pins: dict[str, PinReport] = {}  # by name of the pin
        self._pins_told: dict[str, PinReport] = {}
        self._pins_of: dict[str, tuple[str, ...]] = {}
        self._hardware: dict[str, NodeHardwareStatus] = {}
        self._new_hardware: set[str] = set()  # that have, or may have, something to be written
        self._all_hardware_at_s = 0.0
        self._leaving: set[str] = set()
        self._events: deque[StatusWrite] = deque(maxlen=MAX_EVENTS)
        self._refused_until_s: dict[str, float] = {}
        self._complaints: dict[str, str] = {}  # the last error of each kind of write
        self._news = asyncio.Event()
        self._sending: set[str] = set()  # one write of an object at a time, so that the latest stays
        self._again: set[str] = set()
        self._urgent: set[asyncio.Task[None]] = set()
        self._urgent_slots = asyncio.Semaphore(AT_ONCE)
        self._next_slot_s = 0.0
        self._hurried = False
        self._log = Log("agent")

    # What to report

    def results(self, node: str, results: ControlResults, profiles: Iterable[str]) -> None:
        """The results of a node's caps, for its twin and for the profiles of that node alone."""
        self._leaving.discard(node)
        twin = self._view.twins.get(node)
        self._twins.already_there(node, control_status_of(twin), enforced_of(twin))
        before = self._twins.wanted(node)
        is_urgent = results.budget is not None and (before is None or before.budget != results.budget)
        news = self._twins.want(node, results)
        profiles = tuple(profiles)
        for profile in self._profiles_of.pop(node, ()):
            if profile not in profiles:
                self._profiles.forget(profile)  # it is about another node now, or gone
        for profile in profiles:
            news |= self._profiles.want(profile, replace(results, generation=None, budget=None))
        if profiles:
            self._profiles_of[node] = profiles
        if is_urgent:
            self._hurry(node)
        if news:
            self._news.set()

    def pins(self, node: str, reports: Mapping[str, PinReport]) -> None:
        """The results of the pins that name a node; empty where the operator reports them."""
        if not reports and node not in self._pins_of:
            return
        for pin in self._pins_of.pop(node, ()):
            if pin not in reports:
                self._pins.pop(pin, None)
                self._pins_told.pop(pin, None)
        if any(self._pins.get(pin) != report for pin, report in reports.items()):
            self._news.set()
        self._pins |= reports
        if reports:
            self._pins_of[node] = tuple(reports)

    def hardware(self, node: str, found: NodeHardwareStatus) -> None:
        if self._hardware.get(node) != found:
            self._hardware[node] = found
            self._new_hardware.add(node)
            self._news.set()

    def event(self, node: str, notice: Notice) -> None:
        self._events.append(event_write(node, notice, self._clock(), self._reporter))
        self._news.set()

    def farewell(self, node: str) -> None:
        """What was last reported of it is still written, then nothing more."""
        self._hardware.pop(node, None)
        self._leaving.add(node)
        self._news.set()

    # Writing it

    async def run(self) -> None:
        """Until cancelled; backs off from a server that does not answer."""
        wait_s = 1.0
        while True:
            self._news.clear()
            if await self.flush():
                wait_s = 1.0
                # A look costs as much as there are nodes: what comes meanwhile is batched.
                await asyncio.sleep(min(1.0, MIN_PAUSE_S + len(self._view.nodes) / 10_000))
                try:
                    async with asyncio.timeout(POLL_S):
                        await self._news.wait()
                except TimeoutError:
                    continue
            else:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_WAIT_S)

    async def flush(self, *, hurried: bool = False) -> bool:
        """Everything that is due now; False: the server could not be reached for some of it. `hurried`: unpaced."""
        self._hurried = hurried
        wall_s = self._clock()
        waiting = deque(job for job in self._jobs(wall_s) if not self._is_refused(job.key, wall_s))
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
        if hurried and self._urgent:
            await asyncio.gather(*self._urgent)
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
        for name, _ in self._twins.due(wall_s):
            if name in view.twins:
                jobs.append(self._twin_job(name))
        for name, results in self._profiles.due(wall_s):
            if name in view.profiles:
                jobs.append(_profile_job(self._profiles, name, results))
        jobs += [self._pin_job(name, report) for name, report in self._pins.items() if self._is_due(name, report)]
        return [*jobs, *self._hardware_jobs(wall_s)]

    def _twin_job(self, name: str) -> _Job:
        """Of what is to be said when it is its turn."""
        written: list[tuple[ControlResults, Condition]] = []

        def write(wall_s: float) -> list[StatusWrite]:
            results = self._twins.wanted(name)
            if results is None or not self._twins.is_due(name, wall_s):
                return []
            there = enforced_of(self._view.twins.get(name))
            if there is None or there.reason != AGENT_SILENT:  # otherwise the operator has overwritten it since
                there = self._twins.enforced(name) or there
            written.append((results, enforced_condition(results, there, wall_s)))
            return [twin_write(name, *written[-1], wall_s)]

        def done(wall_s: float) -> None:
            for results, enforced in written[-1:]:
                self._twins.written(name, results, wall_s, enforced)

        return _Job(_TWIN + name, write, done)

    def _hurry(self, node: str) -> None:
        """A budget waits for what this node confirms: it is written now, whatever else waits for its turn."""
        task = asyncio.create_task(self._at_once(node))
        self._urgent.add(task)
        task.add_done_callback(self._urgent.discard)

    async def _at_once(self, node: str) -> None:
        job = self._twin_job(node)
        async with self._urgent_slots:
            refused = self._is_refused(job.key, self._clock())
            if refused or node not in self._view.twins or self._twins.is_told(node):
                return
            if not await self._do(job, paced=False):
                self._news.set()

    def _is_due(self, pin: str, report: PinReport) -> bool:
        """Only on change: nothing is inferred from the age of a pin's status."""
        if pin not in self._view.pins:
            return False
        return self._pins_told.get(pin, report) != report or is_news(report.statements, self._pin_conditions(pin))

    def _pin_job(self, name: str, report: PinReport) -> _Job:
        there = self._pin_conditions(name)

        def told(_: float) -> None:
            self._pins_told[name] = report

        return _Job(f"pin {name}", lambda wall_s: [pin_write(name, report, there, wall_s)], told)

    def _pin_conditions(self, name: str) -> dict[str, Condition]:
        status = self._view.pins[name].status
        return by_type(status.conditions if status else None)

    def _hardware_jobs(self, wall_s: float) -> list[_Job]:
        """Of the nodes with news, and from time to time of all: an object may have been deleted."""
        view, jobs = self._view, []
        if not is_ahead(self._all_hardware_at_s, wall_s, HARDWARE_AGAIN_S):
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

    async def _do(self, job: _Job, *, paced: bool = True) -> bool:
        """One object's writes; False: no answer. What to write is asked for when its turn has come."""
        if paced:
            await self._turn()
        if job.key in self._sending:
            self._again.add(job.key)
            return True
        self._sending.add(job.key)
        try:
            return await self._write(job, paced=paced)
        finally:
            self._sending.discard(job.key)
            if job.key in self._again:
                self._again.discard(job.key)
                if job.key.startswith(_TWIN):
                    self._hurry(job.key.removeprefix(_TWIN))

    async def _write(self, job: _Job, *, paced: bool) -> bool:
        wall_s = self._clock()
        try:
            for number, write in enumerate(job.writes(wall_s)):
                if paced and number:
                    await self._turn()
                await self._send(write)
        except NotFoundError:
            return True  # the watch will tell
        except ClusterError as error:
            return self._failed(job.key, error, wall_s)
        self._refused_until_s.pop(job.key, None)
        job.done(wall_s)
        return True

    async def _tell(self, event: StatusWrite) -> bool:
        await self._turn()
        try:
            await self._send(event)
        except ClusterError as error:
            if error.is_transient:
                self._events.appendleft(event)
            return self._failed(f"event {event.name}", error, self._clock())
        return True

    async def _send(self, write: StatusWrite) -> None:
        if write.verb == "patch_status":
            await apply_status(self._cluster, write.resource, write.name, write.body["status"], owned=write.owned)
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
        rate_per_s = MIN_RATE_PER_S + len(self._view.nodes) / NODES_PER_WRITE
        now_s = time.monotonic()
        self._next_slot_s = max(now_s, self._next_slot_s) + 1.0 / rate_per_s
        await asyncio.sleep(max(0.0, self._next_slot_s - now_s - 1.0 / rate_per_s))

    def _remember(self, key: str) -> None:
        """Results stay due by themselves until they are written; hardware has to be named again."""
        kind, _, name = key.partition(" ")
        if kind == "hardware":
            self._new_hardware.add(name)

    def _is_refused(self, key: str, wall_s: float) -> bool:
        return is_ahead(self._refused_until_s.get(key, 0.0), wall_s, REFUSED_AGAIN_S)

    def _failed(self, key: str, error: ClusterError, wall_s: float) -> bool:
        self.failures += 1
        kind, _, name = key.partition(" ")
        if not error.is_transient:
            self._refused_until_s[key] = wall_s + REFUSED_AGAIN_S
        self._remember(key)
        if self._complaints.get(kind) != str(error):  # once, not for every node and every try
            self._complaints[kind] = str(error)
            self._log.warning("report not written; retrying", report=kind, object=name, error=str(error))
        return not error.is_transient


def _profile_job(reports: ControlReports, name: str, results: ControlResults) -> _Job:
    return _Job(
        f"profile {name}",
        lambda wall_s: [profile_write(name, results, wall_s)],
        lambda wall_s: reports.written(name, results, wall_s),
    )
