"""What is found on twelve machines: by each backend, and about the CPUs themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.interface import Discovered
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.devices.topology import Topology, read_topology
from joulie.settings import DvfsSettings
from tests.devices.enforcing import Clock, run
from tests.devices.sysfs_pieces import CPU
from tests.devices.sysfs_trees import MACHINES, build


class Expected(NamedTuple):
    """Packages and watts each by power limit, whether energy is counted, sockets by HSMP, frequency policies."""

    packages: int
    max_w: float | None
    energy: bool
    hsmp_sockets: int
    policies: int


EXPECTED = {
    "intel-i9-13900hx": Expected(1, 55.0, True, 0, 24),
    "intel-xeon-6148-dual": Expected(2, 150.0, True, 0, 20),
    "intel-xeon-6530-dual": Expected(2, 270.0, True, 0, 16),  # from the catalogue: the hardware says 0
    "intel-xeon-8280l-16-sockets": Expected(16, 205.0, True, 0, 16),
    "intel-xeon-9242-dies": Expected(2, 350.0, True, 0, 16),
    "intel-atom-c3758": Expected(1, 25.0, True, 0, 4),
    "intel-xeon-6238-no-cpufreq": Expected(1, 140.0, True, 0, 0),
    "amd-epyc-7302p": Expected(0, None, True, 0, 32),
    "amd-epyc-9654-hsmp": Expected(0, None, True, 2, 24),
    "arm-altra-dual": Expected(0, None, False, 0, 20),
    "arm-cm4": Expected(0, None, False, 0, 1),
    "vm": Expected(0, None, False, 0, 0),
}


def discoveries(machine: str, folder: Path) -> tuple[Discovered, Discovered, Discovered]:
    tree = build(machine, folder)
    sysfs = SysFs(tree.sys)
    model = Catalogue().cpu(read_topology(sysfs, tree.proc).raw_model)
    catalogue_max_w = None if model is None else model.max_w
    return (
        run(Rapl(sysfs, Clock(), catalogue_max_w).discover()),
        run(Hsmp(sysfs, catalogue_max_w).discover()),
        run(Cpufreq(sysfs, DvfsSettings()).discover()),
    )


def test_every_machine_is_expected() -> None:
    assert EXPECTED.keys() == MACHINES.keys()


@pytest.mark.parametrize("machine", MACHINES)
def test_each_backend_finds_what_the_machine_has_and_says_why_where_it_has_nothing(
    machine: str, tmp_path: Path
) -> None:
    expected = EXPECTED[machine]
    rapl, hsmp, dvfs = discoveries(machine, tmp_path)
    if expected.packages:
        assert (rapl.count, rapl.max_w, rapl.no_control) == (expected.packages, expected.max_w, None)
    else:
        assert rapl.no_control
    assert (rapl.no_telemetry is None) == expected.energy
    assert (hsmp.present, hsmp.count, hsmp.no_control is None) == (
        expected.hsmp_sockets > 0,
        expected.hsmp_sockets,
        expected.hsmp_sockets > 0,
    )
    assert (dvfs.present, dvfs.count, dvfs.no_control is None) == (
        expected.policies > 0,
        expected.policies,
        expected.policies > 0,
    )
    for found in (rapl, hsmp, dvfs):
        assert found.min_w is None, "no CPU interface states a minimum"
        assert found.max_w != 0
        assert found.current_w != 0


def test_a_maximum_that_the_hardware_states_is_exact_and_one_from_elsewhere_is_not(tmp_path: Path) -> None:
    assert discoveries("intel-xeon-6148-dual", tmp_path)[0].quality == "exact"
    from_catalogue = discoveries("intel-xeon-6530-dual", tmp_path)[0]
    assert from_catalogue.quality == "heuristic"
    assert "catalogue" in from_catalogue.warnings[0]


def test_a_second_view_that_holds_the_package_lower_is_mentioned(tmp_path: Path) -> None:
    rapl = discoveries("intel-i9-13900hx", tmp_path)[0]
    assert rapl.current_w == 135
    assert [w for w in rapl.warnings if "held to 55 W" in w and "intel-rapl-mmio:0" in w]


def test_amd_with_counters_alone_can_be_read_and_says_where_caps_would_go(tmp_path: Path) -> None:
    rapl = discoveries("amd-epyc-7302p", tmp_path)[0]
    assert rapl.present
    assert rapl.no_control is not None
    assert "no power limit" in rapl.no_control


def test_nothing_at_all_is_found_without_an_error(tmp_path: Path) -> None:
    sysfs = SysFs(tmp_path / "nowhere")
    for capper in (Rapl(sysfs, Clock()), Hsmp(sysfs), Cpufreq(sysfs, DvfsSettings())):
        found = run(capper.discover())
        assert (found.present, found.count, found.quality) == (False, 0, "unavailable")
        assert found.no_control
    assert read_topology(sysfs, tmp_path / "nowhere") == Topology(
        warnings=(
            "the CPU's model is not known: /proc/cpuinfo does not name it",
            "the number of sockets is not known: the firmware gives no package ids",
        )
    )


class TestTopology:
    @staticmethod
    def of(machine: str, folder: Path) -> Topology:
        tree = build(machine, folder)
        return read_topology(SysFs(tree.sys), tree.proc)

    def test_threads_are_not_cores(self, tmp_path: Path) -> None:
        found = self.of("intel-xeon-6148-dual", tmp_path)
        assert (found.sockets, found.total_cores, found.cores_per_socket, found.threads) == (2, 10, 5, 20)
        assert (found.vendor, found.driver_family) == ("GenuineIntel", "intel_pstate")
        assert found.raw_model == "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"
        assert found.memory_bytes == 196_504_312 * 1024
        assert found.warnings == ()

    def test_arm_has_a_name_by_its_numbers_and_sockets_by_whatever_ids(self, tmp_path: Path) -> None:
        found = self.of("arm-altra-dual", tmp_path)
        assert (found.raw_model, found.vendor) == ("Neoverse-N1", "ARM")
        assert (found.sockets, found.total_cores, found.cores_per_socket) == (2, 20, 10)

    def test_without_package_ids_the_number_of_sockets_is_unknown_not_zero(self, tmp_path: Path) -> None:
        found = self.of("arm-cm4", tmp_path)
        assert (found.sockets, found.cores_per_socket, found.total_cores) == (None, None, 4)
        assert "sockets" in found.warnings[0]

    def test_package_ids_of_some_cpus_only_do_not_count_sockets(self, tmp_path: Path) -> None:
        tree = build("intel-atom-c3758", tmp_path)
        tree.put(f"{CPU}/cpu3/topology/physical_package_id", -1)
        assert read_topology(SysFs(tree.sys), tree.proc).sockets is None

    def test_an_unknown_arm_part_is_shown_by_its_number(self, tmp_path: Path) -> None:
        tree = build("arm-cm4", tmp_path)
        cpuinfo = tree.proc / "cpuinfo"
        cpuinfo.write_text(cpuinfo.read_text().replace("0xd08", "0xfff"))
        assert read_topology(SysFs(tree.sys), tree.proc).raw_model == "ARM part 0xfff"

    def test_a_virtual_machine_says_so(self, tmp_path: Path) -> None:
        found = self.of("vm", tmp_path)
        assert found.virtual
        assert (found.sockets, found.total_cores, found.driver_family) == (None, 4, None)
        assert any("one for each CPU is what a virtual machine invents" in line for line in found.warnings)

    def test_offline_cpus_are_not_counted_and_mentioned(self, tmp_path: Path) -> None:
        tree = build("intel-atom-c3758", tmp_path)
        tree.unplug_cpu(7)
        found = read_topology(SysFs(tree.sys), tree.proc)
        assert found.total_cores == 7
        assert "1 CPUs are offline" in found.warnings[0]

    def test_older_kernels_name_the_threads_of_a_core_differently(self, tmp_path: Path) -> None:
        tree = build("intel-xeon-6238-no-cpufreq", tmp_path)
        for cpu in tree.file(CPU).glob("cpu[0-9]*"):
            (cpu / "topology/core_cpus_list").rename(cpu / "topology/thread_siblings_list")
        assert read_topology(SysFs(tree.sys), tree.proc).total_cores == 22

    def test_the_machine_that_runs_the_tests_can_be_read(self) -> None:
        found = read_topology(SysFs("/sys"))
        assert found.total_cores is None or 1 <= found.total_cores <= (found.threads or 0)
        assert found.memory_bytes is None or found.memory_bytes > 0


def test_cpu_devices_load_no_numpy() -> None:
    modules = ["backends", "topology"]
    code = f"import sys, {', '.join(f'joulie.devices.{module}' for module in modules)}; print('numpy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "False"
