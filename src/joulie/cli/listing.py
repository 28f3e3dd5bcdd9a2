"""Tables of things that are known beforehand: settings, models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def bare_table(title: str) -> Table:
    """A table without lines, so that a row can be copied."""
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
