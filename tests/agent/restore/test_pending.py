"""What Events say of caps that could not be removed stays true for those who read them."""

from __future__ import annotations

from joulie.agent.outcome import Notice
from joulie.agent.restore.pending import AGAIN_S, COMPLETE, INCOMPLETE, PendingRestore

LEFT = Notice(INCOMPLETE, "package-0 is not restored", "warning", event=True)


def test_it_is_said_again_before_the_event_is_forgotten_for_as_long_as_it_lasts() -> None:
    pending, told_at_s = PendingRestore(inherited=False), []
    pending.said(LEFT, 0.0)
    for now_s in range(20, 7200, 20):
        if notice := pending.due(float(now_s), left=True, is_empty=False):
            assert notice == LEFT
            pending.said(notice, float(now_s))
            told_at_s.append(now_s)
    assert told_at_s == [AGAIN_S, 2 * AGAIN_S, 3 * AGAIN_S]


def test_it_is_taken_back_once() -> None:
    pending = PendingRestore(inherited=False)
    assert pending.due(0.0, left=False, is_empty=True) is None
    pending.said(LEFT, 20.0)
    told = [pending.due(40.0 + tick, left=False, is_empty=False) for tick in range(3)]
    assert [notice and (notice.reason, notice.event) for notice in told] == [(COMPLETE, True), None, None]


def test_what_an_earlier_process_may_have_said_is_taken_back_when_its_journal_is_empty() -> None:
    pending = PendingRestore(inherited=True)
    assert pending.due(0.0, left=False, is_empty=False) is None  # it may be in use
    notice = pending.due(20.0, left=False, is_empty=True)
    assert notice is not None
    assert notice.reason == COMPLETE
    assert pending.due(40.0, left=False, is_empty=True) is None
