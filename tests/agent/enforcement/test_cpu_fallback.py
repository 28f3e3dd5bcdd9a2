"""A power limit where one can be set, frequency where not, and back again."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    Knob,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
    Value,
)
from tests.agent.held_nodes import Held, dvfs, entries_on_disk, rapl, target
from tests.devices.fake_capper import FakeCapper


class TestFallback:
    @pytest.mark.parametrize("reason", [NoDeviceError("no zone"), NotSupportedError("locked"), NoPermissionError("no")])
    def test_where_no_limit_can_be_set_frequency_holds_the_cap(self, tmp_path: Path, reason: DeviceError) -> None:
        limits, throttle = rapl(), dvfs()
        limits.blocked = reason
        held = Held(tmp_path, [limits, throttle], power=lambda: 390.0)
        enforced = [held.enforce(target(cpu_w=240)) for _ in range(4)][-1]
        assert (enforced.cpu.result, enforced.cpu.backend, held.control.cpu_mode) == ("applied", "dvfs", "dvfs")
        assert f"rapl cannot: {reason}" in enforced.cpu.message
        assert set(throttle.values.values()) == {20}
        assert held.control.dvfs.actions == {"throttle_up": 2}

    def test_the_second_kind_of_limit_is_tried_before_frequency(self, tmp_path: Path) -> None:
        limits, hsmp, throttle = rapl(), FakeCapper(name="hsmp"), dvfs()
        limits.blocked = NotSupportedError("counts energy only")
        enforced = Held(tmp_path, [limits, hsmp, throttle]).enforce(target(cpu_w=240))
        assert (enforced.cpu.backend, list(hsmp.values.values())) == ("hsmp", [120, 120])

    def test_a_limit_that_works_again_takes_over_after_the_throttle_was_taken_back(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        order: list[str] = []
        for device in (limits, throttle):
            _note_writes(device, order)
        limits.blocked = NoDeviceError("module not loaded")
        held = Held(tmp_path, [limits, throttle], power=lambda: 390.0)
        for _ in range(3):
            held.enforce(target(cpu_w=240))
        assert set(throttle.values.values()) == {10}
        order.clear()
        limits.blocked = None
        enforced = held.enforce(target(cpu_w=240))
        assert (enforced.cpu.backend, held.control.cpu_mode) == ("rapl", "rapl")
        assert order == ["dvfs", "dvfs", "rapl", "rapl"]
        assert set(throttle.values.values()) == {0}
        assert {entry["backend"] for entry in entries_on_disk(tmp_path).values()} == {"cpu:rapl:watts"}

    def test_a_write_that_is_ignored_falls_back_and_what_was_half_done_is_put_back(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        limits.deaf.add(list(limits.values)[1])
        held = Held(tmp_path, [limits, throttle], power=lambda: 390.0)
        enforced = held.enforce(target(cpu_w=240))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", "dvfs")
        assert "without complaint, but 200 is in force" in enforced.cpu.message
        assert set(limits.values.values()) == {200}
        assert entries_on_disk(tmp_path) == {}

    @pytest.mark.parametrize("refuses", [False, True])
    def test_a_limit_that_does_not_take_writes_is_tried_less_and_less(self, tmp_path: Path, refuses: bool) -> None:
        limits, throttle = rapl(), dvfs()
        if refuses:
            limits.on_write = dict.fromkeys(limits.values, NoPermissionError("not allowed"))
        else:
            limits.deaf.update(limits.values)
        held = Held(tmp_path, [limits, throttle], power=lambda: 250.0)
        tried = []
        for tick in range(180):  # an hour
            before = len(limits.writes)
            held.enforce(target(cpu_w=240))
            tried += [tick] * (len(limits.writes) > before)
        pauses = [later - sooner for sooner, later in itertools.pairwise(tried)]
        assert pauses[:4] == [3, 6, 12, 24]
        assert max(pauses) <= 45

    def test_another_target_is_tried_at_once(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        limits.deaf.update(limits.values)
        held = Held(tmp_path, [limits, throttle], power=lambda: 250.0)
        held.enforce(target(cpu_w=240))
        limits.deaf.clear()
        assert held.enforce(target(cpu_w=240)).cpu.backend == "dvfs"
        assert held.enforce(target(cpu_w=230)).cpu.backend == "rapl"

    @pytest.mark.parametrize("fault", [DeviceFaultError("no answer"), BadReadingError("not a number")])
    def test_a_fault_that_may_pass_is_waited_out_before_frequency_takes_over(
        self, tmp_path: Path, fault: DeviceError
    ) -> None:
        limits, throttle = rapl(), dvfs()
        held = Held(tmp_path, [limits, throttle], power=lambda: 390.0)
        held.enforce(target(cpu_w=240))
        limits.on_read = dict.fromkeys(limits.values, fault)
        seen = [held.enforce(target(cpu_w=240)).cpu for _ in range(4)]
        assert [(each.result, each.backend) for each in seen] == [("error", "rapl")] * 3 + [("applied", "dvfs")]
        assert seen[0].message == str(fault)

    def test_a_fault_that_passed_is_forgotten(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        held = Held(tmp_path, [limits, throttle])
        for _ in range(4):
            limits.on_read = dict.fromkeys(limits.values, DeviceFaultError("no answer"))
            assert held.enforce(target(cpu_w=240)).cpu.result == "error"
            limits.on_read = {}
            assert held.enforce(target(cpu_w=240)).cpu.backend == "rapl"
        assert throttle.writes == []

    def test_when_nothing_works_every_reason_is_said(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        limits.blocked, throttle.blocked = NoDeviceError("no zone"), NoDeviceError("no policy")
        enforced = Held(tmp_path, [limits, throttle]).enforce(target(cpu_w=240))
        assert (enforced.cpu.result, enforced.cpu.message) == ("blocked", "no zone; dvfs cannot: no policy")

    def test_a_throttle_of_an_earlier_process_is_taken_up_where_it_was(self, tmp_path: Path) -> None:
        limits, throttle = rapl(), dvfs()
        limits.blocked = NoDeviceError("no zone")
        held = Held(tmp_path, [limits, throttle], power=lambda: 390.0)
        for _ in range(6):
            held.enforce(target(cpu_w=240))
        assert set(throttle.values.values()) == {30}
        throttle.writes.clear()
        held.restart()
        held.enforce(target(cpu_w=240))
        assert held.control.dvfs.state.throttle_pct == pytest.approx(30)
        assert throttle.writes == []


def _note_writes(device: FakeCapper, order: list[str]) -> None:
    """Every write, in the order of all devices together."""
    write = device.write

    async def noted(knob: Knob, value: Value) -> None:
        order.append(device.name)
        await write(knob, value)

    device.write = noted  # type: ignore[method-assign]
