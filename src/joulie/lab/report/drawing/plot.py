"""A plot as SVG: marks between two axes, in the axes' own values. Colours are the style sheet's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from joulie.lab.report.drawing.axes import Axis, Numbers
from joulie.lab.report.drawing.markup import Markup, number, tag
from joulie.lab.report.drawing.style import VariantStyle

WIDTH = 920.0
LETTER = 6.9  # mean width of a letter; fonts differ, so rather too wide
LABEL_GAP = 15.0  # between two lines of labels
PIECES = 200  # that a long series is averaged over


class Label(NamedTuple):
    """A name in the plot, in pixels."""

    x: float
    y: float
    words: str
    style: VariantStyle
    marked: bool  # with the marker before it


@dataclass
class Plot:
    """Draw on it, then take its `svg`."""

    x: Axis
    y: Axis
    height: float = 240.0
    left: float = 60.0
    right: float = 24.0
    x_words: bool = True  # of several plots above each other only the last needs them
    rows: bool = False  # the y axis names things instead of measuring one
    marks: list[Markup] = field(default_factory=list)
    _labels: list[Label] = field(default_factory=list)

    top = 30.0

    @property
    def bottom(self) -> float:
        return 46.0 if self.x_words else 10.0

    def px(self, values: Numbers | float) -> Numbers:
        return self.left + self.x.place(values) * (WIDTH - self.left - self.right)

    def py(self, values: Numbers | float) -> Numbers:
        return self.height - self.bottom - self.y.place(values) * (self.height - self.top - self.bottom)

    def line(self, xs: Numbers, ys: Numbers, style: VariantStyle, *, thin: bool = False, markers: int = 0) -> None:
        """Through all points; with so many `markers` along the way. Nothing where there is no point."""
        if len(xs) == 0:
            return
        across, down = self.px(xs), self.py(ys)
        path = "M" + "L".join(f"{number(a)} {number(d)}" for a, d in zip(across, down, strict=True))
        kind = "line thin" if thin else "line"
        drawn = tag("path", tag("title", style.name), d=path, class_=kind, stroke_dasharray=style.dash or None)
        spots = np.unique(np.linspace(0, len(xs) - 1, markers + 2).astype(int)[1:-1]) if markers else ()
        dots = (self._marker(float(across[at]), float(down[at]), style) for at in spots)
        self.marks.append(tag("g", drawn, *dots, class_=f"series {style.tone}", data_series=style.name))

    def dot(self, x: float, y: float, style: VariantStyle, says: str, kind: str = "") -> None:
        """One marker, `faint` or `large` if that is its kind; pointing at it shows what it says."""
        drawn = self._marker(float(self.px(x)), float(self.py(y)), style, says, f"marker {kind}".rstrip())
        self.marks.append(tag("g", drawn, class_=f"series {style.tone}", data_series=style.name))

    def across(self, low: float, high: float, y: float, style: VariantStyle, kind: str = "bar") -> None:
        """An interval along x: `bar`, `thread`, or `bracket` with strokes at its ends."""
        left, right, at = float(self.px(low)), float(self.px(high)), float(self.py(y))
        ends = f"M{number(left)} {number(at - 4)}v8M{number(right)} {number(at - 4)}v8" if kind == "bracket" else ""
        self._interval(f"M{number(left)} {number(at)}H{number(right)}{ends}", style, kind)

    def upright(self, x: float, low: float, high: float, style: VariantStyle) -> None:
        """An interval along y."""
        at, bottom, top = float(self.px(x)), float(self.py(low)), float(self.py(high))
        ends = f"M{number(at - 4)} {number(bottom)}h8M{number(at - 4)} {number(top)}h8"
        self._interval(f"M{number(at)} {number(bottom)}V{number(top)}{ends}", style, "bracket")

    def rule(self, *, x: float | None = None, y: float | None = None, label: str = "", kind: str = "rule") -> None:
        """A straight line through the whole plot, with a word at its end."""
        if x is not None:
            at = float(self.px(x))
            path = f"M{number(at)} {self.top:g}V{number(self.height - self.bottom)}"
            word = tag("text", label, x=at + 4, y=self.top + 9, class_="note")
        else:
            at = float(self.py(y or 0.0))
            path = f"M{self.left:g} {number(at)}H{number(WIDTH - self.right)}"
            word = tag("text", label, x=self.left + 6, y=at - 6, class_="note")
        self.marks.append(tag("g", tag("path", d=path, class_=kind), word if label else None))

    def stairs(self, corners: Sequence[tuple[float, float]]) -> None:
        """From one place to the next, first along x, then along y."""
        path = "".join(
            f"{'H' if index else 'M'}{number(float(self.px(x)))}{'V' if index else ' '}{number(float(self.py(y)))}"
            for index, (x, y) in enumerate(corners)
        )
        self.marks.append(tag("path", d=path, class_="rule"))

    def note(self, x: float, y: float, words: str) -> None:
        """Words right of a place."""
        self.marks.append(tag("text", words, x=float(self.px(x)) + 8, y=float(self.py(y)) + 4, class_="note"))

    def end_label(self, y: float, style: VariantStyle) -> None:
        """The name right of the plot, where a line ends."""
        self._labels.append(Label(WIDTH - self.right + 6, float(self.py(y)) + 4, style.name, style, marked=True))

    def name(self, x: float, y: float, style: VariantStyle) -> None:
        """The name above and right of a point."""
        self._labels.append(Label(float(self.px(x)) + 7, float(self.py(y)) - 8, style.name, style, marked=False))

    def svg(self, says: str) -> Markup:
        """The whole plot; `says` is its text for screen readers."""
        return tag(
            "svg",
            *self._x_axis(),
            *self._y_axis(),
            *self.marks,
            *self._placed_labels(),
            viewBox=f"0 0 {WIDTH:g} {self.height:g}",
            data_x=self._reading(self.x, self.left, WIDTH - self.right),
            data_y=self._reading(self.y, self.height - self.bottom, self.top),
            role="img",
            aria_label=says,
        )

    @staticmethod
    def _reading(axis: Axis, low_at: float, high_at: float) -> str | None:
        """For the script, to tell values under the pointer: two places and the values there."""
        return None if axis.log else f"{low_at:g} {high_at:g} {axis.low:.9g} {axis.high:.9g}"

    def _marker(self, x: float, y: float, style: VariantStyle, says: str = "", kind: str = "marker") -> Markup:
        where = f"translate({number(x)} {number(y)}){' scale(1.4)' if 'large' in kind else ''}"
        return tag(
            "path",
            tag("title", says) if says else None,
            d=style.marker,
            transform=where,
            class_=f"{kind} open" if style.open else kind,
        )

    def _interval(self, path: str, style: VariantStyle, kind: str) -> None:
        drawn = tag("path", d=path, class_=f"interval {kind}")
        self.marks.append(tag("g", drawn, class_=f"series {style.tone}", data_series=style.name))

    def _x_axis(self) -> list[Markup]:
        floor = self.height - self.bottom
        places = [float(self.px(value)) for value, _ in self.x.ticks]
        drawn = [tag("path", d=f"M{number(at)} {self.top:g}V{number(floor)}", class_="grid") for at in places]
        if self.x_words:
            taken = -WIDTH
            for at, (_, words) in zip(places, self.x.ticks, strict=True):
                if at - taken > LETTER * len(words) + 8:  # else it would touch its neighbour
                    drawn.append(tag("text", words, x=at, y=floor + 16, class_="tick", text_anchor="middle"))
                    taken = at + LETTER * len(words) / 2
            middle = (self.left + WIDTH - self.right) / 2
            drawn.append(tag("text", self.x.title, x=middle, y=floor + 36, class_="axis-title", text_anchor="middle"))
        return drawn

    def _y_axis(self) -> list[Markup]:
        drawn = [tag("text", self.y.title, x=2, y=14, class_="axis-title")] if self.y.title else []
        for value, words in self.y.ticks:
            at = float(self.py(value))
            drawn.append(tag("path", d=f"M{self.left:g} {number(at)}H{number(WIDTH - self.right)}", class_="grid"))
            shown = shortened(words, (self.left - 10) / LETTER)
            full = tag("title", words) if shown != words else None
            kind = "tick row" if self.rows else "tick"
            drawn.append(tag("text", shown, full, x=self.left - 8, y=at + 4, class_=kind, text_anchor="end"))
        return drawn

    def _placed_labels(self) -> list[Markup]:
        """From top to bottom, each below those that it would touch; all moved up if the last would leave the plot."""
        placed: list[Label] = []
        for label in sorted(self._labels, key=lambda label: label.y):
            touched = [one.y for one in placed if abs(one.x - label.x) < LETTER * max(len(one.words), len(label.words))]
            lowest = max([self.top, *(y + LABEL_GAP for y in touched)])
            placed.append(label._replace(y=max(label.y, lowest)))
        over = max([0.0, *(label.y - (self.height - 4) for label in placed)])
        return [self._drawn_label(label._replace(y=label.y - over)) for label in placed]

    def _drawn_label(self, label: Label) -> Markup:
        x, y, words, style, marked = label
        marker = self._marker(x + 5, y - 4, style) if marked else None
        at = x + 14 if marked else x
        shown = shortened(words, (WIDTH - at) / LETTER)
        named = tag("text", shown, tag("title", words) if shown != words else None, x=at, y=y, class_="label")
        return tag("g", marker, named, class_=f"series {style.tone}", data_series=style.name)


def shortened(words: str, letters: float) -> str:
    """Begin and end stay: names of a sweep differ at both."""
    if len(words) <= letters:
        return words
    kept = max(2, int(letters) - 1)
    return f"{words[: kept - kept // 2]}…{words[-(kept // 2) :]}"


def room_for(names: Iterable[str], most: float = 260.0) -> float:
    """How wide a margin for names has to be."""
    return min(most, LETTER * max(map(len, names), default=0) + 30)


def averaged(xs: Numbers, ys: Numbers, pieces: int = PIECES) -> tuple[Numbers, Numbers]:
    """The means of pieces alike in length: more points than pixels make a smear."""
    starts = np.arange(0, len(xs), piece_size(len(xs), pieces))
    counts = np.diff([*starts, len(xs)])
    return np.add.reduceat(xs, starts) / counts, np.add.reduceat(ys, starts) / counts


def piece_size(points: int, pieces: int = PIECES) -> int:
    return max(1, math.ceil(points / pieces))


def row_axis(title: str, names: Sequence[str]) -> Axis:
    """Names from top to bottom; row i stands at −i."""
    last = len(names) - 1
    return Axis(title, -last - 0.5, 0.5, tuple((float(-index), name) for index, name in enumerate(names)))
