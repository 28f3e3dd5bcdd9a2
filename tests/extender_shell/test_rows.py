"""Names are found in arrays exactly as a dictionary would find them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from joulie.control.board import ScoreBoard
from joulie.extender.rows import RowTable
from joulie.model.snapshot import Node
from tests.extender_shell.asking import made

NAMES = st.text("ab-.0", min_size=1, max_size=20)


def board_of(names: list[str]) -> ScoreBoard:
    board = made({}).state.board
    for name in names:
        board.put_node(name, Node(name, {}))
    return board


def found(table: RowTable, names: list[str]) -> list[int] | None:
    rows = table.find([name.encode() for name in names])
    return None if rows is None else rows.tolist()


@given(known=st.lists(NAMES, min_size=1, unique=True), asked=st.lists(NAMES, min_size=1))
def test_as_a_dictionary_would_find_them(known: list[str], asked: list[str]) -> None:
    board = board_of(known)
    table = RowTable(board)
    assert found(table, known) == [board.index[name] for name in known]
    wanted = [board.index.get(name) for name in asked]
    assert found(table, asked) == (None if None in wanted else wanted)


def test_nothing_is_known_of_an_empty_cluster() -> None:
    assert found(RowTable(board_of([])), ["a"]) is None


def test_names_that_differ_only_beyond_the_longest_known_one_are_not_confused() -> None:
    table = RowTable(board_of(["node-1", "node-12345678"]))
    assert found(table, ["node-12"]) is None
    assert found(table, ["node-123456789"]) is None
    assert found(table, ["node-12345678" * 30]) is None


def test_thousands_of_names_that_share_slots_are_all_found() -> None:
    chance = random.Random(1)
    names = [f"rack-{number % 40}-node-{number:05}" for number in range(8_000)]
    board = board_of(names)
    table = RowTable(board)
    asked = chance.sample(names, 5_000)
    assert found(table, asked) == [board.index[name] for name in asked]
    assert found(table, [*asked, "rack-1-node-99999"]) is None


def test_a_table_follows_nodes_that_come_and_go() -> None:
    board = board_of(["a", "b"])
    table = RowTable(board)
    assert found(table, ["a", "b"]) == [0, 1]
    board.put_node("a", None)
    assert found(table, ["a"]) is None
    board.put_node("a-much-longer-name-than-before", Node("a-much-longer-name-than-before", {}))
    assert found(table, ["b", "a-much-longer-name-than-before"]) == [1, 0]
