"""`joulie crds`, `config` and `catalogue`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from joulie.cli import catalogue, config, crds
from joulie.cluster import crds as definitions
from joulie.errors import InputError, SettingError
from joulie.settings import COMPONENTS, describe


def run(module: Any, *arguments: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(module.command, list(arguments), env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_crds_prints_what_kubectl_apply_takes() -> None:
    assert list(yaml.safe_load_all(run(crds).stdout)) == definitions.crds()


def test_crds_as_json_are_one_list() -> None:
    printed = json.loads(run(crds, "-o", "json").stdout)
    assert (printed["apiVersion"], printed["kind"]) == ("v1", "List")
    assert printed["items"] == definitions.crds()


@pytest.mark.parametrize(("form", "read"), [("yaml", yaml.safe_load), ("json", json.loads)])
def test_crds_go_to_one_file_each_in_a_folder(tmp_path: Path, form: str, read: Any) -> None:
    result = run(crds, "-o", form, "--dir", str(tmp_path / "new" / "folder"))
    assert result.stdout == ""
    for crd in definitions.crds():
        file = tmp_path / "new" / "folder" / f"{crd['metadata']['name']}.{form}"
        assert read(file.read_text()) == crd
        assert str(file) in result.stderr


def test_crds_into_something_that_is_no_folder_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot be written: "):
        run(crds, "--dir", str(tmp_path / "file"))


@pytest.mark.parametrize("component", list(COMPONENTS))
def test_config_lists_every_setting_of_a_component(component: str) -> None:
    printed = json.loads(run(config, component, "-o", "json").stdout)
    assert [row["variable"] for row in printed] == [s.variable for s in describe(COMPONENTS[component], {})]
    assert {row["component"] for row in printed} == {component}
    table = run(config, component).stdout
    for row in printed:
        assert row["variable"] in table


def test_config_says_what_is_set_and_what_the_default_was() -> None:
    env = {"CPU_ECO_CAP_PCT_OF_MAX": "45", "RECONCILE_INTERVAL": ""}
    rows = {row["variable"]: row for row in yaml.safe_load(run(config, "operator", "-o", "yaml", env=env).stdout)}
    eco = rows["CPU_ECO_CAP_PCT_OF_MAX"]
    assert (eco["value"], eco["default"], eco["set"]) == ("45", "60", True)
    assert eco["meaning"]
    assert eco["allowed"]
    interval = rows["RECONCILE_INTERVAL"]
    assert (interval["value"], interval["set"]) == ("1m", False)

    lines = run(config, "operator", env=env).stdout.splitlines()
    (line,) = (line for line in lines if "CPU_ECO_CAP_PCT_OF_MAX" in line)
    assert line.startswith("●")
    assert "45 (default 60)" in line
    (line,) = (line for line in lines if "RECONCILE_INTERVAL" in line)
    assert "●" not in line


def test_config_without_a_component_lists_all() -> None:
    printed = json.loads(run(config, "-o", "json").stdout)
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
        run(config, "operator", env={variable: value})
    assert raised.value.exit_code == 2


def test_config_of_one_component_does_not_mind_the_others() -> None:
    assert run(config, "agent", env={"EXTENDER_SCORE_MAX": "no"}).exit_code == 0
    with pytest.raises(SettingError):
        run(config, env={"EXTENDER_SCORE_MAX": "no"})


def test_catalogue_gives_limits_curve_evidence_and_source() -> None:
    printed = json.loads(run(catalogue, "-o", "json").stdout)
    cpu = next(cpu for cpu in printed["cpus"] if cpu["name"] == "EPYC 9654")
    assert (cpu["cores"], cpu["tdpW"], cpu["ctdpMinW"], cpu["ctdpMaxW"]) == (96, 360, 320, 400)
    assert cpu["nodeCurveW"] == [128, 257, 300, 340, 378, 410, 442, 498, 577, 697, 817]
    assert cpu["evidence"] == "measured"
    assert "SPECpower" in cpu["source"]
    gpu = next(gpu for gpu in printed["gpus"] if gpu["name"] == "H100 SXM")
    assert (gpu["minW"], gpu["maxW"]) == (350, 700)
    assert yaml.safe_load(run(catalogue, "-o", "yaml").stdout) == printed

    table = run(catalogue).stdout
    assert "128 ▁▂▃▃▄▄▄▅▆▇█ 817 W" in table
    assert "350–700 W" in table


def test_catalogue_shows_the_models_of_ones_own_file_first(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('[[gpu]]\nname = "X1 [beta]"\nvendor = "other"\nmax_w = 90\nevidence = "proxy"\nsource = "us"\n')
    env = {"HARDWARE_CATALOG_PATH": str(file)}
    assert json.loads(run(catalogue, "-o", "json", env=env).stdout)["gpus"][0]["name"] == "X1 [beta]"
    table = run(catalogue, env=env).stdout
    assert "X1 [beta]" in table
    assert "up to 90 W" in table


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        (b"[[gpu", "cannot be read: "),
        (b"\xff", "cannot be read: "),
        (b"[[gpu]]", "name"),
    ],
)
def test_a_catalogue_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "ours.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as raised:
        run(catalogue, env={"HARDWARE_CATALOG_PATH": str(file)})
    message = str(raised.value)
    assert str(file) in message
    assert complaint in message
    assert "\n" not in message
