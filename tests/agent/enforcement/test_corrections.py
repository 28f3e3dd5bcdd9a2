"""Other software changes a cap: it is put back, counted and reported; if it persists, the agent gives way."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulie.agent.outcome import CapLimits
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import Held, entries_on_disk, target
from tests.devices.enforcing import Clock
from tests.devices.fake_capper import FakeCapper
from tests.devices.sysfs_trees import build


class Fought:
    """A node whose limits another program sets to 180 W each, whenever told to."""

    def __init__(self, folder: Path) -> None:
        self.device = FakeCapper("cpu", "watts", name="rapl")
        self.throttle = FakeCapper("cpu", "throttle_pct", name="dvfs")
        self.held = Held(folder, [self.device, self.throttle], power=lambda: 200.0)
        self.held.enforce(target(cpu_w=240))

    def meddle(self) -> None:
        self.device.values = dict.fromkeys(self.device.values, 180.0)

    @property
    def in_force(self) -> set[float]:
        return set(self.device.values.values())


@pytest.fixture
def fought(tmp_path: Path) -> Fought:
    return Fought(tmp_path)


def test_a_change_is_put_back_counted_and_said(fought: Fought) -> None:
    fought.meddle()
    enforced = fought.held.enforce(target(cpu_w=240))
    assert (enforced.cpu.result, enforced.corrections, enforced.wrote) == ("applied", 1, 2)
    assert fought.in_force == {120}
    assert [(notice.reason, notice.event, notice.kind) for notice in enforced.notices] == [("CapPutBack", True, "cpu")]
    assert fought.held.enforce(target(cpu_w=240)).corrections == 0
    assert fought.held.control.corrections_total == 1


def test_a_difference_within_the_tolerance_is_none(fought: Fought) -> None:
    fought.device.values = dict.fromkeys(fought.device.values, 121.9)  # tolerance of this device: 2 W
    assert fought.held.enforce(target(cpu_w=240)).wrote == 0


def test_a_new_target_is_no_drift(fought: Fought) -> None:
    assert [fought.held.enforce(target(cpu_w=200 + step)).corrections for step in range(10)] == [0] * 10


def test_what_a_killed_process_left_half_written_is_no_drift(fought: Fought) -> None:
    fought.meddle()
    fought.held.restart()
    enforced = fought.held.enforce(target(cpu_w=240))
    assert (enforced.corrections, fought.in_force) == (0, {120})


def test_the_fourth_change_within_ten_minutes_stands_and_is_said_once(fought: Fought) -> None:
    seen = []
    for _ in range(6):
        fought.meddle()
        seen.append(fought.held.enforce(target(cpu_w=240)))
    assert [each.corrections for each in seen] == [1, 1, 1, 0, 0, 0]
    assert [each.cpu.result for each in seen] == ["applied"] * 3 + ["blocked"] * 3
    assert seen[3].cpu.message.startswith("contested: rapl-cpu-0 power_limit_w was changed by another program")
    events = [notice.reason for each in seen for notice in each.notices if notice.event]
    assert events == ["CapPutBack"] * 3 + ["CapContested"]
    assert fought.in_force == {180}


def test_frequency_does_not_take_over_from_a_contested_limit(fought: Fought) -> None:
    for _ in range(8):
        fought.meddle()
        fought.held.enforce(target(cpu_w=240))
    assert fought.throttle.writes == []


def test_changes_that_come_seldom_are_all_put_back(fought: Fought) -> None:
    for _ in range(12):
        fought.meddle()
        assert fought.held.enforce(target(cpu_w=240)).cpu.result == "applied"
        fought.held.now_s += 300


def test_ten_minutes_after_the_last_correction_it_is_tried_again(fought: Fought) -> None:
    for _ in range(4):
        fought.meddle()
        fought.held.enforce(target(cpu_w=240))
    fought.held.now_s += 540
    assert fought.held.enforce(target(cpu_w=240)).cpu.result == "blocked"
    fought.held.now_s += 40
    enforced = fought.held.enforce(target(cpu_w=240))
    assert (enforced.cpu.result, fought.in_force) == ("applied", {120})


def test_in_an_hour_of_constant_fight_the_device_is_written_to_a_bounded_number_of_times(fought: Fought) -> None:
    corrections = 0
    for _ in range(180):
        fought.meddle()
        corrections += fought.held.enforce(target(cpu_w=240)).corrections
    assert corrections <= 3 * 6


def test_when_the_other_gives_in_it_is_applied_again_at_once(fought: Fought) -> None:
    for _ in range(4):
        fought.meddle()
        fought.held.enforce(target(cpu_w=240))
    fought.device.values = dict.fromkeys(fought.device.values, 120.0)
    assert fought.held.enforce(target(cpu_w=240)).cpu.result == "applied"


def test_a_new_target_does_not_reopen_the_fight(fought: Fought) -> None:
    for _ in range(4):
        fought.meddle()
        fought.held.enforce(target(cpu_w=240))
    writes = len(fought.device.writes)
    assert fought.held.enforce(target(cpu_w=230)).cpu.result == "blocked"
    assert len(fought.device.writes) == writes


@pytest.mark.parametrize("ending", ["restore", "100 %", "no cap"])
def test_what_is_no_longer_wanted_is_restored_however_contested(fought: Fought, ending: str) -> None:
    for _ in range(5):
        fought.meddle()
        fought.held.enforce(target(cpu_w=240))
    if ending == "restore":
        fought.held.restore()
    else:
        fought.held.enforce(target(cpu_pct=100) if ending == "100 %" else target())
    assert fought.in_force == {200}
    assert entries_on_disk(fought.held.state_dir) == {}


@pytest.mark.parametrize(("others_w", "puts_back"), [(119.0, False), (121.2, False), (118.7, True), (121.3, True)])
def test_a_rapl_limit_drifts_by_more_than_one_percent_or_one_watt(
    tmp_path: Path, others_w: float, puts_back: bool
) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    held = Held(tmp_path / "state", [Rapl(SysFs(tree.sys), Clock())])
    held.enforce(target(cpu_w=240))
    zone = tree.zones()[0]
    tree.put(f"{zone}/constraint_0_power_limit_uw", round(others_w * 1e6))
    assert held.enforce(target(cpu_w=240)).corrections == puts_back


def test_a_limit_that_was_switched_off_is_switched_on_again(tmp_path: Path) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    held = Held(tmp_path / "state", [Rapl(SysFs(tree.sys), Clock())])
    held.enforce(target(cpu_w=240))
    tree.put(f"{tree.zones()[1]}/enabled", 0)
    assert held.enforce(target(cpu_w=240)).corrections == 1
    assert tree.text(f"{tree.zones()[1]}/enabled") == "1"


def test_a_frequency_limit_drifts_too(tmp_path: Path) -> None:
    tree = build("arm-cm4", tmp_path)
    cpufreq = Cpufreq(SysFs(tree.sys), DvfsSettings(min_freq_khz=600_000))
    held = Held(tmp_path / "state", [cpufreq], limits=CapLimits())
    held.enforce(target(cpu_pct=50))
    [(device, attribute)] = entries_on_disk(held.state_dir)
    limited = tree.text(f"{device}/{attribute}")
    tree.put(f"{device}/{attribute}", 1_800_000)
    assert held.enforce(target(cpu_pct=50)).corrections == 1
    assert tree.text(f"{device}/{attribute}") == limited


def test_a_frequency_that_heat_holds_lower_for_a_while_is_no_contest_but_must_end_as_found(tmp_path: Path) -> None:
    tree = build("arm-cm4", tmp_path)
    cpufreq = Cpufreq(SysFs(tree.sys), DvfsSettings(min_freq_khz=600_000))
    held = Held(tmp_path / "state", [cpufreq], limits=CapLimits())
    held.enforce(target(cpu_pct=50))
    [(device, attribute)] = entries_on_disk(held.state_dir)
    found = entries_on_disk(held.state_dir)[device, attribute]["found"]
    limited = int(tree.text(f"{device}/{attribute}"))
    tree.put(f"{device}/{attribute}", limited - 200_000)
    for _ in range(6):
        enforced = held.enforce(target(cpu_pct=50))
        assert (enforced.cpu.result, enforced.corrections, enforced.wrote) == ("applied", 0, 0)
    held.restore()
    assert int(tree.text(f"{device}/{attribute}")) == found
