"""How long jobs waited and how much they were slowed down: all jobs as curves, and families and classes as ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from joulie.lab.report.drawing.axes import Axis, duration_axis, log_axis
from joulie.lab.report.drawing.figure import Figure, few, left_out
from joulie.lab.report.drawing.number_format import amount, duration, listed
from joulie.lab.report.drawing.plot import Plot, room_for, row_axis
from joulie.lab.report.drawing.style import VariantStyle
from joulie.lab.report.figures.distributions import ALL_JOBS, PERFORMANCE_JOBS, STANDARD_JOBS, Delays, Distribution

VARIANT_STEP = 12.0  # between two variants of a group
GROUP_GAP = 16.0
RAREST = 1e-4  # share of jobs at the foot of the curves


class DelayKind(NamedTuple):
    """Waits or slowdowns."""

    key: str
    heading: str
    of: Callable[[Delays], dict[str, Distribution]]
    axis: Callable[[float], Axis]
    said: Callable[[float], str]


KINDS = (
    DelayKind(
        "waits",
        "How long jobs waited",
        lambda found: found.wait_s,
        lambda longest: duration_axis("Wait until the start", longest),
        lambda value: duration(value) if value > 1 else "≤ 1 s",
    ),
    DelayKind(
        "slowdowns",
        "How much jobs were slowed down",
        lambda found: found.slowdown,
        lambda longest: log_axis("Slowdown", "× the shortest possible time", 1.0, longest, "≤ 1"),
        lambda value: amount(value, 2, "×") if value > 1 else "≤ 1 ×",
    ),
)


def delays(by_variant: Mapping[str, Delays], styles: Mapping[str, VariantStyle], seeds: int) -> list[Figure]:
    """Waits, then slowdowns; each for all jobs and by group. `by_variant` has the baseline first."""
    if not all(ALL_JOBS in one.wait_s for one in by_variant.values()):
        return []  # no job came
    every = [styles[name] for name in by_variant]
    shown = few(every)
    jobs = next(iter(by_variant.values())).wait_s[ALL_JOBS].jobs
    over = f"{jobs:,} jobs a variant, of {seeds} {'seed' if seeds == 1 else 'seeds'}."
    more = left_out(shown, every)
    return [
        figure
        for kind in KINDS
        for figure in (_curves(kind, by_variant, shown, over, more), _ranges(kind, by_variant, shown, over, more))
    ]


def _curves(
    kind: DelayKind, found: Mapping[str, Delays], shown: Sequence[VariantStyle], over: str, more: str
) -> Figure:
    """How many jobs had to take more than this."""
    chosen = {style: kind.of(found[style.name])[ALL_JOBS] for style in shown}
    least = 100 * max(RAREST, 1 / next(iter(chosen.values())).jobs)
    longest = max(one.quantile(1.0) for one in chosen.values())
    plot = Plot(kind.axis(longest), log_axis("Jobs with more than this", "% of jobs", least, 100.0), height=280.0)
    for style, one in chosen.items():
        values, shares = one.above()
        seen = 100 * shares >= least  # beyond it too few jobs to show a share
        plot.line(values[seen], 100 * shares[seen], style, markers=4)
    p99 = [f"{style.name} {kind.said(one.quantile(0.99))}" for style, one in chosen.items()]
    caption = (
        f"Both axes are logarithmic; the further down and left a line, the better. {over} "
        f"One job in a hundred has more than: {listed(p99)}.{more}"
    )
    svg = plot.svg(f"Share of jobs above each value of {plot.x.title}, one line for each variant")
    return Figure(kind.key, kind.heading, [svg], caption, shown)


def _ranges(
    kind: DelayKind, found: Mapping[str, Delays], shown: Sequence[VariantStyle], over: str, more: str
) -> Figure:
    """Median, p10 to p90, and p99 of each group."""
    names = list(dict.fromkeys(name for style in shown for name in kind.of(found[style.name])))
    first = [ALL_JOBS, PERFORMANCE_JOBS, STANDARD_JOBS]
    names = [*(name for name in first if name in names), *sorted(set(names) - set(first))]
    by_style = {style: kind.of(found[style.name]) for style in shown}
    highest = max(one.quantile(0.99) for groups in by_style.values() for one in groups.values())
    jobs = {name: max(groups[name].jobs for groups in by_style.values() if name in groups) for name in names}
    named = [f"{name} ({jobs[name]:,})" for name in names]
    rows = row_axis("Jobs (number of jobs)", named)
    row_height = VARIANT_STEP * len(shown) + GROUP_GAP
    plot = Plot(kind.axis(highest), rows, height=76 + row_height * len(names), left=room_for(named), rows=True)
    for row, name in enumerate(names):
        for place, (style, groups) in enumerate(by_style.items()):
            if name not in groups:
                continue
            y = -row + (VARIANT_STEP * ((len(shown) - 1) / 2 - place)) / row_height
            p10, p50, p90, p99 = map(groups[name].quantile, (0.1, 0.5, 0.9, 0.99))
            plot.across(p90, p99, y, style, "thread")
            plot.across(p10, p90, y, style)
            plot.dot(p50, y, style, f"{style.name}, {name}: median {kind.said(p50)}, p99 {kind.said(p99)}")
    caption = (
        "Marker: median; bar: from p10 to p90; thin line: on to p99. "
        f"A job stands under all jobs, its class and its family. {over}{more}"
    )
    svg = plot.svg(f"Ranges of {plot.x.title} by class and family of jobs, one for each variant")
    return Figure(f"{kind.key}-by-group", f"{kind.heading}, by class and family", [svg], caption, shown)
