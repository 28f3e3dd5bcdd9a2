"""Facility telemetry: air temperature, IT and cooling power, zone temperatures, rack power."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from joulie.settings import OperatorSettings
from joulie.sources.plausibility import NEGATIVE, NOT_FINITE, Rejection, check_age
from joulie.sources.prometheus import PrometheusClient, Sample
from joulie.sources.transport import RequestLimits, ask_each, raise_if_all_failed

MIN_AIR_C, MAX_AIR_C = -60.0, 80.0
MAX_PUE = 10.0  # half-empty buildings reach 3; more means that a meter measures something else
IMPLAUSIBLE = "implausible"
PLACE = "%s"
AMBIENT, IT, COOLING, ZONE, RACK = "ambient", "IT power", "cooling power", "zone ", "rack "


class Value(NamedTuple):
    """A number and when it was measured."""

    number: float
    measured_at_s: float


class FacilityState(Struct, frozen=True):
    """The fresh values."""

    ambient_c: float | None = None
    zone_ambient_c: Mapping[str, float] = field(default_factory=dict)
    rack_power_w: Mapping[str, float] = field(default_factory=dict)
    estimated_pue: float | None = None


class PollResult(Struct, frozen=True):
    """What was missing in one poll."""

    asked: int
    failures: Mapping[str, str]  # failed queries, with the reason
    silent: Sequence[str]  # queries without a series
    rejected: Sequence[str]  # implausible values, as text


class _FacilityQuery(NamedTuple):
    what: str
    promql: str
    is_temperature: bool


class FacilityPoller:
    """Polls the facility on request, and keeps the values until they are too old.

    Of several series, power is their sum (two feeds of a rack) and temperature their maximum.
    """

    def __init__(self, client: PrometheusClient, settings: OperatorSettings, limits: RequestLimits) -> None:
        self._client = client
        self._settings = settings
        self._limits = limits
        self.max_age_s = max(2 * settings.facility_poll_interval_s, settings.decision.twin.power_max_age_s)
        self._known: dict[str, Value] = {}
        self.refused: Counter[str] = Counter()  # rejected values since the start, by reason

    async def poll(self, zones: Collection[str], racks: Collection[str], now_s: float) -> PollResult:
        """Runs all queries concurrently; SourceError if none succeeded."""
        questions = {question.what: question for question in self._questions(zones, racks)}

        async def ask(what: str) -> list[Sample]:
            return await self._client.query(questions[what].promql, now_s, self.max_age_s)

        answers = await ask_each(questions, ask, self._limits)
        raise_if_all_failed(answers.failures, questions)
        known = {what: self._known[what] for what in answers.failures if what in self._known}
        rejected: list[str] = []
        for what, samples in answers.results.items():
            rejections = self._rejections(samples, questions[what].is_temperature, now_s)
            rejected += [f"{what} ({rejection.shown})" for rejection in rejections]
            self.refused.update(rejection.reason for rejection in rejections)
            value = None if rejections else _value(samples, questions[what].is_temperature, now_s)
            if value is not None:
                known[what] = value
        self._known = known
        rejected += self._impossible_pue()
        silent = sorted(questions[what].promql for what, samples in answers.results.items() if not samples)
        return PollResult(len(questions), answers.failures, silent, sorted(rejected))

    def facility(self, now_s: float) -> FacilityState:
        """The values that are fresh enough."""
        fresh = {
            what: value.number
            for what, value in self._known.items()
            if abs(now_s - value.measured_at_s) <= self.max_age_s
        }
        pue = power_usage_effectiveness(fresh.get(IT), fresh.get(COOLING))
        return FacilityState(
            ambient_c=fresh.get(AMBIENT),
            zone_ambient_c=_named(ZONE, fresh),
            rack_power_w=_named(RACK, fresh),
            # Two decimals: it is in every twin, and a flickering digit would rewrite them all every tick.
            estimated_pue=round(pue, 2) if pue is not None and pue <= MAX_PUE else None,
        )

    def _questions(self, zones: Collection[str], racks: Collection[str]) -> Iterable[_FacilityQuery]:
        settings = self._settings
        yield _FacilityQuery(AMBIENT, settings.facility_ambient_metric, is_temperature=True)
        yield _FacilityQuery(IT, settings.facility_it_power_metric, is_temperature=False)
        yield _FacilityQuery(COOLING, settings.facility_cooling_power_metric, is_temperature=False)
        if template := settings.facility_zone_ambient_template:
            for zone in filter(None, zones):
                yield _FacilityQuery(ZONE + zone, template.replace(PLACE, zone), is_temperature=True)
        if template := settings.facility_rack_power_template:
            for rack in filter(None, racks):
                yield _FacilityQuery(RACK + rack, template.replace(PLACE, rack), is_temperature=False)

    def _rejections(self, samples: Collection[Sample], is_temperature: bool, now_s: float) -> list[Rejection]:
        judged = (_rejection(sample, is_temperature, now_s - sample.at_s, self.max_age_s) for sample in samples)
        return [rejection for rejection in judged if rejection is not None]

    def _impossible_pue(self) -> list[str]:
        it, cooling = self._known.get(IT), self._known.get(COOLING)
        pue = power_usage_effectiveness(it and it.number, cooling and cooling.number)
        if pue is None or pue <= MAX_PUE:
            return []
        self.refused[IMPLAUSIBLE] += 1
        return [f"PUE ({pue:.1f})"]


def power_usage_effectiveness(it_w: float | None, cooling_w: float | None) -> float | None:
    """(IT + cooling) / IT; None without both or without load."""
    if it_w is None or cooling_w is None or it_w <= 0:
        return None
    return (it_w + cooling_w) / it_w


def _value(samples: Collection[Sample], is_temperature: bool, now_s: float) -> Value | None:
    """The value of all series together."""
    if not samples:
        return None
    numbers = [sample.value for sample in samples]
    number = max(numbers) if is_temperature else math.fsum(numbers)
    return Value(number, min(now_s, *(sample.at_s for sample in samples)))


def _rejection(sample: Sample, is_temperature: bool, age_s: float, max_age_s: float) -> Rejection | None:
    shown = f"{sample.value:g} {'°C' if is_temperature else 'W'}"
    if not math.isfinite(sample.value):
        return Rejection(NOT_FINITE, shown)
    if is_temperature and not MIN_AIR_C <= sample.value <= MAX_AIR_C:
        return Rejection(IMPLAUSIBLE, shown)
    if not is_temperature and sample.value < 0:
        return Rejection(NEGATIVE, shown)
    return check_age(age_s, max_age_s)


def _named(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {what.removeprefix(prefix): number for what, number in numbers.items() if what.startswith(prefix)}
