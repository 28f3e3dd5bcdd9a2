"""`joulie catalogue`: limits, curves and sources of the known hardware."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from joulie.cli.inspect import catalogue
from joulie.errors import InputError
from tests.support.cli_runner import invoke


def test_catalogue_gives_limits_curve_evidence_and_source() -> None:
    printed = json.loads(invoke(catalogue.command, "-o", "json").stdout)
    cpu = next(cpu for cpu in printed["cpus"] if cpu["name"] == "EPYC 9654")
    assert (cpu["cores"], cpu["tdpW"], cpu["ctdpMinW"], cpu["ctdpMaxW"]) == (96, 360, 320, 400)
    assert cpu["nodeCurveW"] == [128, 257, 300, 340, 378, 410, 442, 498, 577, 697, 817]
    assert cpu["evidence"] == "measured"
    assert "SPECpower" in cpu["source"]
    gpu = next(gpu for gpu in printed["gpus"] if gpu["name"] == "H100 SXM")
    assert (gpu["minW"], gpu["maxW"]) == (200, 700)
    assert yaml.safe_load(invoke(catalogue.command, "-o", "yaml").stdout) == printed

    table = invoke(catalogue.command).stdout
    assert "128 ▁▂▃▃▄▄▄▅▆▇█ 817 W" in table
    assert "200–700 W" in table


def test_catalogue_shows_the_models_of_ones_own_file_first(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('[[gpu]]\nname = "X1 [beta]"\nvendor = "other"\nmax_w = 90\nevidence = "proxy"\nsource = "us"\n')
    env = {"HARDWARE_CATALOG_PATH": str(file)}
    assert json.loads(invoke(catalogue.command, "-o", "json", env=env).stdout)["gpus"][0]["name"] == "X1 [beta]"
    table = invoke(catalogue.command, env=env).stdout
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
        invoke(catalogue.command, env={"HARDWARE_CATALOG_PATH": str(file)})
    message = str(raised.value)
    assert str(file) in message
    assert complaint in message
    assert "\n" not in message
