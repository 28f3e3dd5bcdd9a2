"""A feed that is cut by 30 % and comes back, replayed: limits hold at every step, and the same seed gives the bits."""

from __future__ import annotations

import msgspec
import pytest

from joulie.demo.replay.feed_cut import FeedCutComparison, compared_cut
from joulie.demo.replay.feed_schedule import FeedSchedule
from joulie.demo.replay.replay import STEP_S, Replay
from joulie.demo.scenario.day import COMPARED, FEED_CUT
from joulie.demo.scenario.feeds import BACK_S, CLUSTER_W, CUT_FEED, CUT_S, CUT_W, FEED_W, FEEDS
from joulie.demo.settings import replay_settings
from joulie.demo.summary import feed_cut_lines
from tests.support.cli_runner import joulie

OPERATOR, EXTENDER = replay_settings({}, None)
ROUNDING_W = 1.0


@pytest.fixture(scope="module")
def comparison() -> FeedCutComparison:
    return compared_cut(7, OPERATOR, EXTENDER)


def test_at_every_step_caps_and_draw_stay_within_each_limit_before_in_and_after_the_cut(
    comparison: FeedCutComparison,
) -> None:
    schedule = FeedSchedule(FEED_CUT, with_cut=True)
    replay = Replay(7, FEED_CUT, joulie=True, operator=OPERATOR, extender=EXTENDER, feeds=schedule)
    meter = replay.meter
    assert meter is not None
    seen_cut = 0
    while replay._has_work:
        replay._turn()
        day_s = FEED_CUT.begins_s + replay._elapsed_s - STEP_S  # when the step began
        is_cut = CUT_S <= day_s < BACK_S
        seen_cut += is_cut
        for feed in FEEDS:
            limit_w = CUT_W if is_cut and feed == CUT_FEED else FEED_W
            assert meter.allowed_w(feed) <= limit_w + ROUNDING_W, (feed, day_s)
            assert meter.wall_w(feed) <= limit_w, (feed, day_s)
        assert sum(map(meter.wall_w, FEEDS)) <= CLUSTER_W
        assert sum(map(meter.allowed_w, FEEDS)) <= CLUSTER_W + ROUNDING_W
    assert seen_cut == (BACK_S - CUT_S) / STEP_S
    assert replay.run() == comparison.with_cut  # once more, and the same


def test_the_cut_is_in_force_within_a_step_and_watts_are_shared_again(comparison: FeedCutComparison) -> None:
    cut = comparison.cut
    assert (cut.limit_before_w, cut.limit_w, cut.lasted_s) == (FEED_W, CUT_W, BACK_S - CUT_S)
    assert cut.limit_w == pytest.approx(0.7 * cut.limit_before_w)
    assert (cut.is_over, cut.in_force_s, cut.shared_again_s, cut.above_s) == (True, STEP_S, STEP_S, 0.0)
    assert cut.worst_margin_w is not None
    assert cut.worst_margin_w == pytest.approx(comparison.worst_margin_w[CUT_FEED])
    assert min(comparison.worst_margin_w.values()) > 0


def test_without_joulie_the_same_work_draws_more_than_the_cut_allows(comparison: FeedCutComparison) -> None:
    bare = comparison.without_joulie
    assert bare.highest_w > CUT_W
    assert bare.above_s > 0
    assert (bare.in_force_s, bare.worst_margin_w, bare.shared_again_s) == (None, None, None)


def test_the_cut_costs_speed_while_it_lasts_and_all_work_is_still_done(comparison: FeedCutComparison) -> None:
    cut, slow, plain = comparison.cut, comparison.with_cut, comparison.without_cut
    assert cut.speed_before is not None
    assert cut.speed_during is not None
    assert 0.5 < cut.speed_during < cut.speed_before - 0.05
    assert slow.slowdown_p50 > plain.slowdown_p50
    assert (slow.jobs, slow.core_hours, slow.gpu_hours) == (plain.jobs, plain.core_hours, plain.gpu_hours)


def test_the_command_prints_the_same_bits_and_the_same_numbers_in_words(comparison: FeedCutComparison) -> None:
    outcome = joulie("demo", "replay", "--scene", "feed-cut", "-o", "json")
    assert (outcome.code, outcome.err) == (0, "")
    assert msgspec.convert(outcome.document, FeedCutComparison) == comparison
    said = "\n".join(feed_cut_lines(comparison))
    assert "feed a: limit cut by 30 %, from 60.0 kW to 42.0 kW, for 300 s" in said
    assert "limits    held at every step of 5 s" in said
    assert f"at worst {(comparison.cut.worst_margin_w or 0) / 1000:.1f} kW below the limit" in said
    assert f"its pods ran at {comparison.cut.speed_during:.2f} × their uncapped speed" in said


def test_a_limit_that_did_not_hold_is_said_so(comparison: FeedCutComparison) -> None:
    broken = msgspec.structs.replace(
        comparison,
        worst_margin_w={**comparison.worst_margin_w, CUT_FEED: -1200.0},
        cut=msgspec.structs.replace(comparison.cut, worst_margin_w=-1200.0, above_s=40.0, in_force_s=None),
    )
    said = "\n".join(feed_cut_lines(broken))
    assert "did NOT hold" in said
    assert "1.2 kW ABOVE the limit" in said
    assert "above 42.0 kW for 40 simulated s" in said
    assert "in force  on every device never" in said


def test_energy_is_compared_for_the_other_scenes_alone() -> None:
    assert FEED_CUT not in COMPARED
    assert "--scene feed-cut compares" in joulie("demo", "replay", "--scene", "feed-cut", "--with").complaint
