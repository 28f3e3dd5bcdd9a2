"""Variants against the baseline: energy against slowdown, seed by seed, and how far all are from the bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from joulie.lab.analysis.compare import Comparison, Difference
from joulie.lab.analysis.verdicts import saves, worse
from joulie.lab.report.drawing.axes import linear_axis
from joulie.lab.report.drawing.figure import Figure
from joulie.lab.report.drawing.markup import Markup
from joulie.lab.report.drawing.number_format import listed, measured, percent, relative
from joulie.lab.report.drawing.plot import Plot, room_for, row_axis
from joulie.lab.report.drawing.style import VariantStyle

ENERGY, SLOWDOWN = "facility_kwh", "slowdown_p99"
BOUND, IT_ENERGY, OVER_BOUND = "bound_kwh", "it_kwh", "over_bound_pct"
PAIRED = ((ENERGY, "Facility energy less the baseline’s"), (SLOWDOWN, "p99 slowdown less the baseline’s"))
CHANGES_WIDTH = 190.0
ROW = 42.0


class MeanInterval(NamedTuple):
    """A mean, and how far the interval reaches; no interval from one seed."""

    mean: float
    low: float
    high: float


def pareto(comparison: Comparison, styles: Mapping[str, VariantStyle]) -> Figure | None:
    """Each variant at the baseline's mean plus its paired difference, with the 95 % interval of that difference."""
    baseline = comparison.variants[0]
    if not {ENERGY, SLOWDOWN} <= baseline.estimates.keys():
        return None
    slow, energy = baseline.estimates[SLOWDOWN].mean, baseline.estimates[ENERGY].mean
    spots = {baseline.name: (MeanInterval(slow, slow, slow), MeanInterval(energy, energy, energy))}
    said = {baseline.name: f"{baseline.name}: the baseline"}
    for variant in comparison.variants[1:]:
        if {ENERGY, SLOWDOWN} <= variant.differences.keys():
            slower, saved = variant.differences[SLOWDOWN], variant.differences[ENERGY]
            spots[variant.name] = (_beside(slow, slower), _beside(energy, saved))
            said[variant.name] = f"{variant.name}: energy {relative(saved)}, p99 slowdown {relative(slower)}"
    plot = Plot(
        linear_axis("Slowdown, p99", "× the shortest possible time", [end for x, _ in spots.values() for end in x]),
        linear_axis("Facility energy", "kWh", [end for _, y in spots.values() for end in y]),
        height=380.0,
        left=74.0,
        right=room_for(spots),
    )
    bound = _draw_bound(plot, comparison)
    front = _front({name: (x.mean, y.mean) for name, (x, y) in spots.items()})
    plot.stairs([(spots[name][0].mean, spots[name][1].mean) for name in front])
    for name, (x, y) in spots.items():
        if name != baseline.name:
            plot.across(x.low, x.high, y.mean, styles[name], "bracket")
            plot.upright(x.mean, y.low, y.high, styles[name])
        plot.dot(x.mean, y.mean, styles[name], said[name], "large")
        plot.name(x.mean, y.mean, styles[name])
    caption = (
        "Down and left is better. Bars: 95 % confidence intervals of the differences from the baseline, paired by "
        "seed; the baseline has none. The stepped line joins the means that no other mean beats in both. "
        f"{_saved_for_free(comparison)}{bound}"
    )
    svg = plot.svg(f"Energy against slowdown of {len(spots)} variants, with confidence intervals")
    return Figure("pareto", "Energy against slowdown", [svg], caption, [styles[name] for name in spots])


def _saved_for_free(comparison: Comparison) -> str:
    """Means alone would name a winner by chance, so only what is significant is named."""
    if len(comparison.variants) == 1:
        return ""
    free = [
        f"“{variant.name}”"
        for variant in comparison.variants[1:]
        if {ENERGY, SLOWDOWN} <= variant.differences.keys()
        and saves(variant.differences[ENERGY])
        and not worse(variant.differences[SLOWDOWN])
    ]
    if not free:
        return "No variant is shown to save energy without more slowdown."
    return f"Shown to save energy, and not shown to slow down: {listed(free)}."


def _draw_bound(plot: Plot, comparison: Comparison) -> str:
    """The line, where it lies within the plot; and what the caption says of it."""
    bounds = [variant.estimates[BOUND].mean for variant in comparison.variants if BOUND in variant.estimates]
    if not bounds:
        return ""
    bound = min(bounds)  # which differ where nodes or their sleep do
    inside = bound >= plot.y.low
    words = f"lower bound {measured(BOUND, bound)}"
    if inside:
        plot.rule(y=bound, label=words)
    else:
        plot.rule(y=plot.y.low, label=f"↓ {words}, below this plot", kind="grid")
    where = "" if inside else ", below what is drawn"
    return f" No schedule and no caps can take IT equipment below {measured(BOUND, bound)}{where} (mean over seeds)."


def paired(comparison: Comparison, styles: Mapping[str, VariantStyle]) -> Figure | None:
    """Every seed's difference, their mean and its interval."""
    others = [variant for variant in comparison.variants[1:] if ENERGY in variant.differences]
    if not others:
        return None
    plots = []
    for measure, title in PAIRED:
        found = {
            variant.name: variant.differences[measure]
            for variant in others
            if measure in variant.differences and variant.differences[measure].baseline
        }
        if found:
            plots.append(_paired_plot(title, found, styles, comparison.seeds))
    caption = (
        f"Small marks: one for each of {len(comparison.seeds)} seeds, the same jobs in both runs. Large "
        "mark: their mean; brackets: its 95 % confidence interval. Where the brackets hold 0, no difference was shown. "
        "Energy is counted over the same time: the run that ends earlier idles on."
    )
    return Figure("paired", "Difference from the baseline, seed by seed", plots, caption)


def _paired_plot(
    title: str, found: Mapping[str, Difference], styles: Mapping[str, VariantStyle], seeds: tuple[int, ...]
) -> Markup:
    shares = {name: [100 * one / d.baseline for one in d.by_seed] for name, d in found.items()}
    ends = [0.0, *(one for several in shares.values() for one in several)]
    ends += [end for d in found.values() for end in (d.relative_low_pct, d.relative_high_pct) if end is not None]
    plot = Plot(
        linear_axis(title, "%", ends, about=7, signed=True),
        row_axis("Variant (change in %, mean [95 % interval])", list(found)),
        height=76 + ROW * len(found),
        left=room_for(found),
        right=CHANGES_WIDTH,
        rows=True,
    )
    plot.rule(x=0.0, kind="rule zero")
    for row, (name, difference) in enumerate(found.items()):
        for seed, share in zip(seeds, shares[name], strict=False):
            plot.dot(share, -row + 0.17, styles[name], f"seed {seed}: {percent(share)}", "faint")
        low, high = difference.relative_low_pct, difference.relative_high_pct
        if low is not None and high is not None:
            plot.across(low, high, -row - 0.17, styles[name], "bracket")
        if difference.relative_pct is not None:
            plot.dot(difference.relative_pct, -row - 0.17, styles[name], f"{name}: {relative(difference)}", "large")
        plot.note(plot.x.high, -row, relative(difference))
    return plot.svg(f"{title} in percent, for each variant and seed")


def distance(comparison: Comparison, styles: Mapping[str, VariantStyle]) -> Figure | None:
    """IT energy above what no schedule can go below."""
    found = {v.name: v.estimates for v in comparison.variants if {BOUND, IT_ENERGY, OVER_BOUND} <= v.estimates.keys()}
    if not found:
        return None
    ends = [one[measure].mean for one in found.values() for measure in (BOUND, IT_ENERGY)]
    plot = Plot(
        linear_axis("IT energy", "kWh, mean over seeds", ends, zero=True, about=6),
        row_axis("Variant (above its bound, in %)", list(found)),
        height=76 + ROW * len(found),
        left=room_for(found),
        right=90.0,
        rows=True,
    )
    over = {}
    for row, (name, estimates) in enumerate(found.items()):
        bound, spent = estimates[BOUND].mean, estimates[IT_ENERGY].mean
        over[name] = estimates[OVER_BOUND].mean
        plot.across(0.0, bound, -row, styles[name], "bar pale")
        plot.across(bound, spent, -row, styles[name], "bracket")
        plot.dot(spent, -row, styles[name], f"{name}: {measured(IT_ENERGY, spent)}, bound {measured(BOUND, bound)}")
        plot.note(plot.x.high, -row, percent(over[name]))
    nearest = min(over, key=lambda name: over[name])
    caption = (
        "Pale bar: the lower bound, all work at the best efficiency that any node offers plus the idle power that the "
        "switch for sleep allows. Bracket: what was used beyond it. The mark is what the run took. "
        f"Nearest: “{nearest}”, {percent(over[nearest])}."
    )
    svg = plot.svg("IT energy of each variant and its lower bound")
    return Figure("bound", "Distance to the bound", [svg], caption)


def _beside(baseline: float, difference: Difference) -> MeanInterval:
    low, high = difference.low, difference.high
    mean = baseline + difference.mean
    return MeanInterval(mean, mean if low is None else baseline + low, mean if high is None else baseline + high)


def _front(spots: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those that no other beats in both, from left to right."""
    front, lowest = [], float("inf")
    for name, (_, energy) in sorted(spots.items(), key=lambda item: item[1]):
        if energy < lowest:
            front.append(name)
            lowest = energy
    return front
