"""Frequencies by policy: between what was found and a floor, whatever happens to the CPUs."""

from __future__ import annotations

import errno
import math
import shutil
from pathlib import Path

import pytest

from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.interface import CpuFrequency, Knob, NoDeviceError, NoPermissionError
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.devices.enforcing import find, put, run
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_pieces import CPU, Tree
from tests.devices.sysfs_trees import build


def policy(number: int) -> Knob:
    return Knob(f"/sys/{CPU}/cpufreq/policy{number}", "scaling_max_freq")


def machine(name: str, folder: Path, settings: DvfsSettings | None = None) -> tuple[Tree, FaultySysFs, Cpufreq]:
    tree = build(name, folder)
    sysfs = FaultySysFs(tree.sys)
    return tree, sysfs, Cpufreq(sysfs, settings or DvfsSettings())


def test_every_policy_is_one_knob_however_many_cpus_lead_to_it(tmp_path: Path) -> None:
    _, _, cpufreq = machine("intel-atom-c3758", tmp_path)
    assert run(cpufreq.knobs()) == [policy(0), policy(2), policy(4), policy(6)]


def test_policies_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    _, _, cpufreq = machine("intel-i9-13900hx", tmp_path)
    assert run(cpufreq.knobs()) == [policy(number) for number in range(24)]


def test_an_old_kernel_has_the_folder_at_the_cpu(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("arm-cm4", tmp_path)
    for cpu in range(4):
        tree.file(f"{CPU}/cpu{cpu}/cpufreq").unlink()
    shutil.move(tree.file(f"{CPU}/cpufreq/policy0"), tree.file(f"{CPU}/cpu0/cpufreq"))
    for cpu in (1, 2, 3):
        tree.link(f"{CPU}/cpu{cpu}/cpufreq", f"{CPU}/cpu0/cpufreq")
    assert run(cpufreq.knobs()) == [Knob(f"/sys/{CPU}/cpu0/cpufreq", "scaling_max_freq")]


@pytest.mark.parametrize(
    ("throttle_pct", "limit_khz"),
    # floor 1.5 GHz by the settings; found 3.7 GHz
    [(0, 3_700_000), (40, 2_820_000), (100, 1_500_000), (-5, 3_700_000), (400, 1_500_000), (math.nan, 3_700_000)],
)
def test_a_throttle_lies_between_what_was_found_and_the_floor(
    throttle_pct: float, limit_khz: int, tmp_path: Path
) -> None:
    tree, _, cpufreq = machine("intel-xeon-6148-dual", tmp_path)
    put(cpufreq, cpufreq.settings(throttle_pct, find(cpufreq)))
    assert {tree.value(policy(number)) for number in range(20)} == {limit_khz}


def test_the_floor_is_never_below_what_the_policy_allows(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("intel-xeon-6148-dual", tmp_path, DvfsSettings(min_freq_khz=0))
    tree.put(f"{CPU}/cpufreq/policy3/scaling_min_freq", 2_000_000)
    put(cpufreq, cpufreq.settings(100, find(cpufreq)))
    assert tree.value(policy(3)) == 2_000_000
    assert tree.value(policy(4)) == 1_000_000


def test_a_machine_found_below_the_floor_is_left_there(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("arm-cm4", tmp_path)
    tree.put("/".join(policy(0)), 900_000)
    assert [s.value for s in cpufreq.settings(100, find(cpufreq))] == [900_000]


def test_with_a_table_of_frequencies_one_of_them_is_asked_for(tmp_path: Path) -> None:
    _, _, cpufreq = machine("intel-atom-c3758", tmp_path)
    found = find(cpufreq)
    assert {s.value for s in cpufreq.settings(45, found)} == {1_800_000}  # 1,885 MHz is not in the table
    assert {s.value for s in cpufreq.settings(100, found)} == {1_500_000}  # none between floor and limit
    assert {s.value for s in cpufreq.settings(0, found)} == {2_200_000}


def test_without_a_throttle_a_boost_frequency_outside_the_table_stays(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("intel-atom-c3758", tmp_path)
    for number in (0, 2, 4, 6):
        tree.put("/".join(policy(number)), 2_350_000)
    assert {s.value for s in cpufreq.settings(0, find(cpufreq))} == {2_350_000}


def test_frequencies_are_those_of_the_cpus_that_are_online(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("intel-atom-c3758", tmp_path)
    tree.unplug_cpu(5)
    tree.put(f"{CPU}/cpufreq/policy4/scaling_cur_freq", 1_234_567)
    frequencies = run(cpufreq.frequencies())
    assert [f.cpu for f in frequencies] == [0, 1, 2, 3, 4, 6, 7]
    assert frequencies[4] == CpuFrequency(4, 1_234_567, 2_200_000)


def test_a_cpu_that_is_unplugged_takes_its_policy_out_and_leaves_the_others(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("intel-i9-13900hx", tmp_path)
    found = find(cpufreq)
    tree.unplug_cpu(7)
    assert policy(7) not in run(cpufreq.knobs())
    put(cpufreq, cpufreq.settings(50, found))
    assert len(cpufreq.settings(50, found)) == 23
    with pytest.raises(NoDeviceError):
        run(cpufreq.read(policy(7)))
    with pytest.raises(NoDeviceError):
        run(cpufreq.write(policy(7), 2_000_000))
    assert policy(7) in [setting.knob for setting in cpufreq.restoring(found)], "still to be put back"


def test_an_offline_policy_whose_folder_stays_is_no_device(tmp_path: Path) -> None:
    _, sysfs, cpufreq = machine("intel-i9-13900hx", tmp_path)
    found = find(cpufreq)
    for call in ("read", "write"):
        for attribute in ("scaling_max_freq", "scaling_min_freq", "affected_cpus"):
            sysfs.fail(call, f"policy7/{attribute}", errno.EBUSY)
    assert policy(7) not in run(cpufreq.knobs())
    assert policy(7) not in [setting.knob for setting in cpufreq.settings(50, found)]
    assert 7 not in [f.cpu for f in run(cpufreq.frequencies())]
    for action in (cpufreq.read(policy(7)), cpufreq.write(policy(7), 2_000_000)):
        with pytest.raises(NoDeviceError, match="offline"):
            run(action)
    sysfs.heal()
    assert policy(7) in run(cpufreq.knobs())


def test_when_no_policy_is_left_that_is_an_error_not_an_empty_success(tmp_path: Path) -> None:
    tree, _, cpufreq = machine("arm-cm4", tmp_path)
    found = find(cpufreq)
    shutil.rmtree(tree.file(f"{CPU}/cpufreq"))
    with pytest.raises(NoDeviceError):
        cpufreq.settings(50, found)


def test_files_that_cannot_be_written_are_no_control_with_the_reason(tmp_path: Path) -> None:
    _, sysfs, cpufreq = machine("arm-cm4", tmp_path)
    sysfs.fail("open_to_write", "scaling_max_freq", errno.EROFS)
    found = run(cpufreq.discover())
    assert found.present
    assert found.no_control is not None
    assert "read-only" in found.no_control
    with pytest.raises(NoPermissionError):
        run(cpufreq.write(policy(0), 1_000_000))


def test_frequency_says_nothing_about_power(tmp_path: Path) -> None:
    tree = build("arm-cm4", tmp_path)
    assert run(Cpufreq(SysFs(tree.sys), DvfsSettings()).power_w()) is None
