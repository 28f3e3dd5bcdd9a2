"""The operator's loop: watch events update the state, each interval brings a decision, the leader writes it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.node_events import NAMESPACE, EventDetails, node_event
from joulie.cluster.port import EVENTS, POWER_BUDGETS, Cluster, Resource
from joulie.control.budget.cycle import held_by_orders
from joulie.control.cycle import decide, nodes_in_scope
from joulie.control.plan import Plan
from joulie.control.policies.interface import Policy
from joulie.errors import JoulieError
from joulie.logs import Log
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.snapshot import Telemetry
from joulie.model.tiers import TIER_NAMES
from joulie.operator.apply import Applier, WriteOutcome
from joulie.operator.empty_scope import EmptyScope
from joulie.operator.metrics import OperatorMetrics
from joulie.operator.profile_status import pin_jobs, telemetry_jobs
from joulie.operator.rate_limit import TokenBucket, write_rate_per_s
from joulie.operator.state import WATCHED, ClusterState
from joulie.operator.transition_events import PendingTransitions, StateChange, event
from joulie.operator.twin_conditions import SilentAgents
from joulie.operator.writes import LEFT_SCOPE, Job, Write, all_jobs
from joulie.physics.cooling import CoolingModel
from joulie.physics.hardware import machine_of
from joulie.settings import OperatorSettings
from joulie.sources.collector import Statistics, TelemetryCollector

PROFILES_WAIT_S = 5.0
WIND_UP_S = 0.5  # at shutdown, to report what was done
FIRST_READINGS_S = (
    1.0  # a new leader waits this long, once, for telemetry; otherwise every node's power source would change
)
REFRESH_SPREAD = 0.8  # share of an interval for refreshes, so that they are done before the next decision


@dataclass(frozen=True)
class DecisionModels:
    """Policy, cooling model and catalogue; passed in, because the command line loads plug-ins."""

    policy: Policy
    cooling: CoolingModel
    catalogue: Catalogue


class Operator:
    """One operator process; several may run, and one of them leads."""

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        models: DecisionModels,
        collector: TelemetryCollector,
        lead_left_s: Callable[[], float],
        identity: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = OperatorMetrics(self._is_leader, settings.power_budget_w)
        self.state = ClusterState(self._on_undecodable)
        # When it last decided or was not the leader, by a monotonic clock: with wall-clock time a health check would
        # restart the operator after the clock was set.
        self.last_turn_s: float | None = None
        self.telemetry = Telemetry()  # of the last decision, like the plan: for the dashboard
        self.plan: Plan | None = None
        self.budgets_changed = asyncio.Event()  # so that a cut does not wait for the next turn
        self.kept_twins: Collection[str] = ()  # of deleted nodes that still count under a budget
        self._cluster = cluster
        self._settings = settings
        self._models = models
        self._collector = collector
        self._lead_left_s = lead_left_s  # how long a write may take before another process may lead; 0: not leading
        self.identity = identity
        self._clock = clock
        self._log = Log("operator")
        self._said: set[str] = set()
        self._counted = Statistics()  # of the sources: already counted in metrics
        self._pending_transitions = PendingTransitions()
        self._silent_agents = SilentAgents()
        self._empty_scope = EmptyScope(settings.empty_scope_grace_s)
        self._holding = False
        self._stop: asyncio.Event | None = None
        self._refresher: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None  # reads the sources while this operator leads
        self._writer = Applier(cluster, self._bucket(), self._write_time_s, self.state)

    async def watch(self) -> None:
        """Keeps the state up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in WATCHED:
                group.create_task(self._watch(resource))

    async def wait_for_sync(self) -> None:
        while not self.state.synced and not self._stopping():
            await asyncio.sleep(0.05)
        # The rest is needed for counts only, so decisions do not wait for it any longer.
        until_s = time.monotonic() + PROFILES_WAIT_S
        while not self.state.all_synced and not self._stopping() and time.monotonic() < until_s:
            await asyncio.sleep(0.05)

    async def run(self, stop: asyncio.Event) -> None:
        """Decides on every interval while leading, until `stop`; then no further write is started."""
        interval_s = self._settings.decision.plan.reconcile_interval_s
        self._stop = stop
        await self.wait_for_sync()
        self.last_turn_s = time.monotonic()
        while not stop.is_set():
            started = time.monotonic()
            if self._is_leader():
                await self._start_polling()
                await self._reconcile_until(stop)
                wait_s = max(0.0, interval_s - (time.monotonic() - started))
            else:
                await self._end(self._polling)
                self._pending_transitions.forget()
                self.last_turn_s = time.monotonic()
                wait_s = min(interval_s, 0.5)  # so that a new leader acts at once
            try:
                await asyncio.wait_for(stop.wait(), wait_s)
            except TimeoutError:
                continue
        await self._end(self._polling)
        await self._end(self._refresher)

    async def _reconcile_until(self, stop: asyncio.Event) -> None:
        """At shutdown waits only for writes in flight; the next leader does the rest."""
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

    async def reconcile(self, *, spread: bool = True) -> WriteOutcome | None:
        """One decision and its writes. An error costs this tick and is logged; it never ends the loop.

        With `spread`, refreshes are spread over the time until the next decision.
        """
        started = time.monotonic()
        await self._end(self._refresher)  # the rest is due again in this plan
        try:
            plan, now_s = await self.decide()
            decided = time.monotonic()
            outcome = await self._apply(plan, now_s, spread)
        except JoulieError as error:
            self.metrics.reconcile_errors.inc()
            self._log.error("decision failed; nothing was changed", error=str(error))
            return None
        except Exception:  # noqa: BLE001 - a bug of ours must not end the process that holds the lease
            self.metrics.reconcile_errors.inc()
            self._log.error("decision failed: internal error", exc_info=True)
            return None
        self.last_turn_s = time.monotonic()
        self.metrics.reconcile_seconds.labels("decide").observe(decided - started)
        self.metrics.reconcile_seconds.labels("apply").observe(time.monotonic() - decided)
        self._report(plan, outcome, time.monotonic() - started)
        return outcome

    async def decide(self) -> tuple[Plan, float]:
        """The plan for the current state."""
        settings = self._settings.decision
        self._set_scope()
        is_polling = self._polling is not None and not self._polling.done()
        telemetry = self._collector.telemetry() if is_polling else await self._collector.read_once()
        now_s = self._clock()
        models = self._models
        plan = decide(
            self.state.snapshot(telemetry),
            settings,
            now_s,
            policy=models.policy,
            cooling=models.cooling,
            catalogue=models.catalogue,
        )
        self._collector.record(plan.twins, now_s)
        self.telemetry, self.plan = telemetry, plan
        return plan, now_s

    @property
    def catalogue(self) -> Catalogue:
        return self._models.catalogue

    def now_s(self) -> float:
        return self._clock()

    def latest_telemetry(self) -> Telemetry:
        """Newer than that of the last decision while sources are read in the background."""
        is_polling = self._polling is not None and not self._polling.done()
        return self._collector.telemetry() if is_polling else self.telemetry

    def pending_jobs(self, plan: Plan, now_s: float) -> list[Job]:
        """The writes that are missing for this plan."""
        state = self.state
        silent = self._silent_agents.names(state.twins, time.monotonic())
        return [
            *self._without_kept(all_jobs(plan, state.nodes, state.twins, self._settings, now_s, silent)),
            *pin_jobs(plan, state.pins.values(), state.nodes, state.twins, now_s),
            *telemetry_jobs(plan, state.profiles.values(), state.nodes, state.twins, now_s),
        ]

    def _without_kept(self, jobs: list[Job]) -> list[Job]:
        """Twins that budgets still need are not deleted; what else goes with them does."""
        kept = {*self.kept_twins, *held_by_orders(self.state.nodes, self.state.twins)}
        found = []
        for job in jobs:
            if job.reason == LEFT_SCOPE and job.node in kept:
                writes = tuple(write for write in job.writes if write.verb != "delete")
                found += [job._replace(writes=writes)] if writes else []
            else:
                found.append(job)
        return found

    async def _apply(self, plan: Plan, now_s: float, spread: bool) -> WriteOutcome:
        self.metrics.show(plan, self.state.nodes, self.state.twins)
        wanted = self.pending_jobs(plan, now_s)
        if spread:  # a single decision was requested by a person
            wanted = await self._hold_removals(wanted, plan, now_s)
        refreshes = [job for job in wanted if job.refresh_only and spread]
        at_once = [job for job in wanted if not (job.refresh_only and spread)]
        self._writer_rate(len(plan.twins))
        outcome = await self._writer.run(at_once)
        self.metrics.count(outcome)
        await self._announce(self._pending_transitions.changes(plan, at_once, outcome), now_s)
        if outcome.lost_lead:
            self._pending_transitions.forget()
        elif refreshes:
            self._refresher = asyncio.create_task(self._refresh(refreshes))
        return outcome

    async def _hold_removals(self, jobs: list[Job], plan: Plan, now_s: float) -> list[Job]:
        """Removes all twins only after the scope has been empty for a while, and with a warning."""
        nodes, first_time = self.state.nodes, not self._holding
        left_s = self._empty_scope.left_s(len(plan.twins), nodes, self.state.twins)
        kept = self._empty_scope.without_removals(jobs, nodes) if left_s else jobs
        held = sorted({job.node for job in jobs} - {job.node for job in kept})
        self._holding = bool(held)
        self.metrics.held_removals.set(len(held))
        if held:
            selector = self._settings.decision.plan.node_selector.text
            said = f"no node is in scope (NODE_SELECTOR {selector!r}): {len(held)} twins and their caps will be removed"
            said += f" in {left_s:.0f} s"
            self._log.error(said, nodes=len(held), first_node=held[0])
            if first_time:
                body = node_event(
                    held[0], EventDetails("operator", self.identity, "ScopeEmpty", said, "Warning"), now_s
                )
                write = Write("create", EVENTS, body["metadata"]["name"], body, namespace=NAMESPACE)
                self.metrics.count(await self._writer.run([Job(held[0], (write,))]))
        elif removed := sorted(job.node for job in jobs if job.reason == LEFT_SCOPE):
            self._log.warning("nodes left the scope; removing their twins", nodes=len(removed), first_node=removed[0])
        return kept

    async def _refresh(self, refreshes: list[Job]) -> None:
        """Refreshes unchanged twins at an even pace until the next decision."""
        interval_s = self._settings.decision.plan.reconcile_interval_s
        pace = TokenBucket(len(refreshes) / (interval_s * REFRESH_SPREAD), 1, time.monotonic)
        outcome = WriteOutcome()
        try:
            await Applier(self._cluster, pace, self._write_time_s, self.state).run(refreshes, outcome)
        finally:
            self.metrics.count(outcome)

    async def _start_polling(self) -> None:
        """Starts reading sources in the background, so that no decision waits for a slow one."""
        if self._polling is not None and not self._polling.done():
            return
        self._set_scope()
        self._polling = asyncio.create_task(self._collector.run())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._collector.first_round.wait(), FIRST_READINGS_S)

    def _set_scope(self) -> None:
        """Passes the nodes, zones and racks in scope to the collector."""
        settings = self._settings.decision
        in_scope = nodes_in_scope(self.state.nodes, settings.plan)
        maxima = [
            (
                node.name,
                machine_of(node, self.state.hardware.get(node.name), settings.hardware, self._models.catalogue).max_w,
            )
            for node in in_scope
        ]
        zones = {node.labels[COOLING_ZONE_LABEL] for node in in_scope if COOLING_ZONE_LABEL in node.labels}
        racks = {node.labels[RACK_LABEL] for node in in_scope if RACK_LABEL in node.labels}
        self._collector.set_scope(maxima, zones, racks)

    @staticmethod
    async def _end(task: asyncio.Task[None] | None) -> None:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _announce(self, changes: list[StateChange], now_s: float) -> None:
        """Logs and counts each completed transition and creates its Event."""
        events: list[Job] = []
        for node, change, reason in changes:
            self._log.info("transition", node=node, **change._asdict(), reason=reason)
            self.metrics.transitions.labels(node, *change).inc()
            body = event(node, change, reason, now_s, self.identity)
            write = Write("create", EVENTS, body["metadata"]["name"], body, namespace=NAMESPACE)
            events.append(Job(node, (write,)))
        outcome = await self._writer.run(events)
        self.metrics.count(outcome)
        if outcome.failed:
            node, error = min(outcome.failed.items())
            self._log.warning("events could not be written", events=len(outcome.failed), first_node=node, error=error)

    def _report(self, plan: Plan, outcome: WriteOutcome, seconds: float) -> None:
        for kind in {resource.kind for resource in WATCHED}:
            self.metrics.broken_objects.labels(kind).set(self.state.undecodable.count(kind))
        for source in TIER_NAMES:
            self.metrics.tier_nodes.labels(source).set(plan.twins.sources.count(source))
        self._report_sources(self._collector.statistics)
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

    def _report_sources(self, statistics: Statistics) -> None:
        for (source, reason), number in (statistics.refused - self._counted.refused).items():
            self.metrics.refused_readings.labels(source, reason).inc(number)
        for source, number in (statistics.failures - self._counted.failures).items():
            self.metrics.source_failures.labels(source).inc(number)
        self._counted = Statistics(refused=statistics.refused.copy(), failures=statistics.failures.copy())
        for source, at_s in statistics.last_success_s.items():
            self.metrics.source_success.labels(source).set(at_s)
        for source, ahead_s in statistics.clock_ahead_s.items():
            self.metrics.clock_ahead.labels(source).set(ahead_s)

    async def _watch(self, resource: Resource) -> None:
        async for changes in self._cluster.watch(resource, DECODERS[resource]):
            before = self.state.budget_specs() if resource is POWER_BUDGETS else None
            self.state.take(resource, changes)
            if before is not None and before != self.state.budget_specs():
                self.budgets_changed.set()

    def _on_undecodable(self, resource: Resource, key: str, reason: str) -> None:
        self.metrics.broken_seen.labels(resource.kind).inc()
        self._log.warning("object cannot be read; treated as absent", kind=resource.kind, object=key, reason=reason)

    @property
    def leads(self) -> bool:
        return self._is_leader()

    def _is_leader(self) -> bool:
        return self._lead_left_s() > 0

    def _stopping(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    def _write_time_s(self) -> float:
        """How long a write may take; 0: none may start."""
        return 0.0 if self._stopping() else self._lead_left_s()

    def _bucket(self) -> TokenBucket:
        return TokenBucket(
            write_rate_per_s(self._settings.kube_client_qps, 0), self._settings.kube_client_burst, time.monotonic
        )

    def _writer_rate(self, nodes: int) -> None:
        self._writer.bucket.rate_per_s = write_rate_per_s(self._settings.kube_client_qps, nodes)
