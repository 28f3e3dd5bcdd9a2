"""Real backends on the trees of real machines: capped as far as they can be, and left as they were."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from joulie.agent.outcome import CapLimits
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.interface import Capper
from joulie.devices.rapl.capper import Rapl
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import Held, entries_on_disk, run, target
from tests.devices.enforcing import Clock
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import MACHINES, build

BACKENDS = {"intel-xeon-6530-dual": "dvfs", "amd-epyc-7302p": "dvfs", "amd-epyc-9654-hsmp": "hsmp"}
BACKENDS |= {"arm-altra-dual": "dvfs", "arm-cm4": "dvfs", "vm": "dvfs"}
LIMIT = "constraint_0_power_limit_uw"


class Host:
    """A machine with all its CPU backends, as a daemonset agent has them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.tree: Tree = build(name, folder)
        self.sysfs = FaultySysFs(self.tree.sys)
        cappers: list[Capper] = [Rapl(self.sysfs, Clock()), Hsmp(self.sysfs), Cpufreq(self.sysfs, DvfsSettings())]
        told = [run(capper.discover()) for capper in cappers]
        maxima = [each.max_w * each.count for each in told if each.max_w is not None]
        self.held = Held(folder / "state", cappers, limits=CapLimits(cpu_max_w=max(maxima, default=None)))

    def everything(self) -> dict[str, str]:
        files = sorted(path for path in self.tree.sys.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path): path.read_text() for path in files}

    def limits_w(self) -> list[float]:
        return [int(self.tree.text(f"{zone}/{LIMIT}")) / 1e6 for zone in self.tree.zones()]


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_is_capped_by_its_best_backend_and_left_exactly_as_found(tmp_path: Path, name: str) -> None:
    host = Host(name, tmp_path)
    found = host.everything()
    for pct in (60, 45, 80):
        enforced = host.held.enforce(target(cpu_pct=pct))
        assert enforced.cpu.backend == BACKENDS.get(name, "rapl")
        assert enforced.cpu.result == ("blocked" if name == "vm" else "applied")
    assert host.held.restore().left == ()
    assert host.everything() == found
    assert entries_on_disk(host.held.state_dir) == {}


@pytest.mark.parametrize("name", MACHINES)
def test_a_hundred_percent_touches_nothing(tmp_path: Path, name: str) -> None:
    host = Host(name, tmp_path)
    found = host.everything()
    assert host.held.enforce(target(cpu_pct=100)).cpu.result == ("blocked" if name == "vm" else "applied")
    assert host.everything() == found
    assert not host.held.state_dir.exists()


class TestFaults:
    @pytest.fixture
    def host(self, tmp_path: Path) -> Host:
        return Host("intel-xeon-6148-dual", tmp_path)

    @pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
    def test_read_only_limits_are_left_for_frequency(self, host: Host, code: int) -> None:
        host.sysfs.fail("open_to_write", LIMIT, code)
        enforced = host.held.enforce(target(cpu_w=200))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", "dvfs")
        assert f"rapl cannot: /sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/{LIMIT}" in enforced.cpu.message

    def test_everything_read_only_is_blocked_and_nothing_is_half_done(self, host: Host) -> None:
        found = host.everything()
        host.sysfs.fail("open_to_write", "", errno.EROFS)
        assert host.held.enforce(target(cpu_w=200)).cpu.result == "blocked"
        assert host.everything() == found
        host.sysfs.heal()
        assert host.held.restore().left == ()

    def test_a_package_that_ignores_writes_leaves_no_half_a_cap_behind(self, host: Host) -> None:
        host.sysfs.ignore_writes(f"intel-rapl:1/{LIMIT}")
        enforced = host.held.enforce(target(cpu_w=200))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", "dvfs")
        assert host.limits_w() == [150, 150]

    def test_a_bios_that_locks_after_the_first_package_leaves_no_half_a_cap_behind(self, host: Host) -> None:
        host.sysfs.fail("write", f"intel-rapl:1/{LIMIT}", errno.EACCES)
        enforced = host.held.enforce(target(cpu_w=200))
        assert (enforced.cpu.backend, host.limits_w()) == ("dvfs", [150, 150])
        assert "the BIOS has locked the power limits" in enforced.cpu.message

    def test_a_vanished_package_is_said_and_kept_and_the_other_one_restored(self, host: Host) -> None:
        host.held.enforce(target(cpu_w=200))
        host.tree.remove_zone("package-1")
        assert "intel-rapl:1 is gone and stays in the journal" in host.held.enforce(target(cpu_w=90)).cpu.message
        left = host.held.restore().left
        assert len(left) == 3
        assert all("intel-rapl:1" in line for line in left)
        assert host.limits_w() == [150]
        assert {device for device, _ in entries_on_disk(host.held.state_dir)} == {
            "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:1"
        }

    def test_a_failing_file_in_the_middle_of_a_restore_keeps_only_its_own_entry(self, host: Host) -> None:
        host.held.enforce(target(cpu_w=200))
        host.sysfs.fail("write", f"intel-rapl:0/{LIMIT}", errno.EIO)
        [left] = host.held.restore().left
        assert left.startswith(f"/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0 {LIMIT} is not restored")
        assert host.limits_w() == [100, 150]
        host.sysfs.heal()
        assert host.held.restore().left == ()
        assert host.limits_w() == [150, 150]
