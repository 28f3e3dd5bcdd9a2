"""Orders are followed, kept and confirmed; nothing older counts, and nothing but a newer order lifts a ceiling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from joulie.agent.budget.contact import TWIN_WATCH_S, BudgetContact
from joulie.agent.budget.node_budget import NodeBudget
from joulie.agent.budget.order_file import OrderFile, order_path
from joulie.agent.budget.sessions import Sessions
from joulie.control.budget.counting import Pair
from joulie.model.api import NodeTwin
from tests.agent.budget.orders import order, release, twin

HELD = Pair(100.0, 0.0)


def begun(state_dir: Path, **more: Any) -> NodeBudget:
    """A new process."""
    return NodeBudget(OrderFile.open(order_path(state_dir), "a"), Sessions(state_dir / "session.json"), **more)


def follow(budget: NodeBudget, told: NodeTwin | None) -> Pair | None:
    asyncio.run(budget.follow(told))
    return budget.ceiling(in_contact=True)


def test_without_any_order_there_is_no_ceiling_and_that_is_confirmed(tmp_path: Path) -> None:
    budget = begun(tmp_path)
    assert follow(budget, twin()) is None
    said = budget.confirmed(twin(), "boot-1", None)
    assert said is not None
    assert (said.twin_uid, said.order, said.boot_id, said.session, said.sequence, said.held) == (
        ("uid-1", 0, "boot-1", 1, 1, None)
    )


def test_an_order_is_on_disk_when_it_is_followed_and_silence_means_its_failsafe(tmp_path: Path) -> None:
    budget = begun(tmp_path)
    assert follow(budget, twin(order(3, 100, failsafe_w=80))) == Pair(100)
    assert budget.ceiling(in_contact=False) == Pair(80)
    assert OrderFile.open(order_path(tmp_path), "a").kept == budget.kept
    again = begun(tmp_path)
    assert (again.order, again.ceiling(in_contact=False)) == (3, Pair(80))
    assert follow(again, None) == Pair(100)  # a twin that is gone lifts nothing
    assert follow(again, twin()) == Pair(100)  # nor does one that says nothing


def test_an_older_order_is_not_followed_not_even_by_the_next_process(tmp_path: Path) -> None:
    follow(begun(tmp_path), twin(order(3, 100)))
    budget = begun(tmp_path)
    assert follow(budget, twin(order(2, 150))) == Pair(100)
    assert follow(budget, twin(order(3, 150))) == Pair(100)
    assert follow(budget, twin(release(2))) == Pair(100)
    assert follow(budget, twin(order(4, 150))) == Pair(150)
    assert follow(budget, twin(order(1, 90), "uid-2", "2026-01-02T00:00:00Z")) == Pair(90)  # a twin made anew
    assert follow(budget, twin(order(9, 150), "uid-1")) == Pair(90)


def test_a_release_lifts_the_ceiling_and_the_file_goes(tmp_path: Path) -> None:
    budget = begun(tmp_path)
    follow(budget, twin(order(3, 100)))
    assert follow(budget, twin(release(4))) is None
    assert not order_path(tmp_path).exists()
    said = budget.confirmed(twin(release(4)), "boot-1", None)
    assert said is not None
    assert (said.order, said.held) == (4, None)


def test_the_same_is_said_once_and_news_have_the_next_number(tmp_path: Path) -> None:
    budget = begun(tmp_path)
    follow(budget, told := twin(order(3, 100)))
    first = budget.confirmed(told, "boot-1", HELD)
    assert budget.confirmed(told, "boot-1", HELD) is first
    second = budget.confirmed(told, "boot-2", HELD)
    third = budget.confirmed(told, "boot-2", None)
    assert first is not None
    assert second is not None
    assert third is not None
    assert [first.sequence, second.sequence, third.sequence] == [1, 2, 3]
    assert third.held is None


def _shown(session: int, sequence: int) -> dict[str, Any]:
    said = {"twinUid": "uid-1", "order": 3, "bootId": "boot-1", "session": session, "sequence": sequence}
    return {"controlStatus": {"budget": said}}


def test_a_life_is_never_below_what_the_twin_shows_even_without_a_state_folder(tmp_path: Path) -> None:
    budget = begun(tmp_path / "lost")
    told = twin(order(3, 100), **_shown(5, 40))
    follow(budget, told)
    said = budget.confirmed(told, "boot-1", HELD)
    assert said is not None
    assert (said.session, said.sequence) == (6, 1)
    # What the twin shows now is its own.
    assert budget.confirmed(twin(order(3, 100), **_shown(6, 1)), "boot-1", HELD) is said
    after = budget.confirmed(twin(order(3, 100), **_shown(6, 9)), "boot-1", HELD)  # not its own
    assert after is not None
    assert (after.session, after.sequence) == (7, 1)
    assert begun(tmp_path / "lost").confirmed(None, "", None) is None  # no twin: nothing to say


def test_an_order_that_cannot_be_kept_lowers_but_is_neither_confirmed_nor_a_reason_to_raise(tmp_path: Path) -> None:
    state = tmp_path / "state"
    budget = begun(state)
    follow(budget, twin(order(3, 100)))
    state.rename(tmp_path / "away")
    state.write_text("a file where the folder should be")
    told = twin(order(4, 60))
    assert follow(budget, told) == Pair(60)
    said = budget.confirmed(told, "boot-1", Pair(60.0))
    assert said is not None
    assert said.order == 3
    assert follow(budget, twin(order(5, 150))) == Pair(100)
    assert [notice.reason for notice in budget.notices] == ["BudgetOrderNotKept"]
    state.unlink()
    assert follow(budget, twin(order(5, 150))) == Pair(150)
    assert begun(state).order == 5


def test_a_first_order_that_cannot_be_kept_is_held_and_not_confirmed(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    budget = begun(tmp_path / "state")
    told = twin(order(1, 100))
    assert follow(budget, told) == Pair(100)
    assert budget.holds
    said = budget.confirmed(told, "boot-1", None)
    assert said is not None
    assert (said.order, said.held) == (0, None)


def test_a_file_that_is_gone_is_written_again_while_its_order_is_known(tmp_path: Path) -> None:
    budget = begun(tmp_path)
    follow(budget, twin(order(3, 100)))
    order_path(tmp_path).unlink()
    follow(budget, None)
    assert begun(tmp_path).order == 3


def test_a_garbled_file_raises_nothing_until_an_order_is_seen(tmp_path: Path) -> None:
    for told, ceiling in ((twin(order(1, 100)), Pair(100)), (twin(release(2)), None)):
        order_path(tmp_path).write_text("garbage")
        budget = begun(tmp_path)
        assert [notice.reason for notice in budget.notices] == ["BudgetOrderLost"]
        for nothing in (None, twin()):
            assert follow(budget, nothing) == Pair(float("inf"), float("inf"))
            assert (budget.holds, budget.is_known) == (True, False)
        said = budget.confirmed(twin(), "boot-1", HELD)
        assert said is not None
        assert (said.order, said.held) == (0, None)
        assert follow(budget, told) == ceiling
        assert budget.is_known


def test_a_dry_run_keeps_nothing_and_touches_no_file(tmp_path: Path) -> None:
    follow(begun(tmp_path), twin(order(3, 100)))
    before = order_path(tmp_path).read_bytes()
    budget = begun(tmp_path, writes=False)
    assert follow(budget, twin(order(4, 150))) == Pair(150)
    assert order_path(tmp_path).read_bytes() == before


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.watch_age_s: float | None = 0.0

    def contact(self, lease_s: float = 60.0) -> BudgetContact:
        return BudgetContact(lease_s, lambda: self.watch_age_s, lambda: self.now_s)


def alive(contact: BudgetContact) -> bool:
    return contact.is_alive


def test_contact_begins_with_a_renewal_that_is_seen_and_ends_a_lease_after_the_last() -> None:
    clock = Clock()
    contact = clock.contact()
    assert alive(contact) is False
    contact.saw(b"1")  # it may be of an operator that is long dead
    contact.saw(b"1")
    assert (alive(contact), contact.renewal_age_s) == (False, float("inf"))
    contact.saw(b"2")
    clock.now_s += 59.0
    assert alive(contact) is True
    clock.now_s += 1.0
    assert alive(contact) is False
    contact.saw(b"2")
    assert alive(contact) is False
    contact.saw(b"3")
    assert alive(contact) is True


def test_a_lease_that_comes_up_after_everything_was_listed_is_a_sign_of_life() -> None:
    there, later = Clock().contact(), Clock().contact()
    there.saw(b"1")
    for contact in (there, later):
        contact.listed()
        assert alive(contact) is False
    there.saw(b"1")
    later.saw(b"1")
    assert (alive(there), alive(later)) == (False, True)


def test_a_lease_that_is_renewed_is_no_contact_while_the_watch_of_twins_is_dead() -> None:
    clock = Clock()
    contact = clock.contact()
    for number in range(20):
        contact.saw(b"%d" % number)
        clock.now_s += 15.0
    assert alive(contact) is True
    for age_s, is_alive in ((TWIN_WATCH_S - 1.0, True), (TWIN_WATCH_S, False), (None, False)):
        clock.watch_age_s = age_s
        assert alive(contact) is is_alive
