"""What holds for every backend of the table, whatever it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from joulie.agent.enforcement.actuator import owner_of
from joulie.devices.backends import HOST_BACKENDS, open_host
from joulie.devices.host import Host
from joulie.devices.interface import Capper, DeviceError
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.devices.enforcing import find, put, run

ROOT = Path(__file__).resolve().parents[2]


def bare_machine(folder: Path) -> Host:
    return Host(SysFs(folder), DvfsSettings())


def test_the_journal_can_tell_all_backends_apart(tmp_path: Path) -> None:
    owners = [owner_of(capper) for capper in open_host(bare_machine(tmp_path))]
    assert len(set(owners)) == len(owners) == len(HOST_BACKENDS)


@pytest.mark.parametrize("open_backend", HOST_BACKENDS, ids=lambda opener: opener.__name__)
def test_without_its_device_a_backend_says_so_and_raises_nothing_else(
    open_backend: Callable[[Host], Capper], tmp_path: Path
) -> None:
    capper = open_backend(bare_machine(tmp_path))
    found = run(capper.discover())
    if found.present:
        pytest.skip("the machine that runs the tests has this device")
    assert (found.kind, found.backend, found.count) == (capper.kind, capper.name, 0)
    assert found.no_control
    assert found.no_telemetry
    with pytest.raises(DeviceError):
        run(capper.knobs())
    assert run(capper.power_w()) is None
    run(capper.close())
    assert list(tmp_path.iterdir()) == []


def test_the_example_for_contributors_caps_a_board_and_lets_it_go(tmp_path: Path) -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("**A device backend.**")[2]
    module: dict[str, Any] = {}
    exec(section.partition("```python\n")[2].partition("```")[0], module)
    board = tmp_path / module["FOLDER"] / "board-0"
    board.mkdir(parents=True)
    for name, value_mw in {"limit_mw": 300_000, "max_mw": 350_000, "power_mw": 123_000}.items():
        (board / name).write_text(f"{value_mw}\n")
    capper: Capper = module["open_acme"](bare_machine(tmp_path))
    found = find(capper)
    put(capper, capper.settings(200.0, found))
    assert (board / "limit_mw").read_text() == "200000\n"
    assert run(capper.power_w()) == 123.0
    put(capper, capper.restoring(found))
    assert (board / "limit_mw").read_text() == "300000\n"
