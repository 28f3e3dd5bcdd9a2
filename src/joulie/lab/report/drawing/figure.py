"""A figure: plots with heading, legend, caption and source, as every one of the report has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from joulie.lab.report.drawing.markup import Markup, tag
from joulie.lab.report.drawing.number_format import solid
from joulie.lab.report.drawing.style import VariantStyle, legend

LINES = 5  # more lines than this in one plot are a thicket


@dataclass(frozen=True, slots=True)
class Figure:
    """What `draw` needs; `plots` stand above each other."""

    key: str
    heading: str
    plots: Sequence[Markup]
    caption: str
    styles: Sequence[VariantStyle] = ()


def draw(figure: Figure, source: str) -> Markup:
    """As HTML. Narrow screens scroll the plot alone, also by keyboard."""
    return tag(
        "figure",
        tag("h3", figure.heading, id=f"{figure.key}-heading"),
        legend(figure.styles) if figure.styles else None,
        tag(
            "div",
            *figure.plots,
            class_="plots",
            tabindex="0",
            role="group",
            aria_labelledby=f"{figure.key}-heading",
        ),
        tag(
            "figcaption",
            tag("p", solid(figure.caption), class_="caption"),
            tag("p", source, class_="source"),
        ),
        id=figure.key,
    )


def few(styles: Iterable[VariantStyle], most: int = LINES) -> list[VariantStyle]:
    """The baseline, and of many others some, evenly spread from the first to the last."""
    every = list(styles)
    if len(every) <= most:
        return every
    places = np.linspace(1, len(every) - 1, most - 1).round().astype(int)
    return [every[0], *(every[place] for place in places)]


def left_out(shown: Sequence[VariantStyle], every: Sequence[VariantStyle]) -> str:
    """What a caption says when not all are drawn."""
    if len(shown) == len(every):
        return ""
    return f" Of {len(every)} variants {len(shown)} are drawn; the tables have all."
