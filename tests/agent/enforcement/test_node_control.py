"""A target becomes caps: journal first, then the device, read back, and never outside the range."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.outcome import CapLimits
from joulie.devices.interface import (
    DeviceFaultError,
    Knob,
    NoPermissionError,
    Value,
)
from tests.agent.held_nodes import Held, dvfs, entries_on_disk, gpus, rapl, target
from tests.devices.fake_capper import FakeCapper


class TestCpu:
    def test_watts_are_applied_and_said(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device, dvfs()])
        enforced = held.enforce(target(cpu_w=240))
        assert (enforced.cpu.result, enforced.cpu.backend, enforced.cpu.cap_w) == ("applied", "rapl", 240)
        assert list(device.values.values()) == [120, 120]
        assert (enforced.wrote, held.control.cpu_mode) == (2, "rapl")
        assert enforced.gpu.result == "none"

    def test_watts_win_over_percent(self, tmp_path: Path) -> None:
        device = rapl()
        Held(tmp_path, [device]).enforce(target(cpu_w=240, cpu_pct=30))
        assert list(device.values.values()) == [120, 120]

    def test_percent_become_watts_by_the_known_maximum(self, tmp_path: Path) -> None:
        device = rapl()
        enforced = Held(tmp_path, [device]).enforce(target(cpu_pct=60))
        assert (list(device.values.values()), enforced.cpu.cap_w) == ([120, 120], 240)

    def test_percent_without_a_maximum_are_an_open_loop(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        held = Held(tmp_path, [limits, throttle], limits=CapLimits())
        enforced = held.enforce(target(cpu_pct=60))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", "dvfs")
        assert list(throttle.values.values()) == [40, 40]
        assert limits.writes == []

    def test_percent_without_maximum_and_frequency_are_blocked(self, tmp_path: Path) -> None:
        enforced = Held(tmp_path, [rapl()], limits=CapLimits()).enforce(target(cpu_pct=60))
        assert enforced.cpu.result == "blocked"
        assert "percent of a maximum that is not known" in enforced.cpu.message

    def test_a_hundred_percent_is_as_found_even_above_the_maximum(self, tmp_path: Path) -> None:
        device = FakeCapper("cpu", "watts", name="rapl", found=500.0)
        held = Held(tmp_path, [device])
        enforced = held.enforce(target(cpu_pct=100))
        assert (enforced.cpu.result, enforced.cpu.backend, device.writes) == ("applied", "rapl", [])
        held.enforce(target(cpu_pct=50))
        assert list(device.values.values()) == [100, 100]
        held.enforce(target(cpu_pct=100))
        assert list(device.values.values()) == [500, 500]
        assert entries_on_disk(tmp_path) == {}

    def test_nothing_is_written_while_nothing_changes(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        first = held.enforce(target(cpu_w=240))
        journal_file = tmp_path / "restore.json"
        before = journal_file.stat().st_mtime_ns
        for _ in range(5):
            again = held.enforce(target(cpu_w=240))
            assert (again.cpu, again.wrote, again.notices) == (first.cpu, 0, ())
        assert journal_file.stat().st_mtime_ns == before

    def test_a_step_smaller_than_the_tolerance_is_still_taken(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        held.enforce(target(cpu_w=239))
        assert list(device.values.values()) == [119.5, 119.5]

    def test_a_cap_that_is_no_longer_asked_for_is_taken_back(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        enforced = held.enforce(target(gpu_w=300))
        assert enforced.cpu.result == "none"
        assert list(device.values.values()) == [200, 200]
        assert held.control.cpu_mode == "none"

    def test_without_any_backend_it_is_blocked(self, tmp_path: Path) -> None:
        enforced = Held(tmp_path, []).enforce(target(cpu_w=240, gpu_w=300))
        assert [(part.result, part.backend) for part in (enforced.cpu, enforced.gpu)] == [("blocked", "none")] * 2

    @given(
        st.floats(allow_nan=True) | st.none(),
        st.floats(0, 100) | st.none(),
        st.floats(allow_nan=True) | st.none(),
        st.floats(0, 100) | st.none(),
        st.floats(1, 1e6) | st.none(),
    )
    def test_whatever_is_asked_no_value_leaves_the_range_or_what_was_found(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        cpu_w: float | None,
        cpu_pct: float | None,
        gpu_w: float | None,
        gpu_pct: float | None,
        max_w: float | None,
    ) -> None:
        cpu, throttle, gpu = rapl(), dvfs(), gpus(found=350.0)
        limits = CapLimits(cpu_max_w=max_w, gpu_max_w_each=max_w)
        held = Held(tmp_path_factory.mktemp("range"), [cpu, throttle, gpu], limits=limits)
        held.enforce(target(cpu_w, cpu_pct, gpu_w, gpu_pct))
        assert all(50 <= value <= 200 for value in cpu.values.values())
        assert all(0 <= value <= 100 for value in throttle.values.values())
        assert all(100 <= value <= 350 for value in gpu.values.values())
        assert held.restore().left == ()
        assert set(cpu.values.values()) | set(throttle.values.values()) | set(gpu.values.values()) == {200, 0, 350}
        assert entries_on_disk(held.state_dir) == {}


class TestGpu:
    def test_watts_each(self, tmp_path: Path) -> None:
        device = gpus()
        enforced = Held(tmp_path, [device]).enforce(target(gpu_w=250, gpu_pct=10))
        assert (enforced.gpu.result, enforced.gpu.backend, enforced.gpu.cap_w) == ("applied", "nvidia", 250)
        assert list(device.values.values()) == [250, 250]

    def test_percent_of_the_maximum(self, tmp_path: Path) -> None:
        device = gpus()
        assert Held(tmp_path, [device]).enforce(target(gpu_pct=60)).gpu.cap_w == 240
        assert list(device.values.values()) == [240, 240]

    def test_percent_of_an_unknown_maximum_is_blocked(self, tmp_path: Path) -> None:
        assert Held(tmp_path, [gpus()], limits=CapLimits()).enforce(target(gpu_pct=60)).gpu.result == "blocked"

    def test_a_hundred_percent_is_as_found(self, tmp_path: Path) -> None:
        device = gpus(found=300.0)
        held = Held(tmp_path, [device])
        assert held.enforce(target(gpu_pct=100)).gpu.result == "applied"
        held.enforce(target(gpu_pct=50))
        assert list(device.values.values()) == [200, 200]
        held.enforce(target(gpu_pct=100))
        assert list(device.values.values()) == [300, 300]
        assert entries_on_disk(tmp_path) == {}

    def test_a_vendor_that_is_not_there_does_not_matter_beside_one_that_is(self, tmp_path: Path) -> None:
        absent = FakeCapper("gpu", "watts_each", name="amd", count=0)
        assert Held(tmp_path, [absent, gpus()]).enforce(target(gpu_w=250)).gpu.backend == "nvidia"
        alone = Held(tmp_path / "alone", [absent]).enforce(target(gpu_w=250))
        assert (alone.gpu.result, alone.gpu.message) == ("blocked", "amd: nothing is there")

    def test_no_permission_is_blocked_with_the_reason(self, tmp_path: Path) -> None:
        device = gpus()
        device.on_write = dict.fromkeys(device.values, NoPermissionError("NVML wants SYS_ADMIN"))
        enforced = Held(tmp_path, [device]).enforce(target(gpu_w=250))
        assert (enforced.gpu.result, enforced.gpu.message) == ("blocked", "NVML wants SYS_ADMIN")

    def test_a_fault_of_the_gpus_leaves_the_cpu_alone(self, tmp_path: Path) -> None:
        device = gpus()
        device.on_read = dict.fromkeys(device.values, DeviceFaultError("hangs"))
        enforced = Held(tmp_path, [rapl(), device]).enforce(target(cpu_w=240, gpu_w=250))
        assert (enforced.cpu.result, enforced.gpu.result) == ("applied", "error")


class TestJournalFirst:
    def test_without_a_journal_no_device_is_touched(self, tmp_path: Path) -> None:
        (tmp_path / "state").write_text("a file where a folder should be")
        limits, throttle = rapl(), dvfs()
        enforced = Held(tmp_path / "state", [limits, throttle]).enforce(target(cpu_w=240))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("blocked", "rapl")
        assert "no cap is set without it" in enforced.cpu.message
        assert limits.writes + throttle.writes == []

    def test_a_known_baseline_lets_a_cap_be_raised_though_the_disk_is_full(self, tmp_path: Path) -> None:
        device = rapl()
        held = Held(tmp_path, [device])
        held.enforce(target(cpu_w=240))
        (tmp_path / "restore.json.new").mkdir()  # now nothing can be written there, as on a full disk
        assert held.enforce(target(cpu_w=300)).cpu.result == "applied"
        assert list(device.values.values()) == [150, 150]
        left = held.restore().left
        assert list(device.values.values()) == [200, 200]
        assert all("is not restored" in line for line in left)

    def test_what_was_found_is_believed_only_when_two_looks_agree(self, tmp_path: Path) -> None:
        device = rapl()
        read, looks = device.read, iter([200.0, 200.0, 7.0])

        async def unsteady(knob: Knob) -> Value:
            return next(looks, None) or await read(knob)

        device.read = unsteady  # type: ignore[method-assign]
        held = Held(tmp_path, [device])
        enforced = held.enforce(target(cpu_w=240))
        assert (enforced.cpu.result, device.writes) == ("error", [])
        assert "changes from one reading to the next" in enforced.cpu.message
        assert held.enforce(target(cpu_w=240)).cpu.result == "applied"
        assert {entry["found"] for entry in entries_on_disk(tmp_path).values()} == {200}

    def test_a_value_that_is_no_number_is_neither_noted_nor_written(self, tmp_path: Path) -> None:
        device = FakeCapper("cpu", "watts", name="rapl", found=math.nan)
        enforced = Held(tmp_path, [device]).enforce(target(cpu_w=240))
        assert (enforced.cpu.result, device.writes) == ("error", [])
        assert entries_on_disk(tmp_path) == {}
