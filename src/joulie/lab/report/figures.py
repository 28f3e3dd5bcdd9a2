"""A figure: plots with heading, legend, caption and source, as every one of the report has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from joulie.lab.report.looks import Look, legend
from joulie.lab.report.markup import Markup, tag
from joulie.lab.report.wording import solid

LINES = 5  # more lines than this in one plot are a thicket


@dataclass(frozen=True, slots=True)
class Figure:
    """What `draw` needs; `plots` stand above each other."""

    key: str
    heading: str
    plots: Sequence[Markup]
    caption: str
    looks: Sequence[Look] = ()


def draw(figure: Figure, source: str) -> Markup:
    """As HTML. Narrow screens scroll the plot alone, also by keyboard."""
    return tag(
        "figure",
        tag("h3", figure.heading, id=f"{figure.key}-heading"),
        legend(figure.looks) if figure.looks else None,
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


def few(looks: Iterable[Look], most: int = LINES) -> list[Look]:
    """The baseline, and of many others some, evenly spread from the first to the last."""
    every = list(looks)
    if len(every) <= most:
        return every
    places = np.linspace(1, len(every) - 1, most - 1).round().astype(int)
    return [every[0], *(every[place] for place in places)]


def left_out(shown: Sequence[Look], every: Sequence[Look]) -> str:
    """What a caption says when not all are drawn."""
    if len(shown) == len(every):
        return ""
    return f" Of {len(every)} variants {len(shown)} are drawn; the tables have all."
