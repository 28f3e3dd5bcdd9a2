"""The operator's loop: events keep the state, the clock asks for decisions, the leader writes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.node_events import NAMESPACE
from joulie.cluster.port import EVENTS, Cluster, Resource
from joulie.cluster.slim import DECODERS
from joulie.control.cycle import decide, nodes_in_scope
from joulie.control.plan import Plan
from joulie.control.policies.interface import Policy
from joulie.errors import JoulieError
from joulie.logs import Log
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.snapshot import Telemetry
from joulie.operator.apply import Applier, Outcome
from joulie.operator.events import event
from joulie.operator.metrics import OperatorMetrics
from joulie.operator.pacing import TokenBucket, write_rate_per_s
from joulie.operator.state import WATCHED, ClusterState
from joulie.operator.story import Story, Told
from joulie.operator.writes import Job, Write, all_jobs
from joulie.physics.cooling import CoolingModel
from joulie.physics.hardware import machine_of
from joulie.settings import OperatorSettings
from joulie.sources.collector import TelemetryCollector

WIND_UP_S = 0.5  # when told to stop: to say what was done
REFRESH_SPREAD = 0.8  # refreshes take this part of an interval, so that they are over before the next decision


@dataclass(frozen=True)
class Brain:
    """What decides: handed in, because plug-ins are looked up by the command line."""

    policy: Policy
    cooling: CoolingModel
    catalogue: Catalogue


class Operator:
    """One operator process; several may run, one of them leads."""

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        brain: Brain,
        collector: TelemetryCollector,
        lead_left_s: Callable[[], float],
        identity: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = OperatorMetrics(self._is_leader, settings.power_budget_w)
        self.state = ClusterState(self._on_broken)
        self.last_turn_s: float | None = None  # of the last decision, or when it last was another's turn
        self.telemetry = Telemetry()  # of the last decision, as is the plan: for those who look on
        self.plan: Plan | None = None
        self._cluster = cluster
        self._settings = settings
        self._brain = brain
        self._collector = collector
        self._lead_left_s = lead_left_s  # how long a write may take before another may lead; 0: we do not
        self._identity = identity
        self._clock = clock
        self._log = Log("operator")
        self._said: set[str] = set()
        self._refused_told: dict[tuple[str, str], int] = {}
        self._story = Story()
        self._stop: asyncio.Event | None = None
        self._refresher: asyncio.Task[None] | None = None
        self._writer = Applier(cluster, self._bucket(), self._write_time_s, self.state)

    async def watch(self) -> None:
        """Keep the state up to date; runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in WATCHED:
                group.create_task(self._watch(resource))

    async def wait_for_sync(self) -> None:
        while not self.state.synced and not self._stopping():
            await asyncio.sleep(0.05)

    async def run(self, stop: asyncio.Event) -> None:
        """Decide on every interval while leading, until told to stop; then no further write is begun."""
        interval_s = self._settings.decision.plan.reconcile_interval_s
        self._stop = stop
        await self.wait_for_sync()
        self.last_turn_s = self._clock()
        while not stop.is_set():
            started = time.monotonic()
            if self._is_leader():
                await self._reconcile_until(stop)
                wait_s = max(0.0, interval_s - (time.monotonic() - started))
            else:
                self._story.forget()
                self.last_turn_s = self._clock()
                wait_s = min(interval_s, 0.5)  # so that a new leader acts at once
            try:
                await asyncio.wait_for(stop.wait(), wait_s)
            except TimeoutError:
                continue
        await self._end_refreshes()

    async def _reconcile_until(self, stop: asyncio.Event) -> None:
        """When told to stop, only what was sent is waited for; what waits for its turn is another's to write."""
        turn, stopped = asyncio.create_task(self.reconcile()), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
            until_s = time.monotonic() + WIND_UP_S
            while not turn.done() and (self._writer.in_flight or time.monotonic() < until_s):
                await asyncio.sleep(0.01)
        finally:
            for task in (turn, stopped):
                task.cancel()
            await asyncio.gather(turn, stopped, return_exceptions=True)

    async def reconcile(self, *, spread: bool = True) -> Outcome | None:
        """One decision and its writes; whatever goes wrong costs this tick and is said, never the loop.

        Refreshes are spread over the time to the next decision, unless there is none.
        """
        started = time.monotonic()
        await self._end_refreshes()  # what is not written yet is due again in this plan
        try:
            plan, now_s = await self.decide()
            decided = time.monotonic()
            outcome = await self._apply(plan, now_s, spread)
        except JoulieError as error:
            self.metrics.reconcile_errors.inc()
            self._log.error("decision failed, nothing was changed", error=str(error))
            return None
        except Exception:  # noqa: BLE001 - a bug of ours must not end the process that holds the lease
            self.metrics.reconcile_errors.inc()
            self._log.error("decision failed by a fault of Joulie's", exc_info=True)
            return None
        self.last_turn_s = self._clock()
        self.metrics.reconcile_seconds.labels("decide").observe(decided - started)
        self.metrics.reconcile_seconds.labels("apply").observe(time.monotonic() - decided)
        self._report(plan, outcome, time.monotonic() - started)
        return outcome

    async def decide(self) -> tuple[Plan, float]:
        """The plan for the state as it is now."""
        settings = self._settings.decision
        in_scope = nodes_in_scope(self.state.nodes, settings.plan)
        maxima = [
            (
                node.name,
                machine_of(node, self.state.hardware.get(node.name), settings.hardware, self._brain.catalogue).max_w,
            )
            for node in in_scope
        ]
        zones = sorted({node.labels[COOLING_ZONE_LABEL] for node in in_scope if COOLING_ZONE_LABEL in node.labels})
        racks = sorted({node.labels[RACK_LABEL] for node in in_scope if RACK_LABEL in node.labels})
        telemetry = await self._collector.refresh(maxima, zones, racks)
        now_s = self._clock()
        brain = self._brain
        plan = decide(
            self.state.snapshot(telemetry),
            settings,
            now_s,
            policy=brain.policy,
            cooling=brain.cooling,
            catalogue=brain.catalogue,
        )
        self._collector.record(plan.twins, now_s)
        self.telemetry, self.plan = telemetry, plan
        return plan, now_s

    def pending_jobs(self, plan: Plan, now_s: float) -> list[Job]:
        """The writes that this plan asks for, given what is there."""
        return all_jobs(plan, self.state.nodes, self.state.twins, self._settings, now_s)

    async def _apply(self, plan: Plan, now_s: float, spread: bool) -> Outcome:
        self.metrics.show(plan, self.state.nodes, self.state.twins)
        wanted = self.pending_jobs(plan, now_s)
        refreshes = [job for job in wanted if job.refresh_only and spread]
        at_once = [job for job in wanted if not (job.refresh_only and spread)]
        self._writer_rate(len(plan.twins))
        outcome = await self._writer.run(at_once)
        self.metrics.count(outcome)
        await self._tell(self._story.changes(plan, at_once, outcome), now_s)
        if outcome.lost_lead:
            self._story.forget()
        elif refreshes:
            self._refresher = asyncio.create_task(self._refresh(refreshes))
        return outcome

    async def _refresh(self, refreshes: list[Job]) -> None:
        """Unchanged twins, written again at an even pace between two decisions."""
        interval_s = self._settings.decision.plan.reconcile_interval_s
        pace = TokenBucket(len(refreshes) / (interval_s * REFRESH_SPREAD), 1, time.monotonic)
        outcome = Outcome()
        try:
            await Applier(self._cluster, pace, self._write_time_s, self.state).run(refreshes, outcome)
        finally:
            self.metrics.count(outcome)

    async def _end_refreshes(self) -> None:
        if self._refresher is not None:
            self._refresher.cancel()
            await asyncio.gather(self._refresher, return_exceptions=True)
            self._refresher = None

    async def _tell(self, changes: list[Told], now_s: float) -> None:
        """A log line, a count and an event for each transition that was written."""
        events: list[Job] = []
        for node, change, reason in changes:
            self._log.info("transition", node=node, **change._asdict(), reason=reason)
            self.metrics.transitions.labels(node, *change).inc()
            body = event(node, change, reason, now_s, self._identity)
            write = Write("create", EVENTS, body["metadata"]["name"], body, namespace=NAMESPACE)
            events.append(Job(node, (write,)))
        outcome = await self._writer.run(events)
        self.metrics.count(outcome)
        if outcome.failed:
            node, error = min(outcome.failed.items())
            self._log.warning("events not written", events=len(outcome.failed), first_node=node, error=error)

    def _report(self, plan: Plan, outcome: Outcome, seconds: float) -> None:
        for kind in {resource.kind for resource in WATCHED}:
            self.metrics.broken_objects.labels(kind).set(self.state.broken.count(kind))
        for source in ("kepler", "http", "utilization", "static"):
            self.metrics.tier_nodes.labels(source).set(plan.twins.sources.count(source))
        for (source, reason), number in self._collector.statistics.refused.items():
            told = self._refused_told.get((source, reason), 0)
            self.metrics.refused_readings.labels(source, reason).inc(number - told)
            self._refused_told[source, reason] = number
        for message in self._collector.take_messages():
            self._log.warning(message)
        for warning in plan.warnings:
            if warning not in self._said:
                self._log.warning(warning)
        self._said = set(plan.warnings)
        failed = dict(sorted(outcome.failed.items())[:3])
        self._log.info(
            "decided",
            policy=plan.policy,
            nodes=len(plan.twins),
            performance=plan.count("performance"),
            eco=plan.count("eco"),
            draining=plan.count("draining"),
            written=sum(outcome.writes.values()),
            failed=len(outcome.failed),
            seconds=round(seconds, 3),
            **({"first_failures": failed} if failed else {}),
            **({"unfinished": "no longer leading"} if outcome.lost_lead else {}),
        )

    async def _watch(self, resource: Resource) -> None:
        async for changes in self._cluster.watch(resource, DECODERS[resource]):
            self.state.take(resource, changes)

    def _on_broken(self, resource: Resource, key: str, reason: str) -> None:
        self.metrics.broken_seen.labels(resource.kind).inc()
        self._log.warning("object cannot be read, it counts as absent", kind=resource.kind, object=key, reason=reason)

    @property
    def leads(self) -> bool:
        return self._is_leader()

    def _is_leader(self) -> bool:
        return self._lead_left_s() > 0

    def _stopping(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    def _write_time_s(self) -> float:
        """How long a write may take; 0: none may begin."""
        return 0.0 if self._stopping() else self._lead_left_s()

    def _bucket(self) -> TokenBucket:
        return TokenBucket(
            write_rate_per_s(self._settings.kube_client_qps, 0), self._settings.kube_client_burst, time.monotonic
        )

    def _writer_rate(self, nodes: int) -> None:
        self._writer.bucket.rate_per_s = write_rate_per_s(self._settings.kube_client_qps, nodes)
