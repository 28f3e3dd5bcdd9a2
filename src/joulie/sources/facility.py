"""What the building says: air temperature, IT and cooling power, temperature of zones, power of racks (SPEC 5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from joulie.settings import OperatorSettings
from joulie.sources.belief import NEGATIVE, NOT_FINITE, Lie, age_lie
from joulie.sources.prometheus import PrometheusClient, Sample
from joulie.sources.transport import Limits, ask_each, raise_if_all_failed

COLDEST_C, HOTTEST_C = -60.0, 80.0
HIGHEST_PUE = 10.0  # half-empty buildings reach 3; more than this is a meter that counts something else
IMPLAUSIBLE = "implausible"
EARLY = 0.1  # a look may come this share of the interval too early, so that equal intervals do not skip every other one
PLACE = "%s"
AMBIENT, IT, COOLING, ZONE, RACK = "ambient", "IT power", "cooling power", "zone ", "rack "


class Value(NamedTuple):
    """A number and when it was measured."""

    number: float
    measured_at_s: float


class Facility(Struct, frozen=True):
    """What is known and fresh."""

    ambient_c: float | None = None
    zone_ambient_c: Mapping[str, float] = field(default_factory=dict)
    rack_power_w: Mapping[str, float] = field(default_factory=dict)
    estimated_pue: float | None = None


class Look(Struct, frozen=True):
    """What one look at the facility did not bring."""

    asked: int
    failures: Mapping[str, str]  # questions that were not answered, with the reason
    silent: Sequence[str]  # queries that no series answers
    disbelieved: Sequence[str]  # values that cannot be true, in words


class _Question(NamedTuple):
    what: str
    promql: str
    is_temperature: bool


class FacilityPoller:
    """Looks at the facility when it is due, and remembers what it said until that is too old.

    A metric that several series answer counts as their sum where it is power (two feeds of a rack) and as the
    highest where it is a temperature.
    """

    def __init__(self, client: PrometheusClient, settings: OperatorSettings, limits: Limits) -> None:
        self._client = client
        self._settings = settings
        self._limits = limits
        self._interval_s = settings.facility_poll_interval_s
        self.max_age_s = max(2 * self._interval_s, settings.decision.twin.power_max_age_s)
        self._looked_at_s = -math.inf
        self._known: dict[str, Value] = {}
        self.refused: Counter[str] = Counter()  # values that were not believed, by reason, since the start

    def is_due(self, now_s: float) -> bool:
        """Whether the interval is over; also after the clock was set back."""
        return not 0 <= now_s - self._looked_at_s < self._interval_s * (1 - EARLY)

    async def poll(self, zones: Collection[str], racks: Collection[str], now_s: float) -> Look:
        """Asks for everything, many at a time; SourceError when nothing was answered."""
        self._looked_at_s = now_s
        questions = {question.what: question for question in self._questions(zones, racks)}

        async def ask(what: str) -> list[Sample]:
            return await self._client.query(questions[what].promql, now_s, self.max_age_s)

        answers = await ask_each(questions, ask, self._limits)
        raise_if_all_failed(answers.failures, questions)
        known = {what: self._known[what] for what in answers.failures if what in self._known}
        disbelieved: list[str] = []
        for what, samples in answers.results.items():
            lies = self._lies(samples, questions[what].is_temperature, now_s)
            disbelieved += [f"{what} ({lie.shown})" for lie in lies]
            self.refused.update(lie.reason for lie in lies)
            value = None if lies else _value(samples, questions[what].is_temperature, now_s)
            if value is not None:
                known[what] = value
        self._known = known
        disbelieved += self._impossible_pue()
        silent = sorted(questions[what].promql for what, samples in answers.results.items() if not samples)
        return Look(len(questions), answers.failures, silent, sorted(disbelieved))

    def facility(self, now_s: float) -> Facility:
        """What was said lately enough."""
        fresh = {
            what: value.number for what, value in self._known.items() if now_s - value.measured_at_s <= self.max_age_s
        }
        pue = power_usage_effectiveness(fresh.get(IT), fresh.get(COOLING))
        return Facility(
            ambient_c=fresh.get(AMBIENT),
            zone_ambient_c=_named(ZONE, fresh),
            rack_power_w=_named(RACK, fresh),
            # Two decimals: it is written to every twin, and a digit that flickers would write them all every tick.
            estimated_pue=round(pue, 2) if pue is not None and pue <= HIGHEST_PUE else None,
        )

    def _questions(self, zones: Collection[str], racks: Collection[str]) -> Iterable[_Question]:
        settings = self._settings
        yield _Question(AMBIENT, settings.facility_ambient_metric, is_temperature=True)
        yield _Question(IT, settings.facility_it_power_metric, is_temperature=False)
        yield _Question(COOLING, settings.facility_cooling_power_metric, is_temperature=False)
        if template := settings.facility_zone_ambient_template:
            for zone in filter(None, zones):
                yield _Question(ZONE + zone, template.replace(PLACE, zone), is_temperature=True)
        if template := settings.facility_rack_power_template:
            for rack in filter(None, racks):
                yield _Question(RACK + rack, template.replace(PLACE, rack), is_temperature=False)

    def _lies(self, samples: Collection[Sample], is_temperature: bool, now_s: float) -> list[Lie]:
        judged = (_lie(sample, is_temperature, now_s - sample.at_s, self.max_age_s) for sample in samples)
        return [lie for lie in judged if lie is not None]

    def _impossible_pue(self) -> list[str]:
        it, cooling = self._known.get(IT), self._known.get(COOLING)
        pue = power_usage_effectiveness(it and it.number, cooling and cooling.number)
        if pue is None or pue <= HIGHEST_PUE:
            return []
        self.refused[IMPLAUSIBLE] += 1
        return [f"PUE ({pue:.1f})"]


def power_usage_effectiveness(it_w: float | None, cooling_w: float | None) -> float | None:
    """(IT + cooling) / IT; nothing without both or without load."""
    if it_w is None or cooling_w is None or it_w <= 0:
        return None
    return (it_w + cooling_w) / it_w


def _value(samples: Collection[Sample], is_temperature: bool, now_s: float) -> Value | None:
    """The one number that the series stand for."""
    if not samples:
        return None
    numbers = [sample.value for sample in samples]
    number = max(numbers) if is_temperature else math.fsum(numbers)
    return Value(number, min(now_s, *(sample.at_s for sample in samples)))


def _lie(sample: Sample, is_temperature: bool, age_s: float, max_age_s: float) -> Lie | None:
    shown = f"{sample.value:g} {'°C' if is_temperature else 'W'}"
    if not math.isfinite(sample.value):
        return Lie(NOT_FINITE, shown)
    if is_temperature and not COLDEST_C <= sample.value <= HOTTEST_C:
        return Lie(IMPLAUSIBLE, shown)
    if not is_temperature and sample.value < 0:
        return Lie(NEGATIVE, shown)
    return age_lie(age_s, max_age_s)


def _named(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {what.removeprefix(prefix): number for what, number in numbers.items() if what.startswith(prefix)}
