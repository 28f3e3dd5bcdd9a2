"""What a device really holds is what is reported: watts of each package, floors, rounding, percent paths, dry runs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from msgspec.structs import replace

from joulie.agent.outcome import CapLimits
from joulie.agent.reporting.hardware import hardware_of, limits_of
from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.devices.amd.hwmon import AmdgpuHwmon
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.interface import Capper, Knob, Value
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.model.snapshot import Node
from joulie.settings import AgentSettings, DvfsSettings, HardwareSettings, load
from tests.agent.held_nodes import Held, dvfs, gpus, rapl, run, target
from tests.devices.amd.hwmon_tree import AmdgpuTree
from tests.devices.enforcing import Clock
from tests.devices.fake_capper import FakeCapper
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_trees import build

LIMIT = "constraint_0_power_limit_uw"
TWO_PACKAGES = CapLimits(cpu_max_w=400.0, cpu_floor_w=160.0, cpu_packages=2, gpu_max_w_each=400.0)


class Rounding(FakeCapper):
    """Hardware that keeps whole multiples of 7 W."""

    async def write(self, knob: Knob, value: Value) -> None:
        assert value is not None
        await super().write(knob, value // 7 * 7)

    def settings(self, target: float, found):  # type: ignore[no-untyped-def]
        return [setting._replace(tolerance=7.0) for setting in super().settings(target, found)]


class TestWattsOfAPackage:
    def test_each_package_gets_them(self, tmp_path: Path) -> None:
        device = rapl()
        enforced = Held(tmp_path, [device], limits=TWO_PACKAGES).enforce(target(cpu_w=120))
        assert list(device.values.values()) == [120, 120]
        assert (enforced.cpu.cap_w, enforced.cpu.held_w) == (240, 240)
        assert enforced.cpu.message == "240 W for all packages together"

    def test_they_never_go_below_the_floor_and_the_message_says_so(self, tmp_path: Path) -> None:
        device = rapl()
        enforced = Held(tmp_path, [device], limits=TWO_PACKAGES).enforce(target(cpu_w=1))
        assert list(device.values.values()) == [80, 80]
        assert (enforced.cpu.cap_w, enforced.cpu.held_w) == (2, 160)
        assert enforced.cpu.message == "160 W, the nearest to 2 W that the hardware takes, for all packages together"

    def test_on_a_real_machine(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        sysfs = SysFs(tree.sys)
        held = Held(tmp_path / "state", [Rapl(sysfs, Clock())], limits=replace(TWO_PACKAGES, cpu_max_w=300.0))
        held.enforce(target(cpu_w=100))
        assert [int(tree.text(f"{zone}/{LIMIT}")) for zone in tree.zones()] == [100_000_000] * 2

    @pytest.mark.parametrize(("sockets", "floor_w"), [(None, 160), (2, 320)])
    def test_the_floor_is_a_share_of_the_maximum_where_no_minimum_is_stated(
        self, sockets: int | None, floor_w: float
    ) -> None:
        labels = {"joulie.io/hw.cpu-model": "EPYC-9654"} | ({"joulie.io/hw.cpu-sockets": "2"} if sockets else {})
        node = Node("a", labels)
        status = hardware_of(node, [], None, None, HardwareSettings(), Catalogue())
        limits = limits_of(node, status, HardwareSettings(), Catalogue())
        assert (limits.cpu_floor_w, limits.cpu_packages) == (floor_w, sockets or 1)


class TestWhatIsHeld:
    def test_rounding_of_the_device_is_reported(self, tmp_path: Path) -> None:
        device = Rounding("cpu", "watts", name="rapl")
        enforced = Held(tmp_path, [device]).enforce(target(cpu_w=239))
        assert (enforced.cpu.cap_w, enforced.cpu.held_w) == (239, 238)
        again = Held(tmp_path, [device]).enforce(target(cpu_w=239))
        assert again.cpu == enforced.cpu

    def test_below_a_boards_minimum_its_minimum_is_reported(self, tmp_path: Path) -> None:
        enforced = Held(tmp_path, [gpus()]).enforce(target(gpu_w=10))
        assert (enforced.gpu.cap_w, enforced.gpu.held_w) == (10, 100)
        assert enforced.gpu.message == "100 W, the nearest to 10 W that the hardware takes, for each board"

    def test_of_boards_that_differ_the_highest_limit_counts(self, tmp_path: Path) -> None:
        large = FakeCapper("gpu", "watts_each", name="amd", min_w=300.0, max_w=700.0)
        assert Held(tmp_path, [gpus(), large]).enforce(target(gpu_w=200)).gpu.held_w == 300

    @pytest.mark.parametrize(("name", "backend"), [("intel-xeon-6148-dual", "rapl"), ("amd-epyc-9654-hsmp", "hsmp")])
    def test_below_what_a_package_can_hold_the_limit_read_back_is_reported(
        self, tmp_path: Path, name: str, backend: str
    ) -> None:
        tree = build(name, tmp_path)
        sysfs = SysFs(tree.sys)
        cappers: list[Capper] = [Rapl(sysfs, Clock()), Hsmp(sysfs)]
        max_w = max(each.max_w * each.count for each in (run(capper.discover()) for capper in cappers) if each.max_w)
        enforced = Held(tmp_path / "state", cappers, limits=CapLimits(cpu_max_w=max_w)).enforce(target(cpu_pct=1))
        assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", backend)
        assert enforced.cpu.held_w == pytest.approx(0.1 * max_w, abs=0.01)
        assert enforced.cpu.cap_w == pytest.approx(0.01 * max_w)

    def test_at_a_hundred_percent_the_limit_that_was_found_is_reported(self, tmp_path: Path) -> None:
        device = FakeCapper("cpu", "watts", name="rapl", found=150.0)
        assert Held(tmp_path, [device]).enforce(target(cpu_pct=100)).cpu.held_w == 300


class TestPercentPath:
    def test_frequency_alone_claims_no_watts(self, tmp_path: Path) -> None:
        enforced = Held(tmp_path, [dvfs()], limits=CapLimits()).enforce(target(cpu_pct=60))
        assert (enforced.cpu.result, enforced.cpu.held_w) == ("applied", None)
        assert "throttled by 40 %" in enforced.cpu.message
        assert "the watts that this holds are not known" in enforced.cpu.message

    def test_a_table_of_frequencies_throttles_more_and_that_is_said(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        for policy in (tree.sys / "devices/system/cpu/cpufreq").glob("policy*"):
            (policy / "scaling_available_frequencies").write_text("1500000 2000000 3700000\n")
            (policy / "scaling_max_freq").write_text("3700000\n")
        held = Held(tmp_path / "state", [Cpufreq(SysFs(tree.sys), DvfsSettings())], limits=CapLimits())
        assert "throttled by 77.3 %" in held.enforce(target(cpu_pct=60)).cpu.message

    def test_a_frequency_that_cannot_be_lowered_holds_nothing(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        settings = load(DvfsSettings, {"DVFS_MIN_FREQ_KHZ": "90000000"})
        held = Held(tmp_path / "state", [Cpufreq(SysFs(tree.sys), settings)], limits=CapLimits())
        enforced = held.enforce(target(cpu_pct=60))
        assert (enforced.cpu.result, enforced.cpu.held_w) == ("blocked", None)
        assert "found at its lowest already" in enforced.cpu.message

    def test_a_closed_loop_holds_the_cap_once_the_power_keeps_to_it(self, tmp_path: Path) -> None:
        drawn_w = 300.0
        held = Held(tmp_path, [dvfs()], power=lambda: drawn_w)
        assert held.enforce(target(cpu_w=200)).cpu.held_w is None
        drawn_w = 190.0
        held.restart()
        assert held.enforce(target(cpu_w=200)).cpu.held_w == 200


class TestFallback:
    """Whatever keeps RAPL from holding a cap, frequency takes over and the message says why."""

    @pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EIO, errno.EINVAL, errno.EOPNOTSUPP])
    def test_a_refused_limit_means_frequency(self, tmp_path: Path, code: int) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        sysfs = FaultySysFs(tree.sys)
        sysfs.fail("write", LIMIT, code)
        cappers: list[Capper] = [Rapl(sysfs, Clock()), Cpufreq(sysfs, DvfsSettings())]
        held = Held(tmp_path / "state", cappers, limits=CapLimits(cpu_max_w=300.0))
        outcomes = [held.enforce(target(cpu_pct=60)).cpu for _ in range(5)]
        assert (outcomes[-1].result, outcomes[-1].backend) == ("applied", "dvfs")
        assert "rapl cannot: " in outcomes[-1].message

    def test_it_is_blocked_only_where_frequency_cannot_be_had_either(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        sysfs = FaultySysFs(tree.sys)
        sysfs.fail("write", LIMIT, errno.EACCES)
        sysfs.fail("open_to_write", "scaling_max_freq", errno.EROFS)
        cappers: list[Capper] = [Rapl(sysfs, Clock()), Cpufreq(sysfs, DvfsSettings())]
        enforced = Held(tmp_path / "state", cappers, limits=CapLimits(cpu_max_w=300.0)).enforce(target(cpu_pct=60))
        assert enforced.cpu.result == "blocked"
        assert "the BIOS has locked the power limits" in enforced.cpu.message

    def test_a_die_that_refuses_a_limit_is_blocked(self, tmp_path: Path) -> None:
        tree = AmdgpuTree(tmp_path)
        for address in ("0000:83:00.0", "0000:84:00.0"):
            tree.board(address, cap=500, cap_min=100, cap_max=500, cap_default=500, average=90)
        sysfs = FaultySysFs(tree.sys)
        sysfs.fail("write", "84:00.0/hwmon/hwmon1/power1_cap", errno.EINVAL)
        held = Held(tmp_path / "state", [GpuCapper(AmdgpuHwmon(sysfs))])
        outcomes = [held.enforce(target(gpu_w=300)).gpu for _ in range(3)]
        assert [(each.result, each.held_w) for each in outcomes] == [("blocked", None)] * 3
        assert "only the first takes one" in outcomes[-1].message

    def test_boards_that_are_held_do_not_hide_one_that_cannot_be(self, tmp_path: Path) -> None:
        tree = AmdgpuTree(tmp_path)
        tree.board("0000:83:00.0", cap=500, cap_min=100, cap_max=500, cap_default=500, average=90)
        tree.board("0000:84:00.0", cap=500, cap_min=600, cap_max=500, cap_default=500, average=90)
        held = Held(tmp_path / "state", [GpuCapper(AmdgpuHwmon(SysFs(tree.sys)))])
        outcome = held.enforce(target(gpu_w=300)).gpu
        assert (outcome.result, outcome.held_w) == ("error", None)
        assert "0000:84:00.0 reports a range" in outcome.message
        assert "the other boards are held to 300 W" in outcome.message
        assert held.enforce(target(gpu_pct=100)).gpu.result == "applied"  # nothing is asked of it
        assert held.restore().left == ()


class TestDryRun:
    """Nothing is written, so nothing needs to be writable: a dry run mounts /sys read-only."""

    def test_it_finds_the_same_hardware_as_a_run_that_may_write(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        found = {}
        for dry in ("false", "true"):
            settings = load(AgentSettings, {"HOST_SYS_PATH": str(tree.sys), "SIMULATE_ONLY": dry})
            host = HostDevices(settings, Catalogue(), str(tree.proc))
            if dry == "true":
                host._sysfs._open = _read_only(host._sysfs)  # type: ignore[method-assign]
            told = [run(capper.discover()) for capper in host.cappers({}) if capper.kind == "cpu"]
            found[dry] = hardware_of(Node("a", {}), told, host.topology(), None, HardwareSettings(), Catalogue())
        assert found["true"] == found["false"]
        assert found["true"].cpu is not None
        assert found["true"].cpu.cap_range is not None

    def test_it_says_what_it_would_do_and_blames_no_backend(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        sysfs = SysFs(tree.sys, read_only=True)
        sysfs._open = _read_only(sysfs)  # type: ignore[method-assign]
        cappers: list[Capper] = [Rapl(sysfs, Clock()), Cpufreq(sysfs, DvfsSettings())]
        held = Held(tmp_path / "state", cappers, limits=CapLimits(cpu_max_w=300.0), simulate_only=True)
        enforced = held.enforce(target(cpu_pct=60))
        assert (enforced.cpu.result, enforced.cpu.backend, enforced.cpu.held_w) == ("blocked", "rapl", None)
        assert enforced.cpu.message == "SIMULATE_ONLY, nothing is written: 180 W for all packages together"

    def test_limits_that_may_not_be_written_are_known_all_the_same(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6148-dual", tmp_path)
        sysfs = FaultySysFs(tree.sys)
        sysfs.fail("open_to_write", "", errno.EROFS)
        told = [run(Rapl(sysfs, Clock()).discover()), run(Cpufreq(sysfs, DvfsSettings()).discover())]
        status = hardware_of(Node("a", {}), told, None, None, HardwareSettings(), Catalogue())
        limits = limits_of(Node("a", {}), status, HardwareSettings(), Catalogue())
        assert (limits.cpu_max_w, limits.cpu_packages) == (300, 2)


def _read_only(sysfs: SysFs):  # type: ignore[no-untyped-def]
    opened = sysfs._open

    def refuse(file: str, flags: int) -> int:
        if flags & 3:
            raise OSError(errno.EROFS, "read-only", file)
        return opened(file, flags)

    return refuse
