"""What the first pages claim in numbers is what comes out."""

from __future__ import annotations

import re
from statistics import mean

import pytest

from tests.docs_pages.blocks import ROOT
from tests.support.cli_runner import joulie


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_demos_day_saves_what_the_page_says_and_slows_the_slowest_pods(page: str) -> None:
    ((least, most),) = re.findall(r"([\d.]+) to ([\d.]+) % of the energy", (ROOT / page).read_text(encoding="utf-8"))
    days = joulie("demo", "replay", "--seed", "1", "--scene", "day", "--seeds", "10", "-o", "json").document
    assert all(float(least) - 0.05 <= day["savedPct"] <= float(most) for day in days)
    slowdowns = [mean(day[way]["slowdownP99"] for day in days) for way in ("withJoulie", "withoutJoulie")]
    assert slowdowns[0] > slowdowns[1]
