"""The drawings stand alone, can be read in light and dark and by those who do not see them, and draw what is true."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from joulie.overview.colours import FAULT, STATE_COLOURS
from joulie.plant.sweeps import SWEEPS
from tests.docs_pages.blocks import ROOT, pages

DRAWINGS = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
each_drawing = pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.name)


@each_drawing
def test_a_drawing_names_no_other_host_and_says_in_words_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    words = {element.tag.rpartition("}")[2]: element.text or "" for element in root[:2]}
    assert len(words["title"]) > 5
    assert len(words["desc"]) > 50
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|@import|url\((?!#)", text)


@each_drawing
def test_a_drawing_has_colours_for_light_and_dark(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    for state, colour in {**STATE_COLOURS, "fault": FAULT}.items():
        assert f".{state} {{ fill: {colour}; }}" in text


def test_every_image_is_there_and_described() -> None:
    found = [(path, *image) for path in pages() for image in _IMAGE.findall(path.read_text(encoding="utf-8"))]
    assert {DRAWINGS[0].name, DRAWINGS[-1].name} <= {Path(target).name for _, _, target in found}
    for path, words, target in found:
        assert len(words) > 20, f"{path}: {target} is not described"
        assert (path.parent / target).is_file(), f"{path}: {target}"


def test_the_curve_under_a_cap_is_the_measured_one() -> None:
    """Circles of the drawing, read back by its scales: 60 % of cap are 440 wide, 1.4 times are 220 high."""
    text = (ROOT / "docs/pictures/cap.svg").read_text()
    sweep = SWEEPS["V100"]
    for colour, values in (("performance", sweep.slowdown), ("eco", sweep.energy)):
        circles = re.findall(rf'<circle class="{colour}" cx="([\d.]+)" cy="([\d.]+)"', text)
        drawn = {1 - (float(x) - 70) / 440 * 0.6: 0.6 + (270 - float(y)) / 220 * 1.4 for x, y in circles}
        assert sorted(drawn) == pytest.approx(sweep.shares, abs=0.002)
        assert [drawn[cap] for cap in sorted(drawn)] == pytest.approx(values, abs=0.006)
