"""Tables for people: columns as wide as they need, and one last text column that wraps into the remaining width.

rich handles the terminal and the colours. Its own Table takes seconds for thousands of rows, hence this layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from joulie.cli.style import QUIET, STRONG
from joulie.errors import one_line

Cell = str | tuple[str, str]  # text, or text and style
GAP = "  "
INDENT = "    "
# If less width than this remains, the note moves to a line of its own.
MIN_NOTE_WIDTH = 30


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading; `right` aligns numbers, `optional` columns are dropped on a narrow terminal, the last first."""

    heading: str
    right: bool = False
    optional: bool = False


@dataclass(slots=True)
class TextTable:
    """Rows of cells, each with a note: the one column that may be long."""

    columns: Sequence[TableColumn]
    note: str = ""  # heading of the notes; empty if there are none
    rows: list[tuple[list[Cell], str]] = field(default_factory=list)

    def add(self, cells: Iterable[Cell], note: str = "") -> None:
        self.rows.append(([_clean(cell) for cell in cells], one_line(note)))

    def print(self, console: Console) -> None:
        for line in self.lines(console.width):
            console.print(line, soft_wrap=True)

    def lines(self, width: int) -> Iterator[Text]:
        """The table as lines that fit the width, as far as text can be wrapped and columns dropped."""
        widths = [
            max([cell_len(column.heading), *(cell_len(_text(cells[index])) for cells, _ in self.rows)])
            for index, column in enumerate(self.columns)
        ]
        shown = self._shown(widths, width)
        used = sum(widths[index] + len(GAP) for index in shown)
        longest = max((cell_len(note) for _, note in self.rows), default=0)
        inline = width - used >= min(MIN_NOTE_WIDTH, longest)
        heading: list[Cell] = [(column.heading, STRONG) for column in self.columns]
        yield self._line(heading, widths, shown, self.note if inline and longest else "", STRONG)
        for cells, note in self.rows:
            if inline:
                first, *others = fold(note, max(width - used, MIN_NOTE_WIDTH))
                yield self._line(cells, widths, shown, first)
                yield from (Text(" " * used + other) for other in others)
            else:
                yield self._line(cells, widths, shown, "")
                for part in fold(note, max(width - len(INDENT), MIN_NOTE_WIDTH)) if note else ():
                    yield Text(INDENT + part, style=QUIET)

    def _shown(self, widths: Sequence[int], width: int) -> list[int]:
        """The indexes of the columns to show: all, or without optional ones until the rest fits."""
        shown = list(range(len(self.columns)))
        for index in reversed([index for index, column in enumerate(self.columns) if column.optional]):
            if sum(widths[index] + len(GAP) for index in shown) - len(GAP) <= width:
                break
            shown.remove(index)
        return shown

    def _line(
        self, cells: Sequence[Cell], widths: Sequence[int], shown: Sequence[int], note: str, note_style: str = ""
    ) -> Text:
        line = Text()
        for index in shown:
            cell, right = cells[index], self.columns[index].right
            padding = " " * (widths[index] - cell_len(_text(cell)))
            line.append(padding if right else "")
            line.append(_text(cell), cell[1] if isinstance(cell, tuple) else None)
            line.append(GAP if right else padding + GAP)
        line.append(note, note_style or None)
        line.rstrip()
        return line


def bare_table(title: str) -> Table:
    """A table of rich's, for short lists of long texts: without lines, so that a row can be copied."""
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most this width, broken between words; always at least one line."""
    if cell_len(text) <= width:
        return [text]
    from textwrap import wrap

    return wrap(text, width, break_on_hyphens=False) or [""]


def _text(cell: Cell) -> str:
    return cell[0] if isinstance(cell, tuple) else cell


def _clean(cell: Cell) -> Cell:
    return (one_line(cell[0]), cell[1]) if isinstance(cell, tuple) else one_line(cell)
