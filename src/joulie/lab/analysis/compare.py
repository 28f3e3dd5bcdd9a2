"""Variants against a baseline, paired by seed: differences with 95 % confidence intervals, and a sentence about each.

Differences are taken seed by seed; their mean gets Student's interval, and a relative one is that of the baseline's
mean. A difference is significant where its interval leaves out 0 and its p value, corrected by Holm's method for the
number of variants, is below 5 %. Energy is compared over the same time: the run that ends earlier idles on until the
other of the pair is done, at what its facility draws without work. Every pair is judged by itself, so that a variant
that takes long changes nothing about the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct, structs

from joulie.lab.analysis.measures import KNOWN, Measures
from joulie.lab.analysis.verdicts import MIN_SEEDS, Basis, summary, verdict
from joulie.lab.model.refusals import refuse_unequal

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
    aside: str = ""  # without which its numbers must not be read


class Comparison(Struct, frozen=True):
    """All variants of an experiment under one facet; the baseline is the first."""

    baseline: str
    seeds: tuple[int, ...]
    variants: tuple[Compared, ...]
    summary: str  # the sentence that sums it up
    notes: tuple[str, ...]  # what limits it: few seeds, one trace for all seeds
    facet: str = ""  # such as `trace.load=0.6`: what all runs of this comparison share and those of others do not
    trace: str = ""  # which all seeds come from, so that nothing is said of others
    drawn: bool = False  # each seed is a block bootstrap of that trace; else they replay it


@dataclass(frozen=True, slots=True)
class Entry:
    """One run, as far as it is compared."""

    measures: Measures
    jobs_digest: str  # of everything about the jobs


def compare(
    runs: Mapping[str, Mapping[int, Entry]],
    baseline: str,
    facet: str = "",
    notes: Sequence[str] = (),
    *,
    replayed: str = "",
    drawn: bool = False,
    asides: Mapping[str, str] | None = None,
) -> Comparison:
    """`runs` by variant and seed; LabError where they did not do the same work on the same seeds.

    `replayed` is the trace that all seeds share, `drawn` whether each is a block bootstrap of it, `asides` what has to
    be said beside a variant's verdict.
    """
    runs = {baseline: {}, **runs}
    names = list(runs)
    refuse_unequal({name: {seed: entry.jobs_digest for seed, entry in runs[name].items()} for name in names})
    seeds = tuple(sorted(runs[baseline]))
    same_jobs = len(seeds) > 1 and len({entry.jobs_digest for entry in runs[baseline].values()}) == 1
    basis = Basis(len(seeds), replayed or ("this trace" if same_jobs else ""), drawn and not same_jobs)
    claimed = len(seeds) >= MIN_SEEDS
    said = asides or {}
    measured = {name: [runs[name][seed].measures for seed in seeds] for name in names}
    measured, freest = one_bound(measured)
    limits = [
        *notes,
        *_limits(basis, same_jobs),
        *_of_time(measured),
        *_of_bound(freest),
        *_of_load(measured[baseline]),
    ]
    all_differences = _holm({name: _differences(measured[baseline], measured[name]) for name in names[1:]}, claimed)
    variants = [
        Compared(
            name,
            {measure: estimate(values) for measure, values in by_measure.items()},
            by_measure,
            all_differences.get(name, {}),
            verdict(name, baseline, all_differences[name], basis, said.get(name, "")) if name != baseline else "",
            said.get(name, ""),
        )
        for name in names
        for by_measure in [_by_measure(measured[name])]
    ]
    return Comparison(
        baseline, seeds, tuple(variants), summary(variants, basis), tuple(limits), facet, basis.trace, basis.drawn
    )


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval of independent values."""
    mean, half = mean_and_half_width(np.asarray(values, dtype=np.float64))
    return Estimate(mean, None, None) if half is None else Estimate(mean, mean - half, mean + half)


def _limits(basis: Basis, same_jobs: bool) -> list[str]:
    limits = []
    if basis.seeds < MIN_SEEDS:
        limits.append(f"{basis.seeds} of at least {MIN_SEEDS} seeds: nothing can be claimed")
    if basis.seeds > 1 and basis.trace:
        drawn = f"is a block bootstrap of {basis.trace}, parts of it drawn with replacement"
        what = "ran the same jobs" if same_jobs else drawn if basis.drawn else f"replays {basis.trace}"
        limits.append(f"every seed {what}: what is found holds for this trace, and nothing is said of others")
    return limits


def one_bound(measured: Mapping[str, Sequence[Measures]]) -> tuple[dict[str, list[Measures]], str]:
    """Every run against the bound of the freest variant on its seed, and who that is where bounds differ.

    A variant that may sleep, or has better nodes, has a lower bound: against its own it would look worse for it.
    """
    columns = {name: [run.bound_kwh for run in runs] for name, runs in measured.items()}
    by_seed = list(zip(*columns.values(), strict=True))
    if all(None in bounds or min(bounds) == max(bounds) for bounds in by_seed):
        return {name: list(runs) for name, runs in measured.items()}, ""
    least = [None if None in bounds else min(bounds) for bounds in by_seed]
    bounded = {
        name: [_against(run, bound) for run, bound in zip(runs, least, strict=True)] for name, runs in measured.items()
    }
    return bounded, min(columns, key=lambda name: sum(bound or 0.0 for bound in columns[name]))


def _against(run: Measures, bound_kwh: float | None) -> Measures:
    if not bound_kwh:
        return run
    return structs.replace(run, bound_kwh=bound_kwh, over_bound_pct=100 * (run.it_kwh / bound_kwh - 1))


def _of_bound(freest: str) -> list[str]:
    return [f"all variants are held against one lower bound, that of {freest}, which has the most freedom"] * bool(
        freest
    )


def _of_load(runs: Sequence[Measures]) -> list[str]:
    """What one number for a load hides: which of CPUs and GPUs it is about."""
    pairs = (("CPUs", [run.cpu_load_pct for run in runs]), ("GPUs", [run.gpu_load_pct for run in runs]))
    said = [f"{name} {np.mean(loads):.0f} %" for name, loads in pairs if None not in loads]
    return [f"load while jobs arrive, of what the baseline's nodes can do uncapped: {', '.join(said)}"] if said else []


def _of_time(measured: Mapping[str, Sequence[Measures]]) -> list[str]:
    """What explains that means and differences of energy do not add up where runs took different times."""
    times = {tuple(_rests_h(run) for run in runs) for runs in measured.values()}
    said = "energy is compared over the same time: the run of a pair that ends first idles on until the other ends"
    sleeps = any(run.settled_h for runs in measured.values() for run in runs)
    return [said + (" and empty nodes sleep" if sleeps else "")] if len(times) > 1 or sleeps else []


def _by_measure(measured: Sequence[Measures]) -> dict[str, tuple[float, ...]]:
    """Measures that every run has a value for, by name, one value a seed."""
    columns = {name: tuple(getattr(run, name) for run in measured) for name in KNOWN}
    return {name: values for name, values in columns.items() if None not in values}


def _differences(baseline: Sequence[Measures], variant: Sequence[Measures]) -> dict[str, Difference]:
    pairs = [over_same_time(pair) for pair in zip(baseline, variant, strict=True)]
    before, after = (_by_measure(side) for side in zip(*pairs, strict=True))
    return {
        name: _difference(name, np.asarray(before[name]), np.asarray(after[name]))
        for name, known in KNOWN.items()
        if known.better and name in before and name in after
    }


def over_same_time(runs: Sequence[Measures]) -> list[Measures]:
    """With energy until the last of them is done and, where nodes sleep, until they do: otherwise a run that keeps them
    awake for longer would get that for nothing.
    """
    until_h = max(_rests_h(run) for run in runs)
    return [_until(run, until_h) for run in runs]


def _rests_h(run: Measures) -> float:
    rests_h: float = run.metered_h + run.settled_h
    return rests_h


def _until(run: Measures, until_h: float) -> Measures:
    """The run with what it draws without work until then; what it did meanwhile is nothing, so delays stay."""
    longer_h = until_h - run.metered_h
    if longer_h <= 0:
        return run
    all_kwh = run.idle_kw * longer_h + run.settling_kwh
    gpu_kwh = run.idle_gpu_nodes_kw * longer_h + run.settling_gpu_nodes_kwh
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
    mean, half = mean_and_half_width(by_seed)
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
        p_value=p_value_of(by_seed),
        p_holm=None,
        significant=False,
        by_seed=tuple(by_seed.tolist()),
    )


def _relative(value: float | None, base: float) -> float | None:
    return None if value is None or base == 0 else 100 * value / base


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


CONFIDENCE = 0.95


def mean_and_half_width(values: np.ndarray) -> tuple[float, float | None]:
    """The mean, and how far its interval reaches to either side; of one value it has none."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * _standard_error(values)


def p_value_of(differences: np.ndarray) -> float | None:
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
