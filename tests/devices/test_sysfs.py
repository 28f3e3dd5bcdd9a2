"""Every way in which an attribute file fails is one named error that a person can act on."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    Knob,
    LockedError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.devices.enforcing import Clock, find, run
from tests.devices.faulty_sysfs import Call, FaultySysFs
from tests.devices.sysfs_pieces import CPU, UW, Tree
from tests.devices.sysfs_trees import build

ZONE = "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"
LONG = Knob(ZONE, "constraint_0_power_limit_uw")
ENABLED = Knob(ZONE, "enabled")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return build("intel-atom-c3758", tmp_path)


@pytest.fixture
def sysfs(tree: Tree) -> FaultySysFs:
    return FaultySysFs(tree.sys)


@pytest.fixture
def rapl(sysfs: FaultySysFs) -> Rapl:
    return Rapl(sysfs, Clock())


@pytest.mark.parametrize(
    ("call", "code", "expected", "hint"),
    [
        ("open_to_write", errno.EACCES, NoPermissionError, "UID 0"),
        ("open_to_write", errno.EPERM, NoPermissionError, "UID 0"),
        ("open_to_write", errno.EROFS, NoPermissionError, "read-only"),
        ("open_to_write", errno.ENODEV, NoDeviceError, "does not exist"),
        ("write", errno.EACCES, LockedError, "BIOS"),
        ("write", errno.ENODEV, NoDeviceError, "does not exist"),
        ("write", errno.EIO, DeviceFaultError, "EIO"),
        ("write", errno.EINVAL, DeviceFaultError, "refuses"),
        ("write", errno.EOPNOTSUPP, NotSupportedError, "support"),
        ("write", errno.ETIMEDOUT, DeviceFaultError, "ETIMEDOUT"),
    ],
)
def test_a_write_that_fails_is_named_and_leaves_the_value(
    call: Call, code: int, expected: type[DeviceError], hint: str, tree: Tree, sysfs: FaultySysFs, rapl: Rapl
) -> None:
    sysfs.fail(call, LONG.attribute, code)
    with pytest.raises(expected, match=hint) as raised:
        run(rapl.write(LONG, 15 * UW))
    assert ZONE in str(raised.value)
    assert "\n" not in str(raised.value)
    assert tree.value(LONG) == 25 * UW


@pytest.mark.parametrize(
    ("call", "code", "expected"),
    [
        ("open", errno.EACCES, NoPermissionError),
        ("open", errno.ENOENT, NoDeviceError),
        ("read", errno.ENODATA, NotSupportedError),
        ("read", errno.ENODEV, NoDeviceError),
        ("read", errno.EIO, DeviceFaultError),
    ],
)
def test_a_read_that_fails_is_named(
    call: Call, code: int, expected: type[DeviceError], sysfs: FaultySysFs, rapl: Rapl
) -> None:
    sysfs.fail(call, LONG.attribute, code)
    with pytest.raises(expected, match="cannot be read"):
        run(rapl.read(LONG))
    with pytest.raises(expected):
        run(rapl.knobs())
    assert run(rapl.discover()).no_control is not None


@pytest.mark.parametrize("text", ["", "lots", "12.5", "0x10", "9" * 5000])
def test_a_value_that_is_no_whole_number_is_a_bad_reading(text: str, tree: Tree, rapl: Rapl) -> None:
    tree.put("/".join(LONG), text)
    with pytest.raises(BadReadingError):
        run(rapl.read(LONG))
    assert run(rapl.discover()).no_control is not None


def test_no_permission_no_device_no_support_and_a_lock_block_while_faults_are_errors() -> None:
    blocking = {NoPermissionError, NoDeviceError, NotSupportedError, LockedError}
    assert {kind.result for kind in blocking} == {"blocked"}
    assert {DeviceFaultError.result, BadReadingError.result} == {"error"}


class TestLockedByTheBios:
    def test_the_driver_refuses_a_file_that_could_be_opened(self, sysfs: FaultySysFs, rapl: Rapl) -> None:
        sysfs.fail("write", LONG.attribute, errno.EACCES)
        with pytest.raises(LockedError, match="locked the power limits"):
            run(rapl.write(LONG, 15 * UW))

    def test_the_switch_stays_off(self, tree: Tree, sysfs: FaultySysFs, rapl: Rapl) -> None:
        tree.put("/".join(ENABLED), 0)
        sysfs.ignore_writes("/enabled")
        with pytest.raises(LockedError, match="stays 0"):
            run(rapl.write(ENABLED, 1))

    def test_a_switch_that_is_to_be_off_and_stays_off_is_fine(self, tree: Tree, rapl: Rapl) -> None:
        run(rapl.write(ENABLED, 0))
        assert tree.value(ENABLED) == 0


class TestSilentFailures:
    def test_a_write_that_is_ignored_shows_when_read_back(self, sysfs: FaultySysFs, rapl: Rapl) -> None:
        found = find(rapl)
        sysfs.ignore_writes(LONG.attribute)
        setting = rapl.settings(15, found)[0]
        run(rapl.write(setting.knob, setting.value))
        in_force = run(rapl.read(setting.knob))
        assert setting.value is not None
        assert abs(in_force - setting.value) > setting.tolerance

    def test_a_write_that_the_kernel_itself_fails_after_opening_is_a_fault(self) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        with pytest.raises(DeviceFaultError, match="ENOSPC"):
            SysFs("/dev").write("full", 1)

    def test_a_missing_file_is_never_created(self, tree: Tree, rapl: Rapl) -> None:
        tree.file("/".join(LONG)).unlink()
        with pytest.raises(NoDeviceError):
            run(rapl.write(LONG, 15 * UW))
        assert not tree.file("/".join(LONG)).exists()

    def test_a_name_that_leads_out_of_sys_is_never_written(self, tree: Tree, rapl: Rapl) -> None:
        outside = tree.sys.parent / "precious"
        outside.write_text("untouched")
        with pytest.raises(NoDeviceError):
            run(rapl.write(Knob("/sys/..", "precious"), 1))
        (tree.sys / "link").symlink_to(outside)
        with pytest.raises(NoDeviceError):
            run(rapl.write(Knob("/sys", "link"), 1))
        assert outside.read_text() == "untouched"

    def test_taking_a_limit_away_is_not_supported(self, tree: Tree, rapl: Rapl) -> None:
        with pytest.raises(NotSupportedError):
            run(rapl.write(LONG, None))
        with pytest.raises(NotSupportedError):
            run(Cpufreq(SysFs(tree.sys), DvfsSettings()).write(Knob(f"/sys/{CPU}", "x"), None))


class TestRealPermissions:
    """File modes as the kernel sets them, seen by a process that is not root."""

    @pytest.fixture
    def open_tree(self) -> Iterator[Tree]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # pytest's own folders are closed to others
            yield build("intel-atom-c3758", Path(folder))

    @pytest.fixture
    def as_unprivileged_user(self, open_tree: Tree) -> Iterator[None]:
        for path, mode in ((f"{ZONE}/energy_uj", 0o400), ("/".join(LONG), 0o644)):
            open_tree.file(path).chmod(mode)
        if os.geteuid() != 0:
            pytest.skip("only root can become nobody")
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    @pytest.mark.usefixtures("as_unprivileged_user")
    def test_energy_that_only_root_may_read_is_no_telemetry_with_the_reason(self, open_tree: Tree) -> None:
        rapl = Rapl(SysFs(open_tree.sys), Clock())
        found = run(rapl.discover())
        assert found.no_telemetry is not None
        assert "energy_uj cannot be read" in found.no_telemetry
        assert "UID 0" in found.no_telemetry
        assert run(rapl.power_w()) is None

    @pytest.mark.usefixtures("as_unprivileged_user")
    def test_a_limit_that_only_root_may_write_is_no_control_with_the_reason(self, open_tree: Tree) -> None:
        rapl = Rapl(SysFs(open_tree.sys), Clock())
        found = run(rapl.discover())
        assert found.no_control is not None
        assert "EACCES" in found.no_control
        with pytest.raises(NoPermissionError):
            run(rapl.knobs())
        with pytest.raises(NoPermissionError):
            run(rapl.write(LONG, 15 * UW))
        assert open_tree.value(LONG) == 25 * UW
