"""Where results go: JSON or YAML for programs, a console for people, warnings to standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import msgspec

from joulie.cli.lines import one_line
from joulie.cli.options import Format

if TYPE_CHECKING:
    from rich.console import Console

MOST_WARNINGS = 20
# Output that goes to a file or a pipe is not folded: one line a node suits grep.
UNFOLDED = 100_000


@dataclass(frozen=True, slots=True)
class Output:
    """What the person asked for with -o and --no-color."""

    form: Format
    no_color: bool = False

    @property
    def for_people(self) -> bool:
        return self.form == "table"

    def document(self, value: Any) -> None:
        """Exactly one JSON or YAML document on standard output; numbers are not rounded."""
        if self.form == "yaml":
            click.echo(_yaml(msgspec.to_builtins(value)), nl=False)
        else:
            click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))

    def tell(self, line: str) -> None:
        """A sentence for people; beside a document it goes to standard error."""
        click.echo(one_line(line) if self.for_people else f"joulie: {one_line(line)}", err=not self.for_people)

    def console(self) -> Console:
        """A rich console on standard output: colours only where a terminal wants them."""
        import os
        import sys

        from rich.console import Console

        width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else UNFOLDED
        return Console(no_color=self.no_color or None, highlight=False, markup=False, emoji=False, width=width)


def warn(lines: Sequence[str]) -> None:
    """Things that a person should know, on standard error; a flood is counted instead of shown."""
    for line in lines[:MOST_WARNINGS]:
        click.echo(f"joulie: warning: {one_line(line)}", err=True)
    if len(lines) > MOST_WARNINGS:
        click.echo(f"joulie: warning: … and {len(lines) - MOST_WARNINGS} more like these", err=True)


def _yaml(value: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
