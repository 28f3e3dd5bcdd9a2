"""Names are found in arrays exactly as a dictionary would find them."""

from __future__ import annotations

import json
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.placement.board import ScoreBoard
from joulie.extender.rows import UNKNOWN_ROW, Names, RowTable
from joulie.model.snapshot import Node
from tests.extender.harness import made

NAMES = st.text("ab-.0", min_size=1, max_size=20)


def board_of(names: list[str]) -> ScoreBoard:
    board = made({}).state.board
    for name in names:
        board.put_node(name, Node(name, {}))
    return board


def found(table: RowTable, names: list[str]) -> list[int]:
    block = Names.read(msgspec.json.encode(names))
    assert block is not None
    rows: list[int] = table.find(block).tolist()
    return rows


@given(known=st.lists(NAMES, min_size=1, unique=True), asked=st.lists(NAMES, min_size=1))
def test_as_a_dictionary_would_find_them(known: list[str], asked: list[str]) -> None:
    board = board_of(known)
    table = RowTable(board)
    assert found(table, known) == [board.index[name] for name in known]
    assert found(table, asked) == [board.index.get(name, UNKNOWN_ROW) for name in asked]


def test_nothing_is_known_of_an_empty_cluster() -> None:
    assert found(RowTable(board_of([])), ["a"]) == [UNKNOWN_ROW]


def test_names_that_differ_only_beyond_the_longest_known_one_are_not_confused() -> None:
    table = RowTable(board_of(["node-1", "node-12345678"]))
    assert found(table, ["node-12"]) == [UNKNOWN_ROW]
    assert found(table, ["node-123456789"]) == [UNKNOWN_ROW]
    assert found(table, ["node-12345678" * 30]) == [UNKNOWN_ROW]


def test_thousands_of_names_that_share_slots_are_all_found() -> None:
    chance = random.Random(1)
    names = [f"rack-{number % 40}-node-{number:05}" for number in range(8_000)]
    board = board_of(names)
    table = RowTable(board)
    asked = chance.sample(names, 5_000)
    assert found(table, asked) == [board.index[name] for name in asked]
    assert found(table, [*asked, "rack-1-node-99999"])[-1] == UNKNOWN_ROW


def test_a_table_follows_nodes_that_come_and_go() -> None:
    board = board_of(["a", "b"])
    table = RowTable(board)
    assert found(table, ["a", "b"]) == [0, 1]
    board.put_node("a", None)
    assert found(table, ["a"]) == [UNKNOWN_ROW]
    board.put_node("a-much-longer-name-than-before", Node("a-much-longer-name-than-before", {}))
    assert found(table, ["b", "a-much-longer-name-than-before"]) == [1, 0]


@given(asked=st.lists(st.tuples(NAMES, st.booleans()), min_size=1), words=st.integers(1, 4))
def test_names_are_read_where_they_stand(asked: list[tuple[str, bool]], words: int) -> None:
    names = [name for name, _ in asked]
    block = Names.read(msgspec.json.encode(names))
    assert block is not None
    assert [block.at(place).decode() for place in range(len(block))] == names
    cut = [name.encode()[: 8 * words].ljust(8 * words, b"\0") for name in names]
    assert [row.tobytes() for row in block.words(words)] == cut
    chosen = [wanted for _, wanted in asked]
    if any(chosen):
        expected = msgspec.json.encode([name for name, wanted in asked if wanted])
        assert block.those(np.array(chosen)) == expected


@pytest.mark.parametrize(
    "listed",
    [
        *("[]", "null", "7", '"a"', '{"a":"b"}', "[1]", '["a", "b"]', '["a" ,"b"]', '[ "a"]', '["a" ]', '["a",1,"b"]'),
        *('["a",["b"]]', '["a",["b"],"c"]', '[["a"],"b"]', '["a",{"b":"c"},"d"]', '["a",null,"b"]'),
        *(r'["a\"b"]', r'["a\",\"b"]', r'["\u0061"]', '["ä"]'),
    ],
)
def test_what_is_written_in_another_way_is_left_to_a_decoder(listed: str) -> None:
    json.loads(listed)
    assert Names.read(listed.encode()) is None
