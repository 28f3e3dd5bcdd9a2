"""Several comparisons side by side, such as one for each load: what every variant changes in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulie.lab.analysis.compare import Comparison, Difference
from joulie.lab.report.drawing.axes import linear_axis
from joulie.lab.report.drawing.figure import Figure, few, left_out
from joulie.lab.report.drawing.markup import Markup
from joulie.lab.report.drawing.number_format import relative
from joulie.lab.report.drawing.plot import Plot, room_for, row_axis
from joulie.lab.report.drawing.style import VariantStyle
from joulie.lab.report.figures.against_baseline import PAIRED

VARIANT_STEP, GROUP_GAP = 15.0, 18.0


def across_facets(comparisons: Sequence[Comparison], styles: Mapping[str, VariantStyle]) -> Figure | None:
    """Nothing to show without several comparisons, or with nothing but baselines in them."""
    every = [style for name, style in styles.items() if name != comparisons[0].baseline]
    if len(comparisons) < 2 or not every:
        return None
    shown = few(every)
    plots = [_plot(measure, title, comparisons, shown) for measure, title in PAIRED]
    caption = (
        "Each row is a comparison of its own, because runs of different work cannot be compared with each other. "
        "Marks: means of the differences from the baseline of the same row; brackets: 95 % confidence intervals, "
        f"paired by seed. Where the brackets hold 0, no difference was shown.{left_out(shown, every)}"
    )
    return Figure(
        "facets", "What every variant changes in every comparison", [plot for plot in plots if plot], caption, shown
    )


def _plot(measure: str, title: str, comparisons: Sequence[Comparison], shown: Sequence[VariantStyle]) -> Markup | None:
    found: list[tuple[int, int, VariantStyle, Difference]] = []
    for row, comparison in enumerate(comparisons):
        by_name = {variant.name: variant.differences.get(measure) for variant in comparison.variants}
        for place, style in enumerate(shown):
            difference = by_name.get(style.name)
            if difference is not None and difference.relative_pct is not None:
                found.append((row, place, style, difference))
    if not found:
        return None
    ends = [0.0]
    for *_, one in found:
        ends += [end for end in (one.relative_pct, one.relative_low_pct, one.relative_high_pct) if end is not None]
    row_height = VARIANT_STEP * len(shown) + GROUP_GAP
    plot = Plot(
        linear_axis(title, "%", ends, about=7, signed=True),
        row_axis("Comparison (change in %)", [comparison.facet for comparison in comparisons]),
        height=76 + row_height * len(comparisons),
        left=room_for(comparison.facet for comparison in comparisons),
        rows=True,
    )
    plot.rule(x=0.0, kind="rule zero")
    for row, place, style, one in found:
        y = -row + VARIANT_STEP * ((len(shown) - 1) / 2 - place) / row_height
        if one.relative_low_pct is not None and one.relative_high_pct is not None:
            plot.across(one.relative_low_pct, one.relative_high_pct, y, style, "bracket")
        assert one.relative_pct is not None
        plot.dot(one.relative_pct, y, style, f"{style.name}, {comparisons[row].facet}: {relative(one)}")
    return plot.svg(f"{title} in percent, for each comparison and variant")
