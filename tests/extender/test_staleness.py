"""A twin is fresh while refreshes are seen to come, whatever time the operator's clock puts on them."""

from __future__ import annotations

import pytest

from joulie.cluster.port import NODE_TWINS, Upserted
from joulie.control.placement.board import ScoreBoard
from joulie.extender.state import ExtenderState
from joulie.model.api import NodeTwin, NodeTwinStatus
from joulie.model.rfc3339 import format_time
from joulie.settings import ExtenderSettings, load
from tests.support.small_clusters import CATALOGUE, NOW, twin

THRESHOLD_S = 300.0


class Watching:
    """An extender's state and a clock that the test sets."""

    def __init__(self) -> None:
        settings = load(ExtenderSettings, {})
        self.now_s = NOW
        self.board = ScoreBoard(settings.score, settings.marginal, settings.hardware, CATALOGUE)
        self.state = ExtenderState(self.board, lambda *_: None, lambda: self.now_s)

    def tells(self, at_s: float | None) -> None:
        """The watch tells of the twin, written at this time of the operator's clock."""
        written = None if at_s is None else format_time(at_s)
        status = NodeTwinStatus(schedulable_class="eco", last_updated=written)
        self.state.take(NODE_TWINS, [Upserted("a", NodeTwin(twin("a").metadata, status=status), 1)])

    def is_fresh(self, after_s: float = 0.0) -> bool:
        self.now_s += after_s
        self.board.prepared(self.now_s)
        return bool(self.board.columns.fresh[0])


@pytest.mark.parametrize("skew_s", [0.0, 60.0, 3600.0, 86400.0 * 365])
def test_a_twin_from_the_future_is_fresh_only_as_long_as_any_other(skew_s: float) -> None:
    watching = Watching()
    watching.tells(NOW + skew_s)
    assert watching.is_fresh(THRESHOLD_S)
    assert not watching.is_fresh(1)
    watching.tells(NOW + skew_s)
    assert not watching.is_fresh(), "told again, but not refreshed"
    watching.tells(watching.now_s + skew_s)
    assert watching.is_fresh(THRESHOLD_S)
    assert not watching.is_fresh(1)
    assert watching.state.clock_ahead_s == pytest.approx(skew_s)


def test_an_operator_whose_clock_is_behind_keeps_its_twins_fresh_by_refreshing_them() -> None:
    watching = Watching()
    watching.tells(NOW - 3600)
    assert not watching.is_fresh(), "who has just begun to watch cannot tell it from an operator that died"
    watching.now_s += 120
    watching.tells(watching.now_s - 3600)
    assert watching.is_fresh(THRESHOLD_S)
    assert not watching.is_fresh(1)
    assert watching.state.clock_ahead_s == pytest.approx(-3600)


def test_another_operator_with_an_earlier_clock_is_believed_from_its_second_refresh_on() -> None:
    watching = Watching()
    watching.tells(NOW)
    watching.tells(NOW - 3600)
    assert not watching.is_fresh()
    watching.tells(NOW - 3600 + 120)
    assert watching.is_fresh()


def test_a_twin_that_does_not_say_when_is_stale() -> None:
    watching = Watching()
    watching.tells(NOW)
    watching.tells(None)
    assert not watching.is_fresh()
