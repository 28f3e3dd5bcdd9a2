"""At no instant may the devices of a group draw more than a limit that was kept, whatever happens in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from joulie.control.budget import planning
from joulie.control.budget.counting import CountedCaps, Order, Seen
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.memory import Member
from tests.control.budget.machine import BudgetMachine

THOROUGH = settings(max_examples=1_000, stateful_step_count=60, deadline=None)
QUICK = settings(max_examples=60, stateful_step_count=50, deadline=None)
WRONG = settings(
    max_examples=1_000, stateful_step_count=60, deadline=None, phases=[Phase.generate], report_multiple_bugs=False
)


def test_no_limit_is_exceeded_at_any_instant() -> None:
    run_state_machine_as_test(BudgetMachine, settings=QUICK)


@pytest.mark.slow
def test_no_limit_is_exceeded_in_a_thousand_histories() -> None:
    run_state_machine_as_test(BudgetMachine, settings=THOROUGH)


def _without_waiting(
    uid: str, order: Order | None, seen: Seen | None, boot_id: str, top: Pair, _: float
) -> CountedCaps:
    return CountedCaps(top if order is None or order.released else order.caps, "confirmed", "")


def _without_memory_of_orders(write: Callable[..., Any]) -> Callable[..., Any]:
    def written(member: Member, *others: Any) -> Any:
        return [replace(each, order=replace(each.order, at_most=each.order.caps)) for each in write(member, *others)]

    return written


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["no wait", "atMost forgotten", "raises at once", "stop restores", "answer forgotten"]
)
def test_the_machine_notices_when_a_rule_is_broken(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(BudgetMachine):
        def __init__(self) -> None:
            super().__init__()
            self.world.raises_at_once = fault == "raises at once"
            self.world.restores_on_stop = fault == "stop restores"

    if fault == "no wait":
        monkeypatch.setattr(planning, "counted", _without_waiting)
    if fault == "atMost forgotten":
        monkeypatch.setattr(planning, "_write", _without_memory_of_orders(planning._write))
    if fault == "answer forgotten":
        standing = planning._standing
        monkeypatch.setattr(
            planning, "_standing", lambda member, *others: standing(replace(member, in_flight=None), *others)
        )
    with pytest.raises(AssertionError, match="may draw"):
        run_state_machine_as_test(Broken, settings=WRONG)
