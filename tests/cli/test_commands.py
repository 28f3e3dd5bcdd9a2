"""The tables of commands: what is listed exists, and the example for contributors works."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import click
import pytest

from joulie.cli import commands
from joulie.cli.demo import command as demo
from joulie.cli.explain import group as explain
from joulie.cli.lab import group as lab
from joulie.cli.serve import agent
from tests.support.cli_runner import DEMO, NOW, joulie

ROOT = Path(__file__).parents[2]
TABLES = (commands.TABLE, demo.TABLE, explain.TABLE, lab.TABLE, agent.TABLE)


@pytest.mark.parametrize("module", [entry.module for table in TABLES for entry in table.values()])
def test_every_command_in_a_table_exists_and_says_what_it_does(module: str) -> None:
    command = import_module(module).command
    assert isinstance(command, click.Command)
    assert command.help


def test_the_example_for_contributors_is_a_command() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("**A command.**")[2]
    module = ModuleType("joulie.cli.inspect.racks")
    exec(section.partition("```python\n")[2].partition("```")[0], vars(module))
    table = dict(vars(commands))
    exec(f"TABLE = {{{section.partition('its line: `')[2].partition('`')[0]}}}", table)
    with patch.dict(commands.TABLE, table["TABLE"]), patch.dict(sys.modules, {module.__name__: module}):
        racks = joulie("racks", "-f", DEMO, *NOW, "-o", "json").document
        lines = joulie("racks", "-f", DEMO, *NOW).out.splitlines()
    assert [rack["powerW"] for rack in racks] == sorted((rack["powerW"] for rack in racks), reverse=True)
    assert [line.split()[0] for line in lines[1:]] == [rack["name"] for rack in racks]
