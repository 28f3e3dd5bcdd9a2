"""The operator as a process: election, watches, loop and HTTP, and a shutdown that hands over at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
from aiohttp import web

from joulie.cluster.lease.election import LeaderElector, LeaderHooks, LeaseTimes
from joulie.cluster.port import CONFIG_MAPS, Cluster, ClusterError
from joulie.cluster.watch.log import WatchLog
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.operator.budget.loop import BudgetLoop
from joulie.operator.budget.renewal import BudgetLease
from joulie.operator.loop import DecisionModels, Operator
from joulie.operator.writes import Write
from joulie.serving import serve
from joulie.settings import OperatorSettings
from joulie.sources.budget_readings import SignalReader
from joulie.sources.collector import TelemetryCollector
from joulie.sources.transport import SourceError

LEASE_NAME = "joulie-operator"
MISSED_DECISIONS = 5  # intervals without a decision after which a leader is unhealthy


class Candidate(NamedTuple):
    """The identity of this process in the election, and where the Lease is."""

    identity: str
    namespace: str
    lease_times: LeaseTimes = LeaseTimes()


class Attached(Protocol):
    """Observes a running operator and is served beside its metrics, such as the dashboard."""

    @property
    def routes(self) -> Sequence[web.RouteDef]: ...

    async def run(self) -> None:
        """Runs until cancelled."""
        ...


class _ElectionLog(LeaderHooks):
    def __init__(self) -> None:
        self.terms = 0  # how often this process became the leader
        self._log = Log("operator")
        self._fault = ""

    def gained(self) -> None:
        self._fault = ""
        self.terms += 1
        self._log.info("this operator is the leader now")

    def lost(self, reason: str) -> None:
        self._log.warning("this operator is no longer the leader", reason=reason)

    def leader(self, identity: str) -> None:
        self._log.info("leader seen", leader=identity or "none")

    def failed(self, error: ClusterError) -> None:
        if str(error) != self._fault:  # once per outage, not every two seconds
            self._fault = str(error)
            self._log.warning("election call failed; retrying", error=str(error))


async def run(  # noqa: PLR0913 - each is a part of the world that tests or the demo replace
    cluster: Cluster,
    election: Cluster,
    settings: OperatorSettings,
    models: DecisionModels,
    candidate: Candidate,
    watch_log: WatchLog | None = None,
    *,
    attach: Callable[[Operator], Attached] | None = None,
    stop: asyncio.Event | None = None,
    clock: Callable[[], float] = time.time,
) -> int:
    """Runs until SIGTERM, SIGINT or `stop`; exit code 0. Writes cannot delay `election`, a connection of its own."""
    stop = stop or stop_on_signals()
    hooks = _ElectionLog()
    elector = _elector(election, candidate, hooks)
    collector = TelemetryCollector(settings, clock)
    operator = Operator(cluster, settings, models, collector, elector.seconds_left, candidate.identity, clock)
    reader = SignalReader(settings.signal_prometheus_address, partial(config_map, cluster), clock)
    budgets = BudgetLoop(
        operator,
        cluster,
        settings,
        lambda: 0.0 if stop.is_set() else elector.seconds_left(),
        lambda: hooks.terms,
        BudgetLease(election, candidate.namespace, candidate.identity, clock),
        reader,
    )
    if watch_log is not None:
        watch_log.on_relist = lambda kind: operator.metrics.relists.labels(kind).inc()
        watch_log.on_error = lambda kind: operator.metrics.watch_errors.labels(kind).inc()
    attached = attach(operator) if attach is not None else None
    server = await serve(
        settings.metrics_addr,
        operator.metrics.pieces,
        lambda: _unhealthy(operator, settings, elector.is_leader),
        lambda: None if operator.state.synced else "not all objects are known yet",
        attached.routes if attached is not None else (),
        connections=settings.max_connections,
    )
    background = [asyncio.create_task(operator.watch())]
    if attached is not None:
        background.append(asyncio.create_task(attached.run()))
    elections = asyncio.create_task(elector.run())
    try:
        await first_to_end(asyncio.create_task(_both(operator.run(stop), budgets.run(stop))), elections, *background)
    finally:
        elector.stop()  # the loop has ended and nothing is being written, so the next leader may start at once
        await asyncio.gather(elections, return_exceptions=True)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await server.cleanup()
        await collector.close()
        await reader.close()
    return 0


async def _both(*loops: Coroutine[None, None, None]) -> None:
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(loop)


async def run_once(
    cluster: Cluster,
    settings: OperatorSettings,
    models: DecisionModels,
    candidate: Candidate,
    show: Callable[[Write], None] | None = None,
) -> int:
    """One decision: written while holding the Lease, or only shown. Exit code 1 if a write failed."""
    collector = TelemetryCollector(settings, time.time)
    elector = _elector(cluster, candidate, _ElectionLog())
    operator = Operator(cluster, settings, models, collector, elector.seconds_left, candidate.identity)
    watches = asyncio.create_task(operator.watch())
    elections: asyncio.Task[None] | None = None
    try:
        await first_to_end(asyncio.create_task(operator.wait_for_sync()), watches)
        if show is not None:
            plan, now_s = await operator.decide()
            for job in operator.pending_jobs(plan, now_s):
                for write in job.writes:
                    show(write)
            return 0
        elections = asyncio.create_task(elector.run())
        while not elector.is_leader():
            await asyncio.sleep(0.05)
        outcome = await operator.reconcile(spread=False)
        return 0 if outcome is not None and not outcome.failed and not outcome.lost_lead else 1
    finally:
        elector.stop()
        if elections is not None:
            await asyncio.gather(elections, return_exceptions=True)
        watches.cancel()
        await asyncio.gather(watches, return_exceptions=True)
        await collector.close()


async def config_map(cluster: Cluster, namespace: str, name: str, key: str) -> str:
    """One key of a ConfigMap; SourceError says what is missing."""
    try:
        found = msgspec.json.decode(await cluster.get(CONFIG_MAPS, name, namespace=namespace), type=_ConfigMap)
    except (ClusterError, msgspec.MsgspecError) as error:
        raise SourceError(f"ConfigMap {namespace}/{name}: {error}") from error
    if key not in found.data:
        raise SourceError(f"ConfigMap {namespace}/{name} has no key {key}")
    return found.data[key]


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def _elector(cluster: Cluster, candidate: Candidate, hooks: LeaderHooks) -> LeaderElector:
    return LeaderElector(
        cluster,
        namespace=candidate.namespace,
        name=LEASE_NAME,
        identity=candidate.identity,
        times=candidate.lease_times,
        hooks=hooks,
    )


def _unhealthy(operator: Operator, settings: OperatorSettings, is_leader: Callable[[], bool]) -> str | None:
    """A leader must decide regularly; a follower is always healthy."""
    if not is_leader() or operator.last_turn_s is None:
        return None
    silent_s = time.monotonic() - operator.last_turn_s
    limit_s = MISSED_DECISIONS * max(settings.decision.plan.reconcile_interval_s, 10.0)
    return f"no decision for {silent_s:.0f} s" if silent_s > limit_s else None
