"""Tables for people: aligned, folded, and narrow where the terminal is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from joulie.cli.style import kilowatts, percent, plain, plural, signed, state_cell, watts
from joulie.cli.tables import TableColumn, TextTable


def printed(table: TextTable, width: int) -> list[str]:
    return [line.plain for line in table.lines(width)]


def a_table() -> TextTable:
    table = TextTable(
        [TableColumn("name"), TableColumn("W", right=True), TableColumn("extra", optional=True)], note="why"
    )
    table.add(["a", "5", "x"], "because of this and that and some more that is rather long")
    table.add([("node-b", "bold"), "1,200", "y"])
    return table


def test_numbers_stand_under_each_other_and_lines_end_without_blanks() -> None:
    assert printed(a_table(), 200) == [
        "name        W  extra  why",
        "a           5  x      because of this and that and some more that is rather long",
        "node-b  1,200  y",
    ]


def test_a_long_note_is_folded_under_itself() -> None:
    assert printed(a_table(), 55)[1:4] == [
        "a           5  x      because of this and that and some",
        "                      more that is rather long",
        "node-b  1,200  y",
    ]


def test_a_note_without_room_gets_its_own_line() -> None:
    assert printed(a_table(), 40) == [
        "name        W  extra",
        "a           5  x",
        "    because of this and that and some",
        "    more that is rather long",
        "node-b  1,200  y",
    ]


def test_optional_columns_give_way_in_a_narrow_terminal() -> None:
    assert printed(a_table(), 16)[0] == "name        W"


def test_a_table_without_rows_is_its_heading() -> None:
    assert printed(TextTable([TableColumn("a"), TableColumn("b")]), 80) == ["a  b"]


def test_wide_characters_are_counted_as_they_are_shown() -> None:
    table = TextTable([TableColumn("n"), TableColumn("x")])
    table.add(["表", "1"])
    assert printed(table, 80) == ["n   x", "表  1"]


@given(
    st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12), st.text(max_size=80)), max_size=8),
    st.integers(20, 250),
)
def test_no_text_breaks_a_row(rows: list[tuple[str, str, str]], width: int) -> None:
    table = TextTable([TableColumn("a"), TableColumn("b", right=True)], note="note")
    for first, second, note in rows:
        table.add([first, second], note)
    lines = printed(table, width)
    assert all(line.isprintable() for line in lines)
    assert len(lines) > len(rows)


def test_numbers_have_units_and_no_digits_that_say_nothing() -> None:
    assert (watts(1204.4), watts(0)) == ("1,204 W", "0 W")
    assert (kilowatts(41_234), kilowatts(999)) == ("41.2 kW", "999 W")
    assert (percent(60.0), percent(57.142857)) == ("60 %", "57.1 %")
    assert (plain(-0.04), plain(1_000_000.0), plain(0.125, 3)) == ("0", "1,000,000", "0.125")
    assert (signed(-0.0), signed(11.84), signed(-5.85)) == ("+0.0", "+11.8", "-5.8")
    assert (plural(1, "node"), plural(0, "node"), plural(2, "node")) == ("1 node", "0 nodes", "2 nodes")


def test_each_state_has_its_own_colour_and_its_word() -> None:
    cells = [state_cell(state) for state in ("performance", "eco", "draining", "unknown", "something else")]
    assert len({colour for _, colour in cells}) == 5
    assert cells[1][0] == "■ eco"
