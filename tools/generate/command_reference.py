"""The reference page of the command line, generated from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import click

from joulie.cli.commands import root

_INTRO = """\
# Command line

<!-- Generated from src/joulie/cli; after a change run: make generate -->

`joulie` is also installed as `kubectl-joulie`, so `kubectl joulie plan …` works too. Results go to standard output,
everything else to standard error.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | failed |
| 2 | invalid usage, setting or input; one line names file, object and field |
| 130 | interrupted |
"""


def cli_reference() -> str:
    """Every command with its help, exactly as the terminal shows it."""
    return "\n".join([_INTRO, *_sections(click.Context(root, info_name="joulie", **root.context_settings))])


def _sections(context: click.Context) -> Iterator[str]:
    heading = "##" if context.parent is None or context.parent.parent is None else "###"
    yield f"{heading} {context.command_path}\n\n```text\n{_help(context)}\n```\n"
    if not isinstance(context.command, click.Group):
        return
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if command is not None:
            yield from _sections(click.Context(command, info_name=name, parent=context, **command.context_settings))


def _help(context: click.Context) -> str:
    """At a fixed width, so that the page does not depend on the terminal that made it."""
    formatter = click.HelpFormatter(width=88)
    command = copy(context.command)
    vars(command)["_help_option"] = None  # click caches it from the first caller, which may use other names
    command.format_help(context, formatter)
    return "\n".join(line.rstrip() for line in formatter.getvalue().rstrip().splitlines())
