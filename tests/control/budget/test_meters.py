"""Meters: above the limit everything is cut at once; a meter that is lost or absurd relaxes nothing and says so."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.budget.limits.meters import (
    MIN_SHARE,
    REPEATS_S,
    Meter,
    MeteredGroup,
    after_reading,
    meter_status,
    remembered,
)
from joulie.model.api import PowerBudget

GROUP = MeteredGroup(limit_w=10_000, spec_w=12_000, floor_w=4_000, is_enforced=True)
CUT = Meter(share=0.9)


def read(meter: Meter, shown_w: float | None, group: MeteredGroup = GROUP, now_s: float = 0.0) -> Meter:
    return after_reading(meter, shown_w, "no answer", group, now_s)


def test_above_99_per_cent_of_the_limit_everything_is_cut_so_that_95_result() -> None:
    assert read(Meter(), 9_890).share == 1.0
    assert read(Meter(), 10_400).share * 10_400 == pytest.approx(9_500)
    assert read(CUT, 9_500).share == 0.9
    assert 0.9 < read(CUT, 8_000).share < 1.0
    assert read(Meter(), 8_000).share == 1.0


@pytest.mark.parametrize("shown_w", [None, math.nan, math.inf, -math.inf, -5.0, 0.0, 12.0, 130_000.0])
def test_a_meter_that_is_lost_or_shows_what_cannot_be_relaxes_nothing_and_says_why(shown_w: float | None) -> None:
    after = read(CUT, shown_w)
    assert (after.share, after.shown_w) == (0.9, None)
    assert after.lost == "no answer" if shown_w is None else "cannot be what this group draws" in after.lost
    back = read(after, 9_500)
    assert (back.share, back.lost) == (0.9, "")


def test_one_sample_counts_once_however_often_it_is_read() -> None:
    first = read(Meter(), 10_400)
    assert read(first, 10_400, now_s=5.0) == first
    assert read(first, 10_400, now_s=REPEATS_S).share < first.share
    assert read(first, 10_401, now_s=5.0).share < first.share


def test_a_meter_that_stays_high_cuts_no_further_than_to_the_floors() -> None:
    meter = Meter()
    for turn in range(200):
        meter = read(meter, 50_000.0 + turn)
    assert meter.share == 0.4


def test_a_group_that_is_only_reported_keeps_its_limit() -> None:
    watched = MeteredGroup(10_000, 10_000, 0.0, is_enforced=False)
    assert read(CUT, 10_400, watched) == Meter(shown_w=10_400)


@given(st.lists(st.none() | st.floats(), max_size=30), st.floats(1, 1e6), st.floats(0, 1e6))
def test_whatever_a_meter_shows_it_never_raises_a_limit_nor_makes_it_nothing(
    shown: list[float | None], limit_w: float, floor_w: float
) -> None:
    meter, group = Meter(), MeteredGroup(limit_w, limit_w, floor_w, is_enforced=True)
    for turn, watts in enumerate(shown):
        before, meter = meter.share, read(meter, watts, group, 5.0 * turn)
        assert MIN_SHARE <= meter.share <= 1.0
        assert meter.share <= before * 1.02 or meter.share == min(1.0, floor_w / limit_w)


def test_a_new_leader_begins_with_what_the_status_says_and_only_where_there_is_a_meter() -> None:
    told = msgspec.to_builtins(meter_status(CUT))
    group = {"value": "r1", "nodes": 1, "limitWatts": 1, "allocatedWatts": 1, "floorWatts": 1, "state": "within"}
    parts: dict[str, Any] = {
        "metadata": {"name": "racks"},
        "spec": {"watts": 1, "meter": {"query": "x"}},
        "status": {"groups": [{**group, "meter": told}]},
    }
    assert dict(remembered(msgspec.convert(parts, PowerBudget))) == {"r1": CUT}
    del parts["spec"]["meter"]
    assert dict(remembered(msgspec.convert(parts, PowerBudget))) == {}
