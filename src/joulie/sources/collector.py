"""Everything that sensors say, gathered for one decision. A source that fails costs its tier, never the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

import aiohttp
from msgspec import Struct, field

from joulie.control.twins import PowerSource, TwinTable
from joulie.model.snapshot import PowerReading, Telemetry
from joulie.settings import OperatorSettings
from joulie.sources.assembly import CPU_LOAD, GPU_LOAD, Sources, check_settings, open_sources
from joulie.sources.facility import Facility, FacilityPoller
from joulie.sources.node_queries import NodeSource
from joulie.sources.notices import Notices
from joulie.sources.readings import MaxWatts, NodeReadings, load_lie, power_lie
from joulie.sources.transport import Limits, SourceError, one_line
from joulie.sources.trend import WINDOW_S, TrendWindows
from joulie.sources.utilisation import Load, utilisation_of

R = TypeVar("R", PowerReading, Load)
T = TypeVar("T")

POWER, FACILITY = "power", "facility"
TIERS: tuple[PowerSource, ...] = ("kepler", "http", "utilization", "static")


class Statistics(Struct):
    """For metrics. Counters only grow; the rest is as of the last refresh or record."""

    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # (source, reason): readings not believed
    failures: Counter[str] = field(default_factory=Counter)  # by source: refreshes in which it, or a part, failed
    last_success_s: dict[str, float] = field(default_factory=dict)  # by source; absent: never
    tiers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIERS, 0))  # nodes that each speaks for
    disbelieved_nodes: int = 0  # whose power sensor lies or fell silent, now or a moment ago
    freshness: dict[str, str] = field(default_factory=dict)  # by server: how old samples are kept out


class TelemetryCollector:
    """Reads all sources at once, judges what they say, and remembers it until it is too old.

    A source that answers is taken at its word, also when it no longer speaks of a node; one that fails leaves its last
    readings to grow old.
    """

    def __init__(
        self,
        settings: OperatorSettings,
        wall_clock_s: Callable[[], float],
        *,
        session: aiohttp.ClientSession | None = None,
        limits: Limits | None = None,
        trend_window_s: float = WINDOW_S,
    ) -> None:
        check_settings(settings)
        self._settings = settings
        self._now_s = wall_clock_s
        self._session = session
        self._owns_session = session is None
        self._limits = limits or Limits()
        self._sources: Sources | None = None  # opened in the loop: a session needs one
        self._max_age_s = settings.decision.twin.power_max_age_s
        self._power: NodeReadings[PowerReading] = NodeReadings("measured power", self._max_age_s, power_lie)
        self._loads: dict[str, NodeReadings[Load]] = {
            CPU_LOAD: NodeReadings("CPU utilisation", self._max_age_s, load_lie),
            GPU_LOAD: NodeReadings("GPU utilisation", self._max_age_s, load_lie),
        }
        interval_s = settings.decision.plan.reconcile_interval_s
        self._trend = TrendWindows(max(self._max_age_s, 2 * interval_s), trend_window_s, interval_s)
        self._notices = Notices()
        self.statistics = Statistics()

    async def refresh(
        self, nodes: Sequence[tuple[str, float]], zones: Collection[str] = (), racks: Collection[str] = ()
    ) -> Telemetry:
        """What is known now of these nodes (name, maximum watts). Never raises; the limits bound how long it takes."""
        max_w = dict(nodes)
        sources = self._open()
        reads: list[Awaitable[None]] = []
        if max_w and sources.power is not None:
            reads.append(self._read_nodes(POWER, sources.power, self._power, max_w))
        if max_w:
            reads += [self._read_nodes(kind, load, self._loads[kind], max_w) for kind, load in sources.loads.items()]
        if sources.facility is not None and sources.facility.is_due(self._now_s()):
            reads.append(self._read_facility(sources.facility, zones, racks))
        await asyncio.gather(*reads)
        self.statistics.freshness = {name: client.freshness for name, client in sources.clients.items()}
        self.statistics.disbelieved_nodes = self._power.disbelieved
        return self._telemetry(sources, max_w, self._now_s())

    def record(self, twins: TwinTable, now_s: float) -> None:
        """Feeds the trend with what the twin took as each node's power, whichever tier it came from."""
        at_s = [
            self._measured_at_s(node, source, now_s) for node, source in zip(twins.nodes, twins.sources, strict=True)
        ]
        self._trend.record(twins.nodes, twins.sources, at_s, twins.columns["measured_w"])
        spoken = Counter(twins.sources)
        self.statistics.tiers = {tier: spoken[tier] for tier in TIERS}

    def take_messages(self) -> list[str]:
        """What a person should know, one line each, each said once; empties the list."""
        return self._notices.take()

    async def close(self) -> None:
        """Ends the connections that this collector opened."""
        self._sources = None
        if self._owns_session and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _open(self) -> Sources:
        if self._sources is None:
            if self._session is None:
                # Each source bounds its own calls; a common bound would let one that hangs starve the others.
                connector = aiohttp.TCPConnector(limit=0)
                self._session = aiohttp.ClientSession(connector=connector)
            self._sources = open_sources(self._settings, self._session, self._now_s, self._limits)
        return self._sources

    async def _ask(self, source: str, call: Awaitable[T]) -> T | None:
        """The answer, or None when there is none: that is said once and counted, and never ends the loop."""
        try:
            answer = await call
        except SourceError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a source does, the cluster is still to be steered
            reason = f"{type(error).__name__}: {one_line(error)}"
        else:
            self.statistics.last_success_s[source] = self._now_s()
            self._notices.fault(source, "", over="answers again")
            return answer
        self.statistics.failures[source] += 1
        self._notices.fault(source, reason, over="answers again")
        return None

    def _partly_failed(self, source: str, failures: Mapping[str, str], asked: int) -> None:
        """Parts that did not answer while others did."""
        reason = ""
        if failures:
            self.statistics.failures[source] += 1
            part, why = min(failures.items())
            reason = f"{len(failures)} of {asked} did not answer; {part}: {why}"
        self._notices.fault(source, reason, over="everything answers again")

    async def _read_nodes(self, source: str, asked: NodeSource[R], kept: NodeReadings[R], max_w: MaxWatts) -> None:
        answer = await self._ask(source, asked.read(list(max_w)))
        if answer is None:
            return
        lies = kept.take(answer, max_w, self._now_s())
        self.statistics.refused.update((source, lie.reason) for lie in lies)
        self._notices.say(*kept.news())
        self._partly_failed(source, answer.unanswered, len(max_w))
        self._notices.fault(source, answer.remark, over="names nodes again")

    async def _read_facility(self, poller: FacilityPoller, zones: Collection[str], racks: Collection[str]) -> None:
        look = await self._ask(FACILITY, poller.poll(sorted(set(zones)), sorted(set(racks)), self._now_s()))
        if look is None:
            return
        for reason, count in poller.refused.items():
            self.statistics.refused[FACILITY, reason] = count
        self._partly_failed(FACILITY, look.failures, look.asked)
        lies = one_line(", ".join(look.disbelieved))
        self._notices.fault(FACILITY, lies and f"not believed: {lies}", over="all values are believed again")
        silent = one_line(", ".join(look.silent))
        self._notices.fault(FACILITY, silent and f"no fresh series for {silent}", over="every query finds series again")

    def _telemetry(self, sources: Sources, nodes: Collection[str], now_s: float) -> Telemetry:
        oldest_s = now_s - self._max_age_s
        cpu, gpu = (self._loads[kind].fresh(nodes, oldest_s) for kind in (CPU_LOAD, GPU_LOAD))
        building = sources.facility.facility(now_s) if sources.facility is not None else Facility()
        return Telemetry(
            power=self._power.fresh(nodes, oldest_s),
            utilisation=utilisation_of(cpu, gpu),
            trend_w_per_min=self._trend.slopes_w_per_min(now_s),
            ambient_c=building.ambient_c,
            zone_ambient_c=building.zone_ambient_c,
            rack_power_w=building.rack_power_w,
            estimated_pue=building.estimated_pue,
        )

    def _measured_at_s(self, node: str, tier: str, now_s: float) -> float:
        """When a tier's value was measured: a reading that only grows old is one sample of the trend, not many."""
        if tier == "static":
            return now_s
        kinds = self._loads.values() if tier == "utilization" else (self._power,)
        return min((at_s for kind in kinds if (at_s := kind.measured_at_s(node)) is not None), default=now_s)
