"""Caps without a journal, journals that were planted, and what a device holds instead of what was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from joulie.agent.budget.sessions import Sessions
from joulie.agent.outcome import ReportedCap
from joulie.agent.restore.cap_lease import Refreshes
from joulie.agent.restore.journal import journal_path
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.interface import Knob, NotSupportedError, Value
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import BOOT, NODE, Held, entries_on_disk, gpus, rapl, target
from tests.devices.enforcing import Clock
from tests.devices.fake_capper import FakeCapper
from tests.devices.sysfs_trees import build

ECO = target(cpu_w=240)


def _killed_while_capped(tmp_path: Path) -> FakeCapper:
    device = rapl()
    assert Held(tmp_path / "before", [device]).enforce(ECO).cpu.held_w == 240
    assert set(device.values.values()) == {120.0}
    return device


@pytest.mark.parametrize("wanted", [ECO, target(cpu_w=300), target(cpu_pct=100), None])
def test_with_another_state_dir_after_a_kill_the_cap_is_not_taken_for_what_was_found(
    tmp_path: Path, wanted: Any
) -> None:
    device = _killed_while_capped(tmp_path)
    after = Held(tmp_path / "after", [device])
    after.control.consider(ReportedCap(cap_w=240), None)
    if wanted is not None:
        enforced = after.enforce(wanted)
        assert enforced.cpu.result == "applied"
        assert [notice.reason for notice in enforced.notices] == ["CapWithoutJournal"]
    assert after.restore().left == ()
    assert set(device.values.values()) == {200.0}
    assert entries_on_disk(tmp_path / "after") == {}


@pytest.mark.parametrize("claim", [None, ReportedCap(), ReportedCap(cap_w=300), ReportedCap(throttle_pct=40)])
def test_a_limit_of_the_machines_owner_stays_what_was_found(tmp_path: Path, claim: ReportedCap | None) -> None:
    device = FakeCapper("cpu", "watts", name="rapl", found=120.0)
    held = Held(tmp_path, [device])
    held.control.consider(claim, None)
    held.enforce(target(cpu_w=200))
    assert set(device.values.values()) == {100.0}
    assert held.restore().left == ()
    assert set(device.values.values()) == {120.0}


def test_where_the_maximum_is_not_known_either_it_refuses_and_says_the_next_step(tmp_path: Path) -> None:
    class NoMaximum(FakeCapper):
        def unlimited(self, knob: Knob) -> Value:
            raise NotSupportedError("nothing reports it")

    device = NoMaximum("cpu", "watts", name="rapl", found=120.0)
    held = Held(tmp_path, [device])
    held.control.consider(ReportedCap(cap_w=240), None)
    told = held.enforce(target(cpu_w=200)).cpu
    assert told.result == "blocked"
    assert "STATE_DIR" in told.message
    assert "STATE_DIR" in held.restore().left[0]  # nor does it end as if all were well
    assert set(device.values.values()) == {120.0}


def test_below_the_hardwares_minimum_what_the_device_holds_is_said(tmp_path: Path) -> None:
    held = Held(tmp_path, [rapl(), gpus()])
    enforced = held.enforce(target(cpu_w=60, gpu_w=50))
    assert (enforced.cpu.cap_w, enforced.cpu.held_w) == (60, 100)
    assert enforced.cpu.message == "100 W, the nearest to 60 W that the hardware takes, for all packages together"
    assert (enforced.gpu.cap_w, enforced.gpu.held_w) == (50, 100)
    assert "100 W, the nearest to 50 W" in enforced.gpu.message


def _plant(state_dir: Path, *entries: dict[str, Any]) -> None:
    state_dir.mkdir()
    whole = [{"backend": "cpu:rapl:watts", "wanted": 1, **entry} for entry in entries]
    contents = {"version": 1, "bootId": BOOT, "node": NODE, "entries": whole}
    journal_path(state_dir).write_text(json.dumps(contents))


ZONE = "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"


@pytest.mark.parametrize("backend", ["cpu:rapl:watts", "cpu:dvfs:throttle_pct", ""])
@pytest.mark.parametrize(
    ("device", "attribute"),
    [
        ("/sys/kernel", "secret"),
        (ZONE, "../../../../../kernel/secret"),
        (f"{ZONE}/../../../../../kernel", "secret"),
        ("/sys/link", "secret"),
        (ZONE, "name"),
        ("/sys/class/powercap/intel-rapl:0", "constraint_0_power_limit_uw"),  # a link: not the device's own name
    ],
)
def test_a_planted_journal_writes_only_what_the_backends_themselves_name(
    tmp_path: Path, device: str, attribute: str, backend: str
) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    (tree.sys / "kernel").mkdir(exist_ok=True)
    secret = tree.sys / "kernel" / "secret"
    secret.write_text("7\n")
    (tree.sys / "link").symlink_to("kernel")
    before = {path: path.read_bytes() for path in tree.sys.rglob("*") if path.is_file()}
    _plant(tmp_path / "state", {"device": device, "attribute": attribute, "found": 4242, "backend": backend})
    sysfs = SysFs(tree.sys)
    held = Held(tmp_path / "state", [Rapl(sysfs, Clock()), Cpufreq(sysfs, DvfsSettings())])
    assert len(held.restore().left) == 1
    assert {path: path.read_bytes() for path in tree.sys.rglob("*") if path.is_file()} == before
    assert list(entries_on_disk(tmp_path / "state")) == [(device, attribute)]


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_link_that_was_planted_beside_the_journal_is_not_written_through(tmp_path: Path, link: str) -> None:
    """The agent is root: it would write its journal into any file that a link leads to."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    state = tmp_path / "state"
    state.mkdir()
    for name in ("restore.json.new", "budget.json.new", "session.json.new"):
        if link == "hard":
            (state / name).hardlink_to(precious)
        else:
            (state / name).symlink_to(precious)
    held = Held(state, [rapl()])
    assert held.enforce(ECO).cpu.held_w == 240
    assert entries_on_disk(state)
    Sessions(state / "session.json")
    seen = Refreshes(state / "lease.json", BOOT, 600, 0.0)
    (state / "lease.json.new").symlink_to(precious)
    seen.age_s(NODE, "one", 1.0)
    seen.save(1e6)
    assert (state / "lease.json").exists()
    assert precious.read_text() == "precious"
    assert precious.stat().st_mode & 0o044, "nor is its mode changed"


@pytest.mark.parametrize("planted", ["pipe", "endless", "folder", "link"])
def test_a_journal_that_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path, planted: str) -> None:
    state, device = tmp_path / "state", rapl()
    state.mkdir()
    path = journal_path(state)
    if planted == "pipe":
        os.mkfifo(path)
    elif planted == "folder":
        path.mkdir()
    else:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text('{"version": 1, "bootId": "", "node": "", "entries": []}')
        path.symlink_to("/dev/zero" if planted == "endless" else elsewhere)
    held = Held(state, [device])
    enforced = held.enforce(ECO)
    assert enforced.cpu.result == "blocked"
    assert "cannot be read" in enforced.cpu.message
    assert set(device.values.values()) == {200.0}, "without a journal no cap is set"


@pytest.mark.parametrize("found", [1, -1, 10**15, 3.0e6])
def test_a_planted_value_out_of_the_hardwares_range_is_not_written(tmp_path: Path, found: float) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    sysfs = SysFs(tree.sys)
    held = Held(tmp_path / "state", [Rapl(sysfs, Clock())])
    held.enforce(target(cpu_w=200))
    path = journal_path(tmp_path / "state")
    contents = json.loads(path.read_bytes())
    limit = next(entry for entry in contents["entries"] if entry["attribute"] == "constraint_0_power_limit_uw")
    limit["found"] = found
    path.write_text(json.dumps(contents))
    held.restart()
    (left,) = held.restore().left
    assert limit["device"] in left
    assert int(tree.text(f"{limit['device'].removeprefix('/sys/')}/constraint_0_power_limit_uw")) == 100_000_000
