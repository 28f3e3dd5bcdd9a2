"""What budgets read from outside: time zones, signals by PromQL or from a forecast, and meters of groups."""

from __future__ import annotations

import asyncio
import csv
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import tzinfo
from zoneinfo import ZoneInfo

import aiohttp

from joulie.control.budget.limits.in_force import ForecastValue, SignalReading
from joulie.model.api import PowerBudget
from joulie.model.rfc3339 import readable_time_s
from joulie.sources.prometheus import PrometheusClient, Sample
from joulie.sources.transport import SourceError

TIMEOUT_S = 5.0
MAX_AGE_S = 120.0  # an older value is a lost one
MAX_FORECAST_LINES = 10_000
GROUP = "{group}"

ReadConfigMap = Callable[[str, str, str], Awaitable[str]]  # namespace, name, key; SourceError


class SignalReader:
    """Reads the signals and meters of budgets; one that fails is missing from the result, with the reason said."""

    def __init__(self, address: str, read_config_map: ReadConfigMap, clock: Callable[[], float]) -> None:
        self._address = address
        self._read_config_map = read_config_map
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._client: PrometheusClient | None = None
        self.failures: dict[str, str] = {}  # by what was read, in the last round

    async def signals(self, budgets: Collection[PowerBudget]) -> dict[str, SignalReading]:
        """By budget."""
        asked, failed = [budget for budget in budgets if budget.spec.signal is not None], dict[str, str]()
        answers = await asyncio.gather(*(self._signal(budget, failed) for budget in asked))
        self._failed("signal", failed)
        return {
            budget.metadata.name: answer for budget, answer in zip(asked, answers, strict=True) if answer is not None
        }

    async def meters(self, groups: Mapping[str, tuple[str, str]]) -> dict[str, float]:
        """Watts by group; `groups` are each group's value and its budget's query."""
        names, failed = list(groups), dict[str, str]()
        answers = await asyncio.gather(
            *(self._number(f"meter of {name}", _asked(*groups[name]), failed) for name in names)
        )
        self._failed("meter", failed)
        return {name: watts for name, watts in zip(names, answers, strict=True) if watts is not None}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _failed(self, kind: str, failed: Mapping[str, str]) -> None:
        """All at once, at the end of a round: while one is under way, those of the last stand."""
        self.failures = {key: why for key, why in self.failures.items() if not key.startswith(kind)} | dict(failed)

    async def _signal(self, budget: PowerBudget, failed: dict[str, str]) -> SignalReading | None:
        name, signal = budget.metadata.name, budget.spec.signal
        if signal is None:
            return None
        if signal.query is not None:
            number = await self._number(f"signal of {name}", signal.query, failed)
            return None if number is None else SignalReading(now=number)
        if signal.forecast is None:
            return None
        namespace, _, config_map = signal.forecast.config_map.partition("/")
        try:
            text = await self._read_config_map(namespace, config_map, signal.forecast.key)
            return SignalReading(forecast=tuple(forecast_values(text)))
        except (SourceError, ValueError) as error:
            failed[f"signal of {name}"] = str(error)
            return None

    async def _number(self, what: str, promql: str, failed: dict[str, str]) -> float | None:
        """The sum of the series; a value that is missing, old or not finite is none."""
        try:
            samples = await self._query(promql)
        except SourceError as error:
            failed[what] = str(error)
            return None
        fresh = [sample.value for sample in samples if sample.at_s >= self._clock() - MAX_AGE_S]
        total = math.fsum(fresh) if fresh and all(map(math.isfinite, fresh)) else math.nan
        if not math.isfinite(total):
            failed[what] = "the query has no fresh finite value"
            return None
        return total

    async def _query(self, promql: str) -> list[Sample]:
        if not self._address:
            raise SourceError("set SIGNAL_PROMETHEUS_ADDRESS")
        if self._client is None:
            self._session = aiohttp.ClientSession()
            self._client = PrometheusClient(self._session, self._address, TIMEOUT_S)
        return await self._client.query(promql, self._clock(), MAX_AGE_S)


def forecast_values(text: str) -> Iterable[ForecastValue]:
    """Lines of `from,to,value` (a unit may follow), times as RFC 3339; a heading and comments are passed over."""
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row]
        if not cells or not cells[0] or cells[0].startswith("#") or cells[0] == "from":
            continue
        if number > MAX_FORECAST_LINES:
            raise ValueError(f"the forecast has more than {MAX_FORECAST_LINES} lines")
        times = [readable_time_s(cell) for cell in cells[:2]]
        try:
            value = float(cells[2])
        except (IndexError, ValueError):
            value = math.nan
        if len(times) < 2 or times[0] is None or times[1] is None or not math.isfinite(value):
            raise ValueError(f"line {number} of the forecast is not from,to,value")
        if times[0] < times[1]:
            yield ForecastValue(times[0], times[1], value)


def known_zones(budgets: Iterable[PowerBudget]) -> dict[str, tzinfo]:
    """The time zones that windows name, as far as they exist."""
    zones: dict[str, tzinfo] = {}
    for budget in budgets:
        for window in budget.spec.windows or ():
            if window.time_zone is not None:
                try:
                    zones[window.time_zone] = ZoneInfo(window.time_zone)
                except (KeyError, ValueError, OSError):  # unknown, or no name of a zone at all
                    continue
    return zones


def _asked(value: str, query: str) -> str:
    return query.replace(GROUP, value.replace("\\", "\\\\").replace('"', '\\"'))
