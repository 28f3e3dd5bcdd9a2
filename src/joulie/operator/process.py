"""The operator as a process: election, watches, loop and HTTP together, and an end that hands over at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from aiohttp import web

from joulie.cluster.lease import LeaderElector, LeaderHooks, LeaseTimes
from joulie.cluster.port import Cluster, ClusterError
from joulie.cluster.watch_log import WatchLog
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.operator.loop import Brain, Operator
from joulie.operator.writes import Write
from joulie.serving import serve
from joulie.settings import OperatorSettings
from joulie.sources.collector import TelemetryCollector

LEASE_NAME = "joulie-operator"
MISSED_DECISIONS = 5  # a leader that has not decided for so many intervals is not healthy


class Place(NamedTuple):
    """Who this process is and where its lease lies."""

    identity: str
    namespace: str
    lease_times: LeaseTimes = LeaseTimes()


class Attached(Protocol):
    """Something that looks at a running operator and is served beside its metrics, such as the dashboard."""

    @property
    def routes(self) -> Sequence[web.RouteDef]: ...

    async def run(self) -> None:
        """Until it is cancelled."""
        ...


class _ElectionLog(LeaderHooks):
    def __init__(self) -> None:
        self._log = Log("operator")
        self._fault = ""

    def gained(self) -> None:
        self._fault = ""
        self._log.info("this operator leads")

    def lost(self, reason: str) -> None:
        self._log.warning("this operator no longer leads", reason=reason)

    def leader(self, identity: str) -> None:
        self._log.info("leader seen", leader=identity or "nobody")

    def failed(self, error: ClusterError) -> None:
        if str(error) != self._fault:  # once, not every two seconds of an outage
            self._fault = str(error)
            self._log.warning("election call failed, it is tried again", error=str(error))


async def run(  # noqa: PLR0913 - each is a part of the world that tests or the demo replace
    cluster: Cluster,
    election: Cluster,
    settings: OperatorSettings,
    brain: Brain,
    place: Place,
    watch_log: WatchLog | None = None,
    *,
    attach: Callable[[Operator], Attached] | None = None,
    stop: asyncio.Event | None = None,
    clock: Callable[[], float] = time.time,
) -> int:
    """Until SIGTERM, SIGINT or `stop`; exit code 0. `election` is its own connection, so writes cannot delay it."""
    stop = stop or stop_on_signals()
    elector = _elector(election, place)
    collector = TelemetryCollector(settings, clock)
    operator = Operator(cluster, settings, brain, collector, elector.seconds_left, place.identity, clock)
    if watch_log is not None:
        watch_log.on_relist = lambda kind: operator.metrics.relists.labels(kind).inc()
        watch_log.on_error = lambda kind: operator.metrics.watch_errors.labels(kind).inc()
    attached = attach(operator) if attach is not None else None
    server = await serve(
        settings.metrics_addr,
        operator.metrics.page,
        lambda: _sick(operator, settings, elector.is_leader, clock()),
        lambda: None if operator.state.synced else "not all objects are known yet",
        attached.routes if attached is not None else (),
    )
    background = [asyncio.create_task(operator.watch())]
    if attached is not None:
        background.append(asyncio.create_task(attached.run()))
    elections = asyncio.create_task(elector.run())
    try:
        await first_to_end(asyncio.create_task(operator.run(stop)), elections, *background)
    finally:
        elector.stop()  # the loop has ended, so nothing is being written: the next leader may start at once
        await asyncio.gather(elections, return_exceptions=True)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await server.cleanup()
        await collector.close()
    return 0


async def run_once(
    cluster: Cluster,
    settings: OperatorSettings,
    brain: Brain,
    place: Place,
    show: Callable[[Write], None] | None = None,
) -> int:
    """One decision: written while holding the lease, or only shown. Exit code 1 where a write is missing."""
    collector = TelemetryCollector(settings, time.time)
    elector = _elector(cluster, place)
    operator = Operator(cluster, settings, brain, collector, elector.seconds_left, place.identity)
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


def _elector(cluster: Cluster, place: Place) -> LeaderElector:
    return LeaderElector(
        cluster,
        namespace=place.namespace,
        name=LEASE_NAME,
        identity=place.identity,
        times=place.lease_times,
        hooks=_ElectionLog(),
    )


def _sick(operator: Operator, settings: OperatorSettings, is_leader: Callable[[], bool], now_s: float) -> str | None:
    """A leader must decide; one that waits for its turn is healthy."""
    if not is_leader() or operator.last_turn_s is None:
        return None
    silent_s = now_s - operator.last_turn_s
    limit_s = MISSED_DECISIONS * max(settings.decision.plan.reconcile_interval_s, 10.0)
    return f"no decision for {silent_s:.0f} s" if silent_s > limit_s else None
