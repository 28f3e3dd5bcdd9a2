"""A click group that knows each command's name and one-line description, and imports a command only when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

COMPLETION_VARIABLE = "_JOULIE_COMPLETE"


class LazyCommand(NamedTuple):
    """A command that is not imported yet; its module defines it as `command`."""

    module: str
    section: str
    help: str


class LazyGroup(click.Group):
    """Builds help and completion from the table alone, without importing any command."""

    def __init__(self, *args: Any, table: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        listed = self.table.get(cmd_name)
        if listed is None:
            return None
        command: click.Command = import_module(listed.module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"no such command {args[0]!r}{self._nearest(args[0])}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            ctx.fail(f"missing subcommand: {' or '.join(self.table)}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands before the options: they are what people look for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Groups the commands by section, in the order of the table."""
        widest = max(len(name) for name in self.table)
        for section in dict.fromkeys(listed.section for listed in self.table.values()):
            rows = [(name.ljust(widest), item.help) for name, item in self.table.items() if item.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.table if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self.table[name].help) for name in names), *options]

    def _nearest(self, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.table, n=1)
        return f"; did you mean {close[0]!r}?" if close else "; the commands are " + ", ".join(self.table)
