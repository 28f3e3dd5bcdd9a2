"""AMD sockets by HSMP: hwmon first, the mailbox second."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.hsmp.sockets import GET_LIMIT, GET_MAX_LIMIT, GET_POWER, SET_LIMIT, open_mailbox
from joulie.devices.interface import DeviceFaultError, Knob, NoDeviceError, NoPermissionError, NotSupportedError, Value
from joulie.devices.sysfs import SysFs
from tests.devices.enforcing import find, put, run
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_pieces import UW, Tree
from tests.devices.sysfs_trees import build

HWMON = "/sys/devices/platform/amd_hsmp/hwmon"
FIRST, SECOND = Knob(f"{HWMON}/hwmon10", "power1_cap"), Knob(f"{HWMON}/hwmon9", "power1_cap")


class Mailbox:
    """What the firmware of two sockets answers, in milliwatts."""

    def __init__(self) -> None:
        self.limits_mw = [400_000, 400_000]
        self.max_mw = 400_000
        self.fault: int | None = None

    def __call__(self, socket: int, message: int, argument: int | None) -> int:
        if self.fault is not None:
            raise OSError(self.fault, os.strerror(self.fault))
        if socket >= len(self.limits_mw):
            raise OSError(errno.ENODEV, "no such socket")
        if message == SET_LIMIT:
            assert argument is not None
            self.limits_mw[socket] = min(argument, self.max_mw)
            return 0
        return {GET_POWER: 123_456, GET_LIMIT: self.limits_mw[socket], GET_MAX_LIMIT: self.max_mw}[message]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return build("amd-epyc-9654-hsmp", tmp_path)


def test_the_sockets_are_those_hwmon_devices_that_bear_the_name(tree: Tree) -> None:
    assert set(run(Hsmp(SysFs(tree.sys)).knobs())) == {FIRST, SECOND}


def test_caps_are_split_read_back_and_put_back(tree: Tree) -> None:
    hsmp = Hsmp(SysFs(tree.sys))
    found = find(hsmp)
    put(hsmp, hsmp.settings(480, found))
    assert (tree.value(FIRST), tree.value(SECOND)) == (240 * UW, 240 * UW)
    assert run(hsmp.discover()).current_w == 240
    put(hsmp, hsmp.restoring(found))
    assert (tree.value(FIRST), tree.value(SECOND)) == (400 * UW, 400 * UW)


def test_power_is_what_the_sensors_of_all_sockets_show(tree: Tree) -> None:
    tree.spend(500, 1)
    assert run(Hsmp(SysFs(tree.sys)).power_w()) == 500


def test_a_socket_limited_before_is_never_raised(tree: Tree) -> None:
    tree.put("/".join(FIRST), 300 * UW)
    hsmp = Hsmp(SysFs(tree.sys))
    found = find(hsmp)
    assert {s.knob: s.value for s in hsmp.settings(780, found)} == {FIRST: 300 * UW, SECOND: 390 * UW}
    assert {s.knob: s.value for s in hsmp.settings(800, found)} == found


def test_a_maximum_of_two_kilowatts_is_a_register_not_a_cpu(tree: Tree) -> None:
    for knob in (FIRST, SECOND):
        tree.put(f"{knob.device}/power1_cap_max", 2000 * UW)
    from_catalogue = run(Hsmp(SysFs(tree.sys), catalogue_max_w=360).discover())
    assert (from_catalogue.max_w, from_catalogue.quality) == (360, "heuristic")
    journal: dict[Knob, Value] = {}
    hsmp = Hsmp(SysFs(tree.sys), found=journal)
    journal.update(find(hsmp))
    put(hsmp, hsmp.settings(480, journal))
    assert run(hsmp.discover()).max_w == 400, "what was found, not what is in force"


def test_a_sensor_that_fails_is_no_telemetry_and_no_power(tree: Tree) -> None:
    sysfs = FaultySysFs(tree.sys)
    sysfs.fail("read", "hwmon9/power1_input", errno.ETIMEDOUT)
    hsmp = Hsmp(sysfs)
    assert run(hsmp.power_w()) is None
    found = run(hsmp.discover())
    assert found.no_telemetry is not None
    assert "power1_input" in found.no_telemetry
    assert found.no_control is None


def test_a_busy_controller_is_a_fault_that_passes(tree: Tree) -> None:
    sysfs = FaultySysFs(tree.sys)
    sysfs.fail("write", "power1_cap", errno.EBUSY)
    hsmp = Hsmp(sysfs)
    with pytest.raises(DeviceFaultError):
        run(hsmp.write(FIRST, 200 * UW))
    sysfs.heal()
    run(hsmp.write(FIRST, 200 * UW))
    assert tree.value(FIRST) == 200 * UW


def test_a_driver_that_was_unloaded_is_no_device(tree: Tree) -> None:
    hsmp = Hsmp(SysFs(tree.sys))
    found = find(hsmp)
    shutil.rmtree(tree.file("devices/platform/amd_hsmp"))
    for action in (hsmp.knobs(), hsmp.read(FIRST), hsmp.write(FIRST, UW)):
        with pytest.raises(NoDeviceError):
            run(action)
    with pytest.raises(NoDeviceError):
        hsmp.settings(300, found)


class TestMailbox:
    def test_it_is_asked_only_where_hwmon_has_nothing(self, tree: Tree, tmp_path: Path) -> None:
        mailbox = Mailbox()
        mailbox.fault = errno.EIO
        assert run(Hsmp(SysFs(tree.sys), mailbox=mailbox).discover()).no_control is None

    def test_caps_in_milliwatts_are_split_read_back_and_put_back(self, tmp_path: Path) -> None:
        mailbox = Mailbox()
        hsmp = Hsmp(SysFs(tmp_path), mailbox=mailbox)
        discovered = run(hsmp.discover())
        assert (discovered.count, discovered.max_w, discovered.no_control) == (2, 400, None)
        found = find(hsmp)
        assert list(found) == [Knob(f"/dev/hsmp#{i}", "socket_power_limit_mw") for i in (0, 1)]
        put(hsmp, hsmp.settings(500, found))
        assert mailbox.limits_mw == [250_000, 250_000]
        assert {s.tolerance for s in hsmp.settings(500, found)} == {2500}
        assert run(hsmp.power_w()) == pytest.approx(246.912)
        put(hsmp, hsmp.restoring(found))
        assert mailbox.limits_mw == [400_000, 400_000]

    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            (errno.EPERM, NoPermissionError),
            (errno.EACCES, NoPermissionError),
            (errno.ENOMSG, NotSupportedError),
            (errno.ETIMEDOUT, DeviceFaultError),
        ],
    )
    def test_a_refusal_is_named(self, code: int, expected: type[Exception], tmp_path: Path) -> None:
        mailbox = Mailbox()
        hsmp = Hsmp(SysFs(tmp_path), mailbox=mailbox)
        found = find(hsmp)
        mailbox.fault = code
        with pytest.raises(expected, match="/dev/hsmp#0"):
            run(hsmp.knobs())
        with pytest.raises(expected):
            hsmp.settings(300, found)
        discovered = run(hsmp.discover())
        assert discovered.no_control is not None
        assert discovered.no_telemetry is not None
        assert run(hsmp.power_w()) is None

    def test_the_device_file_is_absent_on_most_machines(self, tmp_path: Path) -> None:
        assert open_mailbox(str(tmp_path / "hsmp")) is None

    def test_a_device_file_that_is_no_hsmp_is_no_device(self, tmp_path: Path) -> None:
        mailbox = open_mailbox(os.devnull)
        assert mailbox is not None
        discovered = run(Hsmp(SysFs(tmp_path), mailbox=mailbox).discover())
        assert (discovered.present, discovered.count) == (False, 0)
