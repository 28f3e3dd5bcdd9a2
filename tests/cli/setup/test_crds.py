"""`joulie crds`: what kubectl applies, in one stream or one file each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from joulie.cli.setup import crds
from joulie.cluster.crds import definitions
from joulie.errors import InputError
from tests.support.cli_runner import invoke


def test_crds_prints_what_kubectl_apply_takes() -> None:
    assert list(yaml.safe_load_all(invoke(crds.command).stdout)) == definitions.crds()


def test_crds_as_json_are_one_list() -> None:
    printed = json.loads(invoke(crds.command, "-o", "json").stdout)
    assert (printed["apiVersion"], printed["kind"]) == ("v1", "List")
    assert printed["items"] == definitions.crds()


@pytest.mark.parametrize(("form", "read"), [("yaml", yaml.safe_load), ("json", json.loads)])
def test_crds_go_to_one_file_each_in_a_folder(tmp_path: Path, form: str, read: Any) -> None:
    result = invoke(crds.command, "-o", form, "--dir", str(tmp_path / "new" / "folder"))
    assert result.stdout == ""
    for crd in definitions.crds():
        file = tmp_path / "new" / "folder" / f"{crd['metadata']['name']}.{form}"
        assert read(file.read_text()) == crd
        assert str(file) in result.stderr


def test_crds_into_something_that_is_no_folder_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot be written: "):
        invoke(crds.command, "--dir", str(tmp_path / "file"))
