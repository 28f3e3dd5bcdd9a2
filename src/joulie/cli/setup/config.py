"""`joulie config`: every setting with its value, default and meaning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from joulie.cli.options import prints_result
from joulie.errors import SettingError, without_credentials
from joulie.settings import COMPONENTS, DecisionSettings, describe, load

if TYPE_CHECKING:
    from joulie.cli.output import Output


@click.command("config")
@click.argument("component", required=False, type=click.Choice(list(COMPONENTS)))
@prints_result
def command(component: str | None, out: Output) -> None:
    """Show every setting: its value in this environment, its default and its meaning.

    Settings are environment variables. COMPONENT limits the list to what one program reads; plan and twin read the
    operator's, score reads the extender's. An invalid value exits with code 2 and one line that names the variable,
    the value and what is allowed, just as the program itself would at its start.

    \b
    Examples:
      joulie config                               all components
      joulie config operator                      the operator's only
      CPU_ECO_CAP_PCT_OF_MAX=140 joulie config    is this allowed?
      joulie config -o json | jq '.[] | select(.set)'
    """
    components = [component] if component else list(COMPONENTS)
    for name in components:
        _check(name, os.environ)
    rows = [row for name in components for row in _rows(name, os.environ)]
    if out.for_people:
        _print(components, rows, out)
    else:
        out.document(rows)


def _check(component: str, env: Mapping[str, str]) -> None:
    settings: object = load(COMPONENTS[component], env)
    decision = getattr(settings, "decision", None)
    if isinstance(decision, DecisionSettings):
        _check_plugins(decision, env)


def _check_plugins(decision: DecisionSettings, env: Mapping[str, str]) -> None:
    """Checks names that depend on installed plug-ins; looked up only if set."""
    from joulie import plugins

    for variable, value, known in (
        ("POLICY_TYPE", decision.plan.policy_type, plugins.policy_names),
        ("COOLING_MODEL", decision.twin.cooling_model, plugins.cooling_names),
    ):
        if env.get(variable) and value not in (names := known()):
            raise SettingError(variable, value, f"one of {', '.join(names)}")


def _rows(component: str, env: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "component": component,
            "variable": setting.variable,
            "value": without_credentials(setting.value),
            "default": setting.default,
            "allowed": setting.allowed,
            "meaning": setting.meaning,
            "set": setting.is_set,
        }
        for setting in describe(COMPONENTS[component], env)
    ]


def _print(components: list[str], rows: list[dict[str, Any]], out: Output) -> None:
    from rich.text import Text

    from joulie.cli.tables import bare_table

    console = out.console()
    for component in components:
        table = bare_table(component)
        table.add_column("")
        table.add_column("variable", no_wrap=True)
        table.add_column("value", overflow="fold", ratio=2)
        table.add_column("meaning", ratio=3)
        for row in rows:
            if row["component"] != component:
                continue
            value, default = row["value"] or ("''" if row["set"] else "–"), row["default"] or "–"
            if row["set"]:
                shown = Text.assemble((value, "bold"), (f" (default {default})", "dim"))
            else:
                shown = Text(value, style="dim")
            table.add_row("●" if row["set"] else "", row["variable"], shown, row["meaning"])
        console.print(table)
        console.print()
    console.print("● set in the environment; all others have their default", style="dim")
