"""Caps end with the contact, the operator or the target that wanted them, each node in its turn."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from joulie.agent.restore.cap_lease import CapLease, Refreshes, Verdict
from joulie.agent.targets import CapTarget
from tests.agent.held_nodes import TICK_S, target

LEASE_S = 600.0
START_S = 5000.0


class Watched:
    """A node and its agent's clock."""

    def __init__(self, node: str = "node-1", action: str = "restore") -> None:
        self.lease = CapLease(node, lease_s=LEASE_S, action=action, interval_s=TICK_S, started_at_s=START_S)
        self.now_s = START_S
        self.contact_s: float | None = START_S

    def tick(
        self,
        wanted: CapTarget | None = None,
        *,
        contact: bool = True,
        twin_age_s: float | None = 1.0,
        after_s: float = TICK_S,
    ) -> Verdict:
        self.now_s += after_s
        if contact:
            self.contact_s = self.now_s
        return self.lease.judge(
            now_s=self.now_s, last_contact_s=self.contact_s, target=wanted, twin_age_s=twin_age_s if wanted else None
        )

    def until(self, act: str, wanted: CapTarget | None, *, contact: bool = True, ageing: bool = False) -> float:
        """How long, from now, until this verdict falls."""
        start_s = self.now_s
        for _ in range(200):
            age_s = 1.0 + self.now_s - start_s if ageing else 1.0
            if self.tick(wanted, contact=contact, twin_age_s=age_s).act == act:
                return self.now_s - start_s
        raise AssertionError(f"never {act}")


ECO = target(cpu_w=240)
NODES = [f"node-{number}" for number in range(200)]


def test_with_contact_and_a_fresh_twin_the_target_counts() -> None:
    watched = Watched()
    assert {watched.tick(ECO).act for _ in range(500)} == {"enforce"}


@pytest.mark.parametrize("how", ["contact", "operator"])
def test_no_node_is_restored_before_the_lease_ends_and_all_are_within_half_a_lease_after_it(how: str) -> None:
    let_go_s = []
    for node in NODES:
        watched = Watched(node)
        watched.tick(ECO)
        let_go_s.append(watched.until("restore", ECO, contact=how != "contact", ageing=how == "operator"))
    assert min(let_go_s) >= LEASE_S - 1
    assert max(let_go_s) <= 1.5 * LEASE_S + TICK_S
    assert max(Counter(let_go_s).values()) <= 3 * len(NODES) / (LEASE_S / 2 / TICK_S)  # no moment has its fill


def test_until_its_turn_the_last_target_is_held() -> None:
    watched = Watched()
    watched.tick(ECO)
    acts = [watched.tick(ECO, contact=False).act for _ in range(50)]
    assert [act for act, following in pairwise(acts) if act != following] == ["enforce", "hold"]
    assert acts[-1] == "restore"


@pytest.mark.parametrize("how", ["contact", "operator"])
def test_with_action_hold_the_last_target_stays_for_ever(how: str) -> None:
    watched = Watched(action="hold")
    watched.tick(ECO)
    acts = set()
    for tick in range(500):
        age_s = 1.0 + TICK_S * tick if how == "operator" else 1.0
        acts.add(watched.tick(ECO, contact=how != "contact", twin_age_s=age_s).act)
    assert acts == {"enforce", "hold"}


def test_a_live_pin_keeps_a_twin_that_is_not_refreshed() -> None:
    watched = Watched()
    assert watched.tick(replace(ECO, kept_by_pin=True), twin_age_s=1e6).act == "enforce"
    assert watched.tick(replace(ECO, origin="pin"), twin_age_s=1e6).act == "enforce"
    assert watched.tick(ECO, twin_age_s=1e6).act == "restore"


def test_but_not_the_contact() -> None:
    watched = Watched()
    watched.tick(replace(ECO, kept_by_pin=True))
    assert watched.until("restore", replace(ECO, kept_by_pin=True), contact=False) <= 1.5 * LEASE_S + TICK_S


def test_a_twin_of_unknown_age_counts() -> None:
    assert Watched().tick(ECO, twin_age_s=None).act == "enforce"


def test_a_refresh_counts_from_when_it_was_seen_whatever_restarts_in_between(tmp_path: Path) -> None:
    path = tmp_path / "state" / "refreshes.json"
    first = Refreshes(path, "boot", LEASE_S, START_S)
    assert first.age_s("a", "written once", START_S) == 0.0
    assert first.age_s("a", "written once", START_S + 500) == 500
    first.save(START_S + 500)
    restarted = first
    for again in range(3):
        restarted = Refreshes(path, "boot", LEASE_S, START_S + 600 + again)
        assert restarted.age_s("a", "written once", START_S + 600 + again) == 600 + again
        restarted.save(START_S + 600 + again)
    assert restarted.age_s("a", "written again", START_S + 700) == 0.0
    assert restarted.age_s("new", "written once", START_S + 700) == 0.0


def test_after_another_boot_the_age_that_was_reached_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "refreshes.json"
    first = Refreshes(path, "boot", LEASE_S, START_S)
    first.age_s("a", "written once", START_S)
    first.save(START_S + 400)
    rebooted = Refreshes(path, "another boot", LEASE_S, 30.0)
    assert rebooted.age_s("a", "written once", 30.0) == 400
    assert rebooted.age_s("a", "written once", 50.0) == 420


@pytest.mark.parametrize("content", [b"", b"nonsense", b"{}", b"[1]", b"\xff"])
def test_a_memory_that_cannot_be_used_counts_from_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "refreshes.json"
    path.write_bytes(content)
    assert Refreshes(path, "boot", LEASE_S, START_S).age_s("a", "x", START_S) == 0.0
    (tmp_path / "file").touch()
    unwritable = Refreshes(tmp_path / "file" / "refreshes.json", "boot", LEASE_S, START_S)
    unwritable.age_s("a", "x", START_S)
    unwritable.save(START_S)


def test_a_missing_target_counts_from_the_second_tick_on_and_then_in_the_nodes_turn() -> None:
    let_go_s = []
    for node in NODES:
        watched = Watched(node)
        watched.tick(ECO)
        assert watched.tick(None).act == "hold"
        watched.tick(ECO)
        let_go_s.append(watched.until("restore", None))
    assert min(let_go_s) >= 2 * TICK_S
    assert max(let_go_s) <= LEASE_S / 2 + 2 * TICK_S
    assert len(set(let_go_s)) > 10


def test_a_missing_target_ends_a_cap_even_with_action_hold() -> None:
    watched = Watched(action="hold")
    watched.tick(ECO)
    assert watched.until("restore", None) <= LEASE_S / 2 + 2 * TICK_S


def test_after_a_start_without_any_target_what_was_found_returns_after_three_intervals() -> None:
    watched = Watched()
    assert [watched.tick(None).act for _ in range(5)] == ["hold", "hold", "restore", "restore", "restore"]


def test_after_a_start_without_any_contact_it_returns_after_three_intervals_in_the_nodes_turn() -> None:
    let_go_s = []
    for node in NODES:
        watched = Watched(node)
        watched.contact_s = None
        let_go_s.append(watched.until("restore", None, contact=False))
    assert min(let_go_s) >= 3 * TICK_S
    assert max(let_go_s) <= 3 * TICK_S + LEASE_S / 2 + TICK_S


def test_after_a_start_the_current_target_counts_at_once() -> None:
    assert Watched().tick(ECO).act == "enforce"


def test_letting_go_and_coming_back_are_each_said_once() -> None:
    watched = Watched()
    watched.tick(ECO)
    verdicts = [watched.tick(ECO, contact=False) for _ in range(60)] + [watched.tick(ECO) for _ in range(5)]
    said = [(verdict.notice.reason, verdict.notice.event) for verdict in verdicts if verdict.notice]
    assert said == [("CapLeaseEnded", True), ("CapLeaseResumed", True)]
    ended, resumed = [verdict.notice.message for verdict in verdicts if verdict.notice]
    assert ended.startswith("no contact with the API server for 1")
    assert "the target counts again after" in resumed


@given(
    st.text(max_size=20),
    st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, 2000), st.floats(1, 100)), max_size=60),
)
def test_whatever_happens_a_cap_that_is_held_has_an_owner_that_spoke_within_one_and_a_half_leases(
    node: str, ticks: list[tuple[bool, bool, float, float]]
) -> None:
    watched = Watched(node)
    heard_s = START_S
    for contact, has_target, twin_age_s, after_s in ticks:
        verdict = watched.tick(ECO if has_target else None, contact=contact, twin_age_s=twin_age_s, after_s=after_s)
        if contact and has_target and twin_age_s <= LEASE_S:
            heard_s = watched.now_s
            assert verdict.act == "enforce"
        if verdict.act == "enforce":
            assert has_target
            assert twin_age_s <= LEASE_S
        if watched.now_s - (watched.contact_s or START_S) > 1.5 * LEASE_S:
            assert verdict.act == "restore"
    assert heard_s >= START_S
