"""A promise with its measured value, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Figure(NamedTuple):
    """One promise: a ratio (or a count), and the most it may be."""

    what: str
    yardstick: str
    ratio: float
    limit: float
    detail: str

    @property
    def kept(self) -> bool:
        return self.ratio <= self.limit


def print_figures(console: Console, title: str, figures: Sequence[Figure]) -> bool:
    """The table; whether all promises are kept."""
    table = Table(title=title)
    for heading in ("what", "against", "ratio", "limit", ""):
        table.add_column(heading, justify="right" if heading in ("ratio", "limit") else "left")
    for figure in figures:
        mark = "ok" if figure.kept else "[bold red]too much[/]"
        table.add_row(
            figure.what, figure.yardstick, f"{figure.ratio:.3f}", f"{figure.limit:.3g}", f"{mark}  {figure.detail}"
        )
    console.print(table)
    return all(figure.kept for figure in figures)
