"""Where results go: JSON or YAML for programs, a console for people, and warnings on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from joulie.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["table", "json", "yaml"]

MAX_WARNINGS = 20
# Output to a file or a pipe is not wrapped: one line per node suits grep.
UNWRAPPED = 100_000


@dataclass(frozen=True, slots=True)
class Output:
    """The output format chosen with -o and --no-color."""

    form: Format
    no_color: bool = False

    @property
    def for_people(self) -> bool:
        return self.form == "table"

    def document(self, value: Any) -> None:
        """Prints exactly one JSON or YAML document to standard output; numbers are not rounded."""
        if self.form == "yaml":
            click.echo(_yaml(msgspec.to_builtins(value)), nl=False)
        else:
            click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))

    def tell(self, line: str) -> None:
        """Prints a sentence for people; next to a document it goes to standard error."""
        click.echo(one_line(line) if self.for_people else f"joulie: {one_line(line)}", err=not self.for_people)

    def console(self) -> Console:
        """A rich console on standard output, with colours only where the terminal supports them."""
        import os
        import sys

        from rich.console import Console

        width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else UNWRAPPED
        return Console(no_color=self.no_color or None, highlight=False, markup=False, emoji=False, width=width)


def warn(lines: Sequence[str]) -> None:
    """Prints warnings to standard error; beyond a limit they are only counted."""
    for line in lines[:MAX_WARNINGS]:
        click.echo(f"joulie: warning: {one_line(line)}", err=True)
    if len(lines) > MAX_WARNINGS:
        click.echo(f"joulie: warning: … and {len(lines) - MAX_WARNINGS} more like these", err=True)


def _yaml(value: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
