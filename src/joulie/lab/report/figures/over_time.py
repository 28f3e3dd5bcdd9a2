"""Power over time with what shapes it: caps, temperatures, the queue, nodes asleep. One seed, all variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from joulie.lab.model.jobs import Numbers
from joulie.lab.report.drawing.axes import hours_axis, linear_axis
from joulie.lab.report.drawing.figure import Figure, few, left_out
from joulie.lab.report.drawing.markup import Markup
from joulie.lab.report.drawing.number_format import amount, duration, listed
from joulie.lab.report.drawing.plot import Plot, averaged, piece_size, room_for
from joulie.lab.report.drawing.style import DASHES, MARKERS, TONES, VariantStyle

Series = Mapping[str, Numbers]  # columns of joulie.lab.model.outcome.SERIES

OUTSIDE = VariantStyle("outside air", f"tone-{len(TONES) - 1}", DASHES[6], MARKERS[0])


class Panel(NamedTuple):
    """One plot of the stack; left out where every run shows only `dull`."""

    title: str
    unit: str
    column: Callable[[Series], Numbers]
    dull: float | None
    zero: bool = True


PANELS = (
    Panel("Power of the facility", "kW", lambda series: (series["it_w"] + series["cooling_w"]) / 1000, None),
    Panel("CPU cap, mean over nodes", "% of maximum", lambda series: series["cpu_cap_pct"], 100.0),
    Panel("GPU cap, mean over nodes", "% of maximum", lambda series: series["gpu_cap_pct"], 100.0),
    Panel("Air at the inlets of the warmest zone", "°C", lambda series: series["inlet_c"], None, zero=False),
    Panel("Waiting jobs", "number of jobs", lambda series: series["waiting_jobs"], 0.0),
    Panel("Nodes asleep", "number of nodes", lambda series: series["asleep_nodes"], 0.0),
)


def over_time(runs: Mapping[str, Series], styles: Mapping[str, VariantStyle], seed: int) -> Figure:
    """`runs` by variant, the baseline first."""
    every = [styles[name] for name in runs]
    shown = few(every)
    drawn = [panel for panel in PANELS if not _dull(panel, runs)]
    plots = [_plot(panel, runs, shown, last=panel is drawn[-1]) for panel in drawn]
    peaks = [
        f"{style.name} {amount(float(np.max(PANELS[0].column(runs[style.name]), initial=0.0)), 1, 'kW')}"
        for style in shown
    ]
    missing = [panel.title.split(",")[0] for panel in PANELS if panel not in drawn]
    left = f" Not drawn, because nothing happens there: {listed(missing)}." if missing else ""
    caption = (
        f"The course of one seed, {seed}{_averaging(runs)}. All plots share the time axis. "
        f"Fans and compressors are part of the facility’s power. {_whose_weather(runs, shown)}"
        f"Highest mean of a recorded interval: {listed(peaks)}.{left}{left_out(shown, every)}"
    )
    return Figure("over-time", "Power over time, with caps and temperature", plots, caption, shown)


def _averaging(runs: Mapping[str, Series]) -> str:
    """Over how long a line averages, if it does."""
    longest = max((run["time_s"] for run in runs.values()), key=len)
    size = piece_size(len(longest))
    return f"; lines are means of {duration(size * float(longest[-1]) / len(longest))}" if size > 1 else ""


def _longest(runs: Mapping[str, Series], shown: Sequence[VariantStyle]) -> VariantStyle:
    """Whose air outside is drawn."""
    return max(shown, key=lambda style: len(runs[style.name]["time_s"]))


def _whose_weather(runs: Mapping[str, Series], shown: Sequence[VariantStyle]) -> str:
    """Where variants differ in it."""
    drawn = _longest(runs, shown)
    outside_c = runs[drawn.name]["outside_c"]
    same = all(
        np.array_equal(runs[style.name]["outside_c"][:-1], outside_c[: len(runs[style.name]["outside_c"]) - 1])
        for style in shown
    )
    return "" if same else f"Air outside is that of “{drawn.name}”; not all have the same. "


def _dull(panel: Panel, runs: Mapping[str, Series]) -> bool:
    if panel.dull is None:
        return False
    return all(np.all((values == panel.dull) | np.isnan(values)) for values in map(panel.column, runs.values()))


def _plot(panel: Panel, runs: Mapping[str, Series], shown: Sequence[VariantStyle], *, last: bool) -> Markup:
    columns = {style: panel.column(runs[style.name]) for style in shown}
    hours = {style: runs[style.name]["time_s"] / 3600 for style in shown}
    drawn = [values for values in columns.values() if len(values)]
    outside = panel.unit == "°C"
    if outside:
        longest = _longest(runs, shown)
        columns[OUTSIDE], hours[OUTSIDE] = runs[longest.name]["outside_c"], hours[longest]
        drawn.append(columns[OUTSIDE])
    ends = [float(end(values)) for values in drawn for end in (np.nanmin, np.nanmax) if not np.all(np.isnan(values))]
    plot = Plot(
        hours_axis(max(float(times[-1]) if len(times) else 1.0 for times in hours.values())),
        linear_axis(panel.title, panel.unit, ends, zero=panel.zero, about=6 if panel is PANELS[0] else 4),
        height=220.0 if panel is PANELS[0] else 150.0,
        right=room_for(style.name for style in columns),
        x_words=last,
    )
    for style, values in columns.items():
        known = ~np.isnan(values)
        if known.any():
            xs, ys = averaged(hours[style][known], values[known])
            plot.line(xs, ys, style, thin=style is OUTSIDE, markers=0 if style is OUTSIDE else 3)
            plot.end_label(float(ys[-1]), style)
    return plot.svg(f"{panel.title} in {panel.unit} over time, one line for each variant")
