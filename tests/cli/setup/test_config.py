"""`joulie config`: every setting with value, default and meaning."""

from __future__ import annotations

import json

import pytest
import yaml

from joulie.cli.setup import config
from joulie.errors import SettingError
from joulie.settings import COMPONENTS, describe
from tests.support.cli_runner import invoke


@pytest.mark.parametrize("component", list(COMPONENTS))
def test_config_lists_every_setting_of_a_component(component: str) -> None:
    printed = json.loads(invoke(config.command, component, "-o", "json").stdout)
    assert [row["variable"] for row in printed] == [s.variable for s in describe(COMPONENTS[component], {})]
    assert {row["component"] for row in printed} == {component}
    table = invoke(config.command, component).stdout
    for row in printed:
        assert row["variable"] in table


def test_config_says_what_is_set_and_what_the_default_was() -> None:
    env = {"CPU_ECO_CAP_PCT_OF_MAX": "45", "RECONCILE_INTERVAL": ""}
    rows = {
        row["variable"]: row for row in yaml.safe_load(invoke(config.command, "operator", "-o", "yaml", env=env).stdout)
    }
    eco = rows["CPU_ECO_CAP_PCT_OF_MAX"]
    assert (eco["value"], eco["default"], eco["set"]) == ("45", "60", True)
    assert eco["meaning"]
    assert eco["allowed"]
    interval = rows["RECONCILE_INTERVAL"]
    assert (interval["value"], interval["set"]) == ("1m", False)

    lines = invoke(config.command, "operator", env=env).stdout.splitlines()
    (line,) = (line for line in lines if "CPU_ECO_CAP_PCT_OF_MAX" in line)
    assert line.startswith("●")
    assert "45 (default 60)" in line
    (line,) = (line for line in lines if "RECONCILE_INTERVAL" in line)
    assert "●" not in line


def test_config_without_a_component_lists_all() -> None:
    printed = json.loads(invoke(config.command, "-o", "json").stdout)
    assert [row["component"] for row in printed] == sorted(
        (row["component"] for row in printed), key=list(COMPONENTS).index
    )
    assert {row["component"] for row in printed} == set(COMPONENTS)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CPU_ECO_CAP_PCT_OF_MAX", "140"), ("RECONCILE_INTERVAL", "1d"), ("POLICY_TYPE", "x"), ("COOLING_MODEL", "ice")],
)
def test_config_stops_at_a_value_that_cannot_be_used(variable: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"^{variable}='{value}' cannot be used: allowed is ") as raised:
        invoke(config.command, "operator", env={variable: value})
    assert raised.value.exit_code == 2


def test_config_of_one_component_does_not_mind_the_others() -> None:
    assert invoke(config.command, "agent", env={"EXTENDER_SCORE_MAX": "no"}).exit_code == 0
    with pytest.raises(SettingError):
        invoke(config.command, env={"EXTENDER_SCORE_MAX": "no"})
