"""The few kinds of panel that the dashboards are made of, each with a unit, a description and one colour per state."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    GraphGradientMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)

STATES = {"performance": "blue", "eco": "green", "draining": "orange"}
COLOURS = {**STATES, "unknown": "#808080", "fault": "red"}
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
HEIGHT, LOW = 8, 4

Panel = timeseries.Panel | stat.Panel | bargauge.Panel | statetimeline.Panel
_P = TypeVar("_P", timeseries.Panel, stat.Panel, bargauge.Panel, statetimeline.Panel)


class Query(NamedTuple):
    expr: str
    legend: str = ""


class About(NamedTuple):
    """Title, description and unit of a panel."""

    title: str
    description: str
    unit: str


def number(
    about: About, *queries: Query, steps: dict[float, str] | None = None, empty: str = "", span: int = 4
) -> Panel:
    """The current value of each query."""
    panel = _described(stat.Panel(), about, queries, instant=True).height(LOW).span(span)
    panel.graph_mode(BigValueGraphMode.NONE).color_mode(BigValueColorMode.VALUE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if empty:
        panel.no_value(empty)
    if steps is None:
        return _state_colours(
            panel.color_scheme(build.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("text"))
        )
    return panel.thresholds(_steps(steps))


def lines(
    about: About,
    *queries: Query,
    stacked: bool = False,
    top: float | None = None,
    colours: dict[str, str] | None = None,
) -> Panel:
    """Values over time."""
    panel = _described(timeseries.Panel(), about, queries).height(HEIGHT).span(12).min(0)
    panel.legend(
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    panel.line_width(1).fill_opacity(40 if stacked else 8).gradient_mode(GraphGradientMode.NONE)
    panel.show_points(VisibilityMode.NEVER)
    if stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    if top is not None:
        panel.max(top)
    return _state_colours(panel, colours)


def bars(about: About, *queries: Query, steps: dict[float, str], top: float) -> Panel:
    """Each series as a bar, as it is now."""
    panel = _described(bargauge.Panel(), about, queries, instant=True).height(HEIGHT).span(12).min(0).max(top)
    panel.display_mode(BarGaugeDisplayMode.BASIC).orientation(VizOrientation.HORIZONTAL)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.thresholds(_steps(steps))


def timeline(about: About, query: Query, values: dict[int, tuple[str, str]], span: int = 24) -> Panel:
    """What something was when; each value has a name and a colour."""
    panel = _described(statetimeline.Panel(), about, [query]).height(LOW + 1).span(span)
    panel.show_value(VisibilityMode.AUTO).merge_values(True).row_height(0.8).fill_opacity(80)
    panel.legend(common.VizLegendOptions().show_legend(False))
    results = {
        str(value): model.ValueMappingResult(text=text, color=colour) for value, (text, colour) in values.items()
    }
    return panel.mappings([model.ValueMap(options=results)])


def _described(panel: _P, about: About, queries: list[Query] | tuple[Query, ...], *, instant: bool = False) -> _P:
    panel.title(about.title).description(about.description).unit(about.unit).datasource(SOURCE)
    for number_, (expr, legend) in enumerate(queries):
        query = prometheus.Dataquery().expr(expr).legend_format(legend or "__auto").ref_id(chr(ord("A") + number_))
        panel.with_target((query.instant() if instant else query.range()).datasource(SOURCE))
    return panel


def _state_colours(panel: _P, more: dict[str, str] | None = None) -> _P:
    """A series that is called like a state has its colour."""
    for name, colour in {**STATES, **(more or {})}.items():
        fixed = model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        panel.override_by_name(name, [fixed])
    return panel


def _steps(steps: dict[float, str]) -> build.ThresholdsConfig:
    """From each value on, a colour; what is below the first has the first's."""
    (_, lowest), *others = steps.items()
    thresholds = [model.Threshold(value=None, color=lowest)]
    thresholds += [model.Threshold(value=value, color=colour) for value, colour in others]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)
