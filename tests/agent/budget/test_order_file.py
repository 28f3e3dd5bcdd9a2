"""The kept order survives everything but a person; one that cannot be used is never taken for none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from joulie.agent.budget.order_file import NotKeptError, OrderFile, order_path
from joulie.agent.budget.sessions import Sessions
from joulie.control.budget.counting import Order, Pair
from joulie.control.budget.holding import Kept

ORDER = Order("uid-1", 7, Pair(120.0, 300.0), Pair(200.0, 400.0), Pair(100.0, 250.0), ("rack/r7",))
KEPT = Kept(ORDER, "2026-01-01T00:00:00Z")


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = order_path(tmp_path)
    OrderFile.open(path, "a").keep(KEPT)
    again = OrderFile.open(path, "a")
    assert (again.kept, again.unusable) == (KEPT, "")
    assert path.stat().st_mode & 0o777 == 0o600
    again.keep(None)
    assert not path.exists()
    assert OrderFile.open(path, "a").kept is None


def test_each_node_of_a_pool_has_its_own(tmp_path: Path) -> None:
    assert len({order_path(tmp_path), order_path(tmp_path, "a"), order_path(tmp_path, "b" * 253)}) == 3


def _contents(tmp_path: Path, **changes: object) -> str:
    path = order_path(tmp_path)
    OrderFile.open(path, "a").keep(KEPT)
    return json.dumps(json.loads(path.read_text()) | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"node": "another"},  # copied from another machine
        {"version": 2},
        {"order": {"order": -1, "caps": {}}},
        {"order": {"order": 7, "caps": {"cpuWattsPerPackage": -5}}},
        {"order": {"order": 7, "caps": {"cpuWattsPerPackage": "much"}}},
        {"order": {"order": 7, "caps": {}, "released": True}},
        {"order": None},
    ],
)
def test_a_planted_file_is_not_believed_and_not_taken_for_none(tmp_path: Path, changes: dict[str, object]) -> None:
    order_path(tmp_path).write_text(_contents(tmp_path, **changes))
    file = OrderFile.open(order_path(tmp_path), "a")
    assert file.kept is None
    assert str(order_path(tmp_path)) in file.unusable


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"{", b"[" * 100_000, b"\xff\xfe", b"null"])
def test_a_garbled_file_is_not_taken_for_none(tmp_path: Path, data: bytes) -> None:
    order_path(tmp_path).write_bytes(data)
    assert OrderFile.open(order_path(tmp_path), "a").unusable


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    file = OrderFile.open(order_path(tmp_path / "state"), "a")
    with pytest.raises(NotKeptError, match=r"budget\.json"):
        file.keep(KEPT)
    assert file.kept is None


def test_a_life_has_a_higher_number_than_all_before(tmp_path: Path) -> None:
    path = tmp_path / "state" / "session.json"
    assert [Sessions(path).number for _ in range(3)] == [1, 2, 3]
    Sessions(path).at_least(40)
    assert Sessions(path).number == 41
    path.write_text("garbage")
    assert Sessions(path).number == 1  # what the twin shows comes on top
    assert Sessions(path, writes=False).number == Sessions(path, writes=False).number == 2
    path.unlink()
    path.mkdir()
    assert Sessions(path).number == 1
