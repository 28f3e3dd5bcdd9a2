"""Whatever was capped is put back as it was found, or stays in the journal and is said."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from joulie.agent.outcome import CapLimits
from joulie.devices.interface import (
    DeviceError,
    DeviceFaultError,
    NoPermissionError,
)
from tests.agent.held_nodes import Held, dvfs, entries_on_disk, gpus, rapl, target
from tests.devices.fake_capper import FakeCapper


class TestRestore:
    def test_puts_everything_back_and_says_so_once(self, tmp_path: Path) -> None:
        cpu, gpu = rapl(), gpus()
        held = Held(tmp_path, [cpu, gpu])
        held.enforce(target(cpu_w=240, gpu_w=250))
        enforced = held.restore()
        assert set(cpu.values.values()) | set(gpu.values.values()) == {200, 400}
        assert (enforced.cpu.result, enforced.gpu.result, enforced.left) == ("none", "none", ())
        assert [notice.reason for notice in enforced.notices] == ["CapsRestored"]
        assert not (tmp_path / "restore.json").exists()
        assert held.restore().notices == ()

    def test_works_in_a_new_process(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        held.restart()
        assert held.restore().left == ()
        assert list(device.values.values()) == [200, 200]

    def test_a_vanished_device_stays_in_the_journal_and_is_said_the_others_are_restored(self, tmp_path: Path) -> None:
        device = rapl()
        first, second = device.values
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        device.gone.add(first)
        assert f"{first.device} is gone and stays in the journal" in held.enforce(target(cpu_w=200)).cpu.message
        enforced = held.restore()
        assert enforced.left == (f"{first.device} power_limit_w is not restored: {first.device} is not there any more",)
        assert [(notice.reason, notice.event) for notice in enforced.notices] == [("RestoreIncomplete", True)]
        assert device.values[second] == 200
        assert list(entries_on_disk(tmp_path)) == [tuple(first)]
        assert held.restore().notices == ()  # said once
        device.gone.clear()
        assert held.restore().left == ()
        assert device.values[first] == 200

    @pytest.mark.parametrize("fault", [NoPermissionError("not allowed"), DeviceFaultError("no answer")])
    def test_what_cannot_be_written_back_stays(self, tmp_path: Path, fault: DeviceError) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        device.on_write = dict.fromkeys(device.values, fault)
        assert len(held.restore().left) == 2
        device.on_write, device.deaf = {}, set(device.values)
        assert len(held.restore().left) == 2
        assert len(entries_on_disk(tmp_path)) == 2
        device.deaf = set()
        assert held.restore().left == ()

    def test_a_value_that_reads_as_nonsense_is_written_all_the_same(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        device.values = dict.fromkeys(device.values, math.nan)
        assert held.restore().left == ()
        assert list(device.values.values()) == [200, 200]

    def test_a_backend_that_breaks_its_promises_does_not_keep_the_others(self, tmp_path: Path) -> None:
        cpu, gpu = rapl(), gpus()
        held = Held(tmp_path, [cpu, gpu])
        held.enforce(target(cpu_w=240, gpu_w=250))
        knob = next(iter(cpu.values))
        cpu.on_read[knob] = ZeroDivisionError("a bug")  # type: ignore[assignment]
        [left] = held.restore().left
        assert left == f"{knob.device} {knob.attribute} is not restored: ZeroDivisionError: a bug"
        assert list(gpu.values.values()) == [400, 400]

    def test_a_backend_that_is_routed_no_more_is_said(self, tmp_path: Path) -> None:
        Held(tmp_path, [rapl()]).enforce(target(cpu_w=240))
        rerouted = Held(tmp_path, [FakeCapper("cpu", "watts", name="http")])
        assert {entry.backend for entry in rerouted.control.foreign} == {"cpu:rapl:watts"}
        assert all("cpu:rapl:watts is not routed here" in line for line in rerouted.restore().left)

    def test_after_a_reboot_nothing_is_put_back(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        device.values = dict.fromkeys(device.values, 180.0)  # as the firmware sets it now
        device.writes.clear()
        held.restart(boot_id="boot-2")
        assert held.restore().left == ()
        assert device.writes == []
        held.enforce(target(cpu_w=240))
        assert {entry["found"] for entry in entries_on_disk(tmp_path).values()} == {180}

    def test_the_throttle_goes_too(self, tmp_path: Path) -> None:
        throttle = dvfs()
        held = Held(tmp_path, [throttle], limits=CapLimits())
        held.enforce(target(cpu_pct=60))
        held.restore()
        assert (set(throttle.values.values()), held.control.cpu_mode) == ({0}, "none")


class TestHold:
    def test_goes_on_with_the_last_target(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        device.values = dict.fromkeys(device.values, 200.0)
        assert held.hold().corrections == 1
        assert list(device.values.values()) == [120, 120]

    def test_touches_nothing_before_the_first_target_or_after_a_restore(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        held.restart()
        assert (held.hold().cpu.result, list(device.values.values())) == ("none", [120, 120])
        held.restore()
        held.hold()
        assert list(device.values.values()) == [200, 200]


class TestSimulateOnly:
    def test_writes_to_no_device_and_no_journal_and_does_not_claim_a_cap(self, tmp_path: Path) -> None:
        cpu, gpu = rapl(), gpus()
        held = Held(tmp_path, [cpu, gpu], simulate_only=True)
        enforced = held.enforce(target(cpu_w=240, gpu_w=250))
        assert (enforced.cpu.result, enforced.gpu.result) == ("blocked", "blocked")
        assert enforced.cpu.message == "SIMULATE_ONLY, nothing is written: 240 W for all packages together"
        held.restore()
        assert cpu.writes + gpu.writes == []
        assert list(tmp_path.iterdir()) == []
