"""Variants against a baseline, paired by seed: differences with 95 % confidence intervals, and a sentence about each.

Differences are taken seed by seed; their mean gets Student's interval, and a relative one is that of the baseline's
mean. A difference is significant where its interval leaves out 0 and its p value, corrected by Holm's method for the
number of variants, is below 5 %. Energy is compared over the same time: whoever is done earlier idles on until the
other of the pair is done, at what its facility draws without work. Every pair is judged by itself, so that a variant
that takes long changes nothing about the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct, structs

from joulie.lab.measures import KNOWN, Measures
from joulie.lab.refusals import refuse_unequal
from joulie.lab.verdicts import FEWEST_SEEDS, summary, verdict

CONFIDENCE = 0.95
ROUNDING = 1e-9  # of the baseline's mean: no difference


class Estimate(Struct, frozen=True):
    """A mean over seeds with its 95 % confidence interval; of one seed, low and high are None."""

    mean: float
    low: float | None
    high: float | None


class Difference(Struct, frozen=True, kw_only=True):
    """Variant less baseline in one measure, paired by seed; energy over the same time."""

    measure: str  # a field of Measures
    baseline: float  # mean over seeds
    variant: float
    mean: float  # of the differences
    low: float | None  # 95 % confidence interval of the mean
    high: float | None
    relative_pct: float | None  # of the baseline's mean; None where that is 0
    relative_low_pct: float | None
    relative_high_pct: float | None
    p_value: float | None  # of no difference
    p_holm: float | None  # corrected for the number of variants
    significant: bool
    by_seed: tuple[float, ...]  # in the order of Comparison.seeds


class Compared(Struct, frozen=True):
    """One variant, the baseline included (which has no differences and no verdict)."""

    name: str
    estimates: dict[str, Estimate]  # by measure; those without a value in some run are left out
    by_seed: dict[str, tuple[float, ...]]
    differences: dict[str, Difference]
    verdict: str


class Comparison(Struct, frozen=True):
    """All variants of an experiment under one facet; the baseline is the first."""

    baseline: str
    seeds: tuple[int, ...]
    variants: tuple[Compared, ...]
    summary: str  # the sentence that sums it up
    notes: tuple[str, ...]  # what limits it: few seeds, one trace for all seeds
    facet: str = ""  # such as `trace.load=0.6`: what all runs of this comparison share and those of others do not


@dataclass(frozen=True, slots=True)
class Entry:
    """One run, as far as it is compared."""

    measures: Measures
    jobs_digest: str  # of everything about the jobs


def compare(
    runs: Mapping[str, Mapping[int, Entry]], baseline: str, facet: str = "", notes: Sequence[str] = ()
) -> Comparison:
    """`runs` by variant and seed; LabError where they did not do the same work on the same seeds."""
    runs = {baseline: {}, **runs}
    names = list(runs)
    refuse_unequal({name: {seed: entry.jobs_digest for seed, entry in runs[name].items()} for name in names})
    seeds = tuple(sorted(runs[baseline]))
    digests = {entry.jobs_digest for entry in runs[baseline].values()}
    claimed = len(seeds) >= FEWEST_SEEDS
    measured = {name: [runs[name][seed].measures for seed in seeds] for name in names}
    limits = [*notes, *_limits(seeds, digests), *_of_time(measured)]
    all_differences = _holm({name: _differences(measured[baseline], measured[name]) for name in names[1:]}, claimed)
    variants = [
        Compared(
            name,
            {measure: estimate(values) for measure, values in by_measure.items()},
            by_measure,
            all_differences.get(name, {}),
            verdict(name, baseline, all_differences[name], len(seeds)) if name in all_differences else "",
        )
        for name in names
        for by_measure in [_by_measure(measured[name])]
    ]
    return Comparison(baseline, seeds, tuple(variants), summary(variants, len(seeds)), tuple(limits), facet)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval of independent values."""
    mean, half = _interval(np.asarray(values, dtype=np.float64))
    return Estimate(mean, None, None) if half is None else Estimate(mean, mean - half, mean + half)


def _limits(seeds: Sequence[int], digests: set[str]) -> list[str]:
    limits = []
    if len(seeds) < FEWEST_SEEDS:
        limits.append(f"{len(seeds)} of at least {FEWEST_SEEDS} seeds: nothing can be claimed")
    if len(seeds) > 1 and len(digests) == 1:
        limits.append("every seed ran the same jobs: what is found holds for this trace, and nothing is said of others")
    return limits


def _of_time(measured: Mapping[str, Sequence[Measures]]) -> list[str]:
    """What explains that means and differences of energy do not add up where runs took different times."""
    times = {tuple(run.metered_h for run in runs) for runs in measured.values()}
    said = "energy is compared over the same time: whoever of a pair is done earlier idles on until the other is done"
    return [said] if len(times) > 1 else []


def _by_measure(measured: Sequence[Measures]) -> dict[str, tuple[float, ...]]:
    """Measures that every run has a value for, by name, one value a seed."""
    columns = {name: tuple(getattr(run, name) for run in measured) for name in KNOWN}
    return {name: values for name, values in columns.items() if None not in values}


def _differences(baseline: Sequence[Measures], variant: Sequence[Measures]) -> dict[str, Difference]:
    pairs = [_over_same_time(*pair) for pair in zip(baseline, variant, strict=True)]
    before, after = (_by_measure(side) for side in zip(*pairs, strict=True))
    return {
        name: _difference(name, np.asarray(before[name]), np.asarray(after[name]))
        for name, known in KNOWN.items()
        if known.better and name in before and name in after
    }


def _over_same_time(one: Measures, other: Measures) -> tuple[Measures, Measures]:
    until_h = max(one.metered_h, other.metered_h)
    return _until(one, until_h), _until(other, until_h)


def _until(run: Measures, until_h: float) -> Measures:
    """The run with what it draws without work until then; what it did meanwhile is nothing, so delays stay."""
    longer_h = until_h - run.metered_h
    if longer_h <= 0:
        return run
    all_kwh, gpu_kwh = run.idle_kw * longer_h, run.idle_gpu_nodes_kw * longer_h
    return structs.replace(
        run,
        it_kwh=run.it_kwh + all_kwh / run.pue,
        facility_kwh=run.facility_kwh + all_kwh,
        kwh_per_1000_cpu_hours=_more(run.kwh_per_1000_cpu_hours, all_kwh - gpu_kwh, run.cpu_device_hours),
        kwh_per_1000_gpu_hours=_more(run.kwh_per_1000_gpu_hours, gpu_kwh, run.gpu_device_hours),
        kwh_per_1000_device_hours=_more(
            run.kwh_per_1000_device_hours, all_kwh, run.cpu_device_hours + run.gpu_device_hours
        ),
    )


def _more(per_1000: float | None, kwh: float, hours: float) -> float | None:
    return None if per_1000 is None else per_1000 + 1000 * kwh / hours


def _difference(measure: str, before: np.ndarray, after: np.ndarray) -> Difference:
    base = float(np.mean(before))
    by_seed = after - before
    by_seed[np.abs(by_seed) <= ROUNDING * abs(base)] = 0.0
    mean, half = _interval(by_seed)
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Difference(
        measure=measure,
        baseline=base,
        variant=float(np.mean(after)),
        mean=mean,
        low=low,
        high=high,
        relative_pct=_relative(mean, base),
        relative_low_pct=_relative(low, base),
        relative_high_pct=_relative(high, base),
        p_value=_p_value(by_seed),
        p_holm=None,
        significant=False,
        by_seed=tuple(by_seed.tolist()),
    )


def _relative(value: float | None, base: float) -> float | None:
    return None if value is None or base == 0 else 100 * value / base


def _interval(values: np.ndarray) -> tuple[float, float | None]:
    """Mean, and half the width of its interval."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * _standard_error(values)


def _p_value(differences: np.ndarray) -> float | None:
    """Of a difference at least as large by chance alone (two-sided paired t test)."""
    from scipy.stats import t

    if len(differences) < 2:
        return None
    mean, error = float(np.mean(differences)), _standard_error(differences)
    if error == 0:  # every seed says exactly the same
        return 1.0 if mean == 0 else 0.0
    return float(2 * t.sf(abs(mean) / error, len(differences) - 1))


def _standard_error(values: np.ndarray) -> float:
    # Equal values have none; their mean may be off by a rounding error, which must not pass for spread.
    return 0.0 if np.all(values == values[0]) else float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _holm(by_variant: dict[str, dict[str, Difference]], claimed: bool) -> dict[str, dict[str, Difference]]:
    """With p values corrected for the number of variants, measure by measure, and whether each is significant."""
    corrected: dict[str, dict[str, Difference]] = {name: {} for name in by_variant}
    for measure in KNOWN:
        tested = [(name, found[measure]) for name, found in by_variant.items() if measure in found]
        worst = 0.0
        for rank, (name, found) in enumerate(sorted(tested, key=lambda pair: (pair[1].p_value or 0.0, pair[0]))):
            if found.p_value is None or found.low is None or found.high is None:
                corrected[name][measure] = found
                continue
            worst = max(worst, min(1.0, (len(tested) - rank) * found.p_value))
            significant = claimed and worst < 1 - CONFIDENCE and not found.low <= 0 <= found.high
            corrected[name][measure] = structs.replace(found, p_holm=worst, significant=significant)
    return {name: {key: found[key] for key in KNOWN if key in found} for name, found in corrected.items()}
