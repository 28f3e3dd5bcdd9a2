"""How each variant looks in every plot: a colour, a dash pattern and a marker, so that no two need colour to differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from joulie.lab.report.drawing.markup import Markup, tag
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.overview.colours import FAULT, STATE_COLOURS

# On light ground, on dark ground. The first is the baseline's: ink.
TONES = (
    ("#18212c", "#e7edf3"),
    (STATE_COLOURS[PERFORMANCE], "#4fa9dd"),
    (STATE_COLOURS[ECO], "#35c49b"),
    (STATE_COLOURS[DRAINING], "#e6a53a"),
    (FAULT, "#ff7a66"),
    ("#7a4fa3", "#bd9be0"),
    (STATE_COLOURS[UNKNOWN], "#a5adb6"),
)
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "13 4", "5 2 1.5 2 1.5 2", "1 4", "16 3 3 3 3 3")
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",  # circle
    "M-3.6-3.6H3.6V3.6H-3.6Z",  # square
    "M0-4.8L4.6 3.6H-4.6Z",  # triangle
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",  # diamond
    "M-1.4-4.8H1.4V-1.4H4.8V1.4H1.4V4.8H-1.4V1.4H-4.8V-1.4H-1.4Z",  # plus
    "M0 4.8L4.6-3.6H-4.6Z",  # triangle upside down
    "M-4.8-1.6H4.8V1.6H-4.8Z",  # bar
    "M-4.8-3L-3-4.8L0-1.8L3-4.8L4.8-3L1.8 0L4.8 3L3 4.8L0 1.8L-3 4.8L-4.8 3L-1.8 0Z",  # cross
)


@dataclass(frozen=True, slots=True)
class VariantStyle:
    """How one variant is drawn."""

    name: str
    tone: str  # a class of the style sheet
    dash: str
    marker: str  # path around the origin
    open: bool = False  # the marker's outline alone


def variant_styles(names: Iterable[str]) -> dict[str, VariantStyle]:
    """In the order given, the baseline first. After 8 the markers are open, and dashes meet other markers."""
    return {
        name: VariantStyle(
            name,
            f"tone-{index % len(TONES)}",
            DASHES[(index + index // len(MARKERS)) % len(DASHES)],
            MARKERS[index % len(MARKERS)],
            open=index // len(MARKERS) % 2 == 1,
        )
        for index, name in enumerate(names)
    }


def tones_css() -> str:
    """The classes of the colours, for light and dark ground."""
    return "\n".join(
        f".tone-{index} {{ color: light-dark({light}, {dark}); }}" for index, (light, dark) in enumerate(TONES)
    )


def sample(style: VariantStyle) -> Markup:
    """The piece of line with a marker that stands in a legend."""
    return tag(
        "svg",
        tag("path", d="M1 7H39", class_="line", stroke_dasharray=style.dash or None),
        tag("path", d=style.marker, transform="translate(20 7)", class_="marker open" if style.open else "marker"),
        class_=f"sample {style.tone}",
        viewBox="0 0 40 14",
        width=40,
        height=14,
        aria_hidden="true",
    )


def legend(shown: Iterable[VariantStyle]) -> Markup:
    lines = [tag("li", sample(style), tag("span", style.name), data_series=style.name) for style in shown]
    return tag("ul", *lines, class_="legend")
