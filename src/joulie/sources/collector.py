"""Reads all telemetry in background tasks: a decision uses what is known and waits for no source."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import aiohttp
from msgspec import Struct, field

from joulie.control.twins import TwinTable
from joulie.errors import one_line
from joulie.model.snapshot import PowerReading, Telemetry
from joulie.model.tiers import MEASURED, TIER_NAMES
from joulie.settings import OperatorSettings
from joulie.sources.assembly import CPU_LOAD, GPU_LOAD, OpenSources, check_settings, open_sources
from joulie.sources.facility import FacilityPoller, FacilityState
from joulie.sources.node_queries import NodeSource
from joulie.sources.notices import Notices
from joulie.sources.readings import MaxWatts, NodeReadings, check_load, check_power
from joulie.sources.transport import MAX_REASON_CHARS, RequestLimits, SourceError
from joulie.sources.trend import WINDOW_S, TrendWindows
from joulie.sources.utilisation import Load, utilisation_of

R = TypeVar("R", PowerReading, Load)
T = TypeVar("T")

POWER, FACILITY = "power", "facility"
MIN_PAUSE = 0.2  # share of an interval to pause after a source that took all of it


class Statistics(Struct):
    """For metrics. Counters only grow; the rest is as of the last refresh or record."""

    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # (source, reason): rejected readings
    failures: Counter[str] = field(default_factory=Counter)  # by source: refreshes that failed, even in part
    last_success_s: dict[str, float] = field(default_factory=dict)  # by source; absent: never
    tiers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIER_NAMES, 0))  # number of nodes
    rejected_nodes: int = 0  # whose power sensor is rejected or silent, now or a moment ago
    freshness: dict[str, str] = field(default_factory=dict)  # by server: how old samples are excluded
    clock_ahead_s: dict[str, float] = field(default_factory=dict)  # by server: its clock minus local time


class _Scope(Struct, frozen=True):
    """What to read from sources."""

    max_w: MaxWatts = {}
    zones: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


class _Poll(NamedTuple):
    """One source and how often it is read."""

    source: str
    interval_s: float
    read: Callable[[], Awaitable[None]]


class TelemetryCollector:
    """Reads every source on its own interval, checks the readings, and keeps them until they are too old.

    A response replaces the last one, even if it lacks a node; after a failure the last readings stay and age.
    """

    def __init__(
        self,
        settings: OperatorSettings,
        wall_clock_s: Callable[[], float],
        *,
        session: aiohttp.ClientSession | None = None,
        limits: RequestLimits | None = None,
        trend_window_s: float = WINDOW_S,
    ) -> None:
        check_settings(settings)
        self._settings = settings
        self._now_s = wall_clock_s
        self._session = session
        self._owns_session = session is None
        self._limits = limits or RequestLimits()
        self._sources: OpenSources | None = None  # opened in the event loop, which a session needs
        self._max_age_s = settings.decision.twin.power_max_age_s
        self._power: NodeReadings[PowerReading] = NodeReadings("measured power", self._max_age_s, check_power)
        self._loads: dict[str, NodeReadings[Load]] = {
            CPU_LOAD: NodeReadings("CPU utilisation", self._max_age_s, check_load),
            GPU_LOAD: NodeReadings("GPU utilisation", self._max_age_s, check_load),
        }
        interval_s = settings.decision.plan.reconcile_interval_s
        self._trend = TrendWindows(max(self._max_age_s, 2 * interval_s), trend_window_s, interval_s)
        self._notices = Notices()
        self._scope = _Scope()
        self.first_round = asyncio.Event()  # set once `run` has read every source or failed to
        self.statistics = Statistics()

    async def run(self) -> None:
        """Reads every source on its interval until cancelled. Sources do not wait for each other."""
        readings = self._readings(self._open())
        self.first_round.clear()
        unread = {reading.source for reading in readings}

        async def poll(reading: _Poll) -> None:
            while True:
                started_s = time.monotonic()
                await self._read_safely(reading)
                unread.discard(reading.source)
                if not unread:
                    self.first_round.set()
                took_s = time.monotonic() - started_s
                await asyncio.sleep(max(reading.interval_s - took_s, reading.interval_s * MIN_PAUSE))

        if not readings:
            self.first_round.set()
        async with asyncio.TaskGroup() as group:
            for reading in readings:
                group.create_task(poll(reading))

    def set_scope(
        self, nodes: Sequence[tuple[str, float]], zones: Collection[str] = (), racks: Collection[str] = ()
    ) -> None:
        """Sets what to read: nodes (name, maximum watts), zones and racks."""
        self._scope = _Scope(dict(nodes), tuple(sorted(set(zones))), tuple(sorted(set(racks))))

    def telemetry(self) -> Telemetry:
        """What is known now; sends no request."""
        sources = self._open()
        self.statistics.freshness = {name: client.freshness for name, client in sources.clients.items()}
        self.statistics.clock_ahead_s = {name: client.clock_ahead_s for name, client in sources.clients.items()}
        self.statistics.rejected_nodes = self._power.rejected
        for name, ahead_s in self.statistics.clock_ahead_s.items():
            way = "ahead of" if ahead_s > 0 else "behind"
            skew = (
                ahead_s
                and f"the clock of Prometheus is {abs(ahead_s):.0f} s {way} the local one; ages are measured by its own"
            )
            self._notices.fault(f"{name} source", skew or "", over="clocks agree again")
        return self._telemetry(sources, self._scope.max_w, self._now_s())

    async def read_once(self) -> Telemetry:
        """Reads everything for a single decision. Never raises; the limits bound its duration."""
        await asyncio.gather(*(self._read_safely(reading) for reading in self._readings(self._open())))
        return self.telemetry()

    def record(self, twins: TwinTable, now_s: float) -> None:
        """Feeds the trend with the power that the twin used for each node, from any tier."""
        at_s = [
            self._measured_at_s(node, source, now_s) for node, source in zip(twins.nodes, twins.sources, strict=True)
        ]
        self._trend.record(twins.nodes, twins.sources, at_s, twins.columns["measured_w"])
        spoken = Counter(twins.sources)
        self.statistics.tiers = {tier: spoken[tier] for tier in TIER_NAMES}

    def take_messages(self) -> list[str]:
        """Messages for the log since the last call, each reported once."""
        return self._notices.take()

    async def close(self) -> None:
        """Closes the connections that this collector opened."""
        self._sources = None
        if self._owns_session and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _open(self) -> OpenSources:
        if self._sources is None:
            if self._session is None:
                # Each source limits its own calls; a common limit would let one that hangs starve the others.
                connector = aiohttp.TCPConnector(limit=0)
                self._session = aiohttp.ClientSession(connector=connector)
            self._sources = open_sources(self._settings, self._session, self._now_s, self._limits)
        return self._sources

    def _readings(self, sources: OpenSources) -> list[_Poll]:
        interval_s = min(self._settings.power_poll_interval_s, self._max_age_s / 2)
        readings = [
            _Poll(kind, interval_s, partial(self._read_nodes, kind, load, self._loads[kind]))
            for kind, load in sources.loads.items()
        ]
        if sources.power is not None:
            readings.append(_Poll(POWER, interval_s, partial(self._read_nodes, POWER, sources.power, self._power)))
        if sources.facility is not None:
            interval_s = self._settings.facility_poll_interval_s
            readings.append(_Poll(FACILITY, interval_s, partial(self._read_facility, sources.facility)))
        return readings

    async def _read_safely(self, reading: _Poll) -> None:
        """A bug in one reader must not end the others."""
        try:
            await reading.read()
        except Exception as error:  # noqa: BLE001 - no source may stop decisions
            self.statistics.failures[reading.source] += 1
            self._notices.fault(reading.source, f"internal error: {type(error).__name__}", over="is read again")
        else:
            self._notices.fault(reading.source, "", over="is read again")

    async def _ask(self, source: str, call: Awaitable[T]) -> T | None:
        """The result, or None after a failure, which is counted and reported once."""
        try:
            answer = await call
        except SourceError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - no source may stop decisions
            reason = f"{type(error).__name__}: {one_line(error, MAX_REASON_CHARS)}"
        else:
            self.statistics.last_success_s[source] = self._now_s()
            self._notices.fault(source, "", over="answers again")
            return answer
        self.statistics.failures[source] += 1
        self._notices.fault(source, reason, over="answers again")
        return None

    def _partly_failed(self, source: str, failures: Mapping[str, str], asked: int) -> None:
        """Counts and reports requests that failed while others succeeded."""
        reason = ""
        if failures:
            self.statistics.failures[source] += 1
            part, why = min(failures.items())
            reason = f"{len(failures)} of {asked} did not answer; {part}: {why}"
        self._notices.fault(source, reason, over="everything answers again")

    async def _read_nodes(self, source: str, asked: NodeSource[R], kept: NodeReadings[R]) -> None:
        max_w = self._scope.max_w
        answer = await self._ask(source, asked.read(list(max_w))) if max_w else None
        if answer is None:
            return
        rejections = kept.take(answer, max_w, self._now_s())
        self.statistics.refused.update((source, rejection.reason) for rejection in rejections)
        self._notices.say(*kept.news())
        self._partly_failed(source, answer.unanswered, len(max_w))
        self._notices.fault(source, answer.remark, over="names nodes again")

    async def _read_facility(self, poller: FacilityPoller) -> None:
        look = await self._ask(FACILITY, poller.poll(self._scope.zones, self._scope.racks, self._now_s()))
        if look is None:
            return
        for reason, count in poller.refused.items():
            self.statistics.refused[FACILITY, reason] = count
        self._partly_failed(FACILITY, look.failures, look.asked)
        rejections = one_line(", ".join(look.rejected), MAX_REASON_CHARS)
        self._notices.fault(FACILITY, rejections and f"rejected: {rejections}", over="all values are accepted again")
        silent = one_line(", ".join(look.silent), MAX_REASON_CHARS)
        self._notices.fault(FACILITY, silent and f"no fresh series for {silent}", over="every query finds series again")

    def _telemetry(self, sources: OpenSources, nodes: Collection[str], now_s: float) -> Telemetry:
        cpu, gpu = (self._loads[kind].fresh(nodes, now_s) for kind in (CPU_LOAD, GPU_LOAD))
        building = sources.facility.facility(now_s) if sources.facility is not None else FacilityState()
        return Telemetry(
            power=self._power.fresh(nodes, now_s),
            utilisation=utilisation_of(cpu, gpu),
            trend_w_per_min=self._trend.slopes_w_per_min(now_s),
            ambient_c=building.ambient_c,
            zone_ambient_c=building.zone_ambient_c,
            rack_power_w=building.rack_power_w,
            estimated_pue=building.estimated_pue,
        )

    def _measured_at_s(self, node: str, tier: str, now_s: float) -> float:
        """When a tier's value was measured: a reading that only ages is one sample of the trend, not many."""
        if tier == "static":
            return now_s
        kinds = (self._power,) if tier in MEASURED else self._loads.values()
        return min((at_s for kind in kinds if (at_s := kind.measured_at_s(node)) is not None), default=now_s)
