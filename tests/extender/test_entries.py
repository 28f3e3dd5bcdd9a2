"""Entries of equal length say of each node what a plain encoder would say."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joulie.extender.entries import Entries
from joulie.model.snapshot import Node
from tests.extender.harness import made

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def said(entries: Entries, rows: list[int], points: list[int]) -> list[dict[str, object]]:
    text = entries.of(np.array(rows, dtype=np.intp), np.array(points, dtype=np.int64))
    found: list[dict[str, object]] = json.loads(b"[%b]" % bytes(text[1:]))
    return found


@given(names=st.lists(NAMES, min_size=1, unique=True), score_max=st.integers(1, 100), data=st.data())
def test_as_an_encoder_would_say_it(names: list[str], score_max: int, data: st.DataObject) -> None:
    board = made({}).state.board
    for name in names:
        board.put_node(name, Node(name, {}))
    entries = Entries(board, score_max)
    for _ in range(3):  # longer names come later, and what was rendered before stays right
        asked = data.draw(st.lists(st.sampled_from(names)))
        points = data.draw(st.lists(st.integers(0, score_max), min_size=len(asked), max_size=len(asked)))
        wanted = [{"Host": name, "Score": worth} for name, worth in zip(asked, points, strict=True)]
        assert said(entries, [board.index[name] for name in asked], points) == wanted


def test_a_row_that_is_another_nodes_says_so() -> None:
    board = made({}).state.board
    entries = Entries(board, 100)
    board.put_node("old-and-long", Node("old-and-long", {}))
    assert said(entries, [0], [7]) == [{"Host": "old-and-long", "Score": 7}]
    board.put_node("old-and-long", None)
    board.put_node("new", Node("new", {}))
    assert said(entries, [0], [100]) == [{"Host": "new", "Score": 100}]
    assert entries.of_unknown([b"x", rb"y\""], 50) == rb',{"Host":"x","Score":50},{"Host":"y\"","Score":50}'
    assert entries.of_unknown([], 50) == b""


@given(names=st.lists(NAMES, min_size=1, unique=True), data=st.data())
def test_reasons_are_told_as_an_encoder_would_tell_them(names: list[str], data: st.DataObject) -> None:
    board = made({}).state.board
    for name in names:
        board.put_node(name, Node(name, {}))
    reasons = ["", 'it "drains"', "it is eco"]
    entries = Entries(board, 100, reasons)
    asked = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    why = data.draw(st.lists(st.integers(0, 2), min_size=len(asked), max_size=len(asked)))
    rows = np.array([board.index[name] for name in asked], np.intp)
    told = entries.reasons_of(rows, np.array(why, np.int8))
    assert json.loads(b"{%b}" % bytes(told[1:])) == {
        name: reasons[number] for name, number in zip(asked, why, strict=True)
    }
