"""Fake /sys and /proc trees of real machines, each with the traps that machines of its kind have.

`build(name, folder)` makes one; `MACHINES` names them all. Machines with very many cores have fewer here, for speed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.devices.sysfs_pieces import (
    NARROW_RANGE_UJ,
    UW,
    Constraint,
    Tree,
    add_cpus,
    add_hwmon,
    add_policies,
    add_proc,
    add_zone,
)

INTEL = "GenuineIntel"
AMD = "AuthenticAMD"


def build(name: str, folder: Path) -> Tree:
    """The machine's tree in a folder of its own below `folder`."""
    tree = Tree(folder / name)
    MACHINES[name](tree)
    return tree


def intel_mobile_with_doubles(tree: Tree) -> None:
    """One package; psys beside it, the package a second time by MMIO; limits far above the TDP; a peak limit too."""
    limits = (Constraint("long_term", 135, 55), Constraint("short_term", 162), Constraint("peak_power", 315))
    package = add_zone(tree, "intel-rapl:0", "package-0", limits)
    add_zone(tree, "intel-rapl:0:0", "core", [Constraint("long_term", 0)], enabled=0, parent=package)
    add_zone(tree, "intel-rapl:0:1", "uncore", [Constraint("long_term", 0)], enabled=0, parent=package)
    add_zone(tree, "intel-rapl:1", "psys", [Constraint("long_term", 0), Constraint("short_term", 0)], enabled=0)
    add_zone(tree, "intel-rapl-mmio:0", "package-0", [Constraint("long_term", 55, 55), Constraint("short_term", 162)])
    cpus = add_cpus(tree, sockets=1, cores=24)
    add_policies(tree, cpus, "intel_pstate", min_khz=800_000, max_khz=5_200_000)
    add_proc(tree, cpus, _x86(INTEL, "13th Gen Intel(R) Core(TM) i9-13900HX"), 32_612_340)


def intel_dual(tree: Tree) -> None:
    """Two packages with memory zones, as most rack servers."""
    for package in (0, 1):
        limits = (Constraint("long_term", 150, 150), Constraint("short_term", 180, 376))
        zone = add_zone(tree, f"intel-rapl:{package}", f"package-{package}", limits)
        add_zone(tree, f"intel-rapl:{package}:0", "dram", [Constraint("long_term", 0, 41)], enabled=0, parent=zone)
    cpus = add_cpus(tree, sockets=2, cores=5, threads=2)
    add_policies(tree, cpus, "intel_pstate", min_khz=1_000_000, max_khz=3_700_000)
    add_proc(tree, cpus, _x86(INTEL, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"), 196_504_312)


def intel_dual_with_doubles(tree: Tree) -> None:
    """Two packages registered after psys, both also by MMIO; the firmware left TDP at 0 and the limits off."""
    add_zone(tree, "intel-rapl:0", "psys", [Constraint("long_term", 4095.875)], enabled=0)
    for package in (0, 1):
        limits = (Constraint("long_term", 4095.875, None), Constraint("short_term", 4095.875, None))
        zone = add_zone(tree, f"intel-rapl:{package + 1}", f"package-{package}", limits, enabled=0)
        add_zone(tree, f"intel-rapl:{package + 1}:0", "dram", enabled=0, parent=zone)
        add_zone(tree, f"intel-rapl-mmio:{package}", f"package-{package}", limits)
    cpus = add_cpus(tree, sockets=2, cores=8)
    add_policies(tree, cpus, "intel_pstate", min_khz=800_000, max_khz=4_000_000)
    add_proc(tree, cpus, _x86(INTEL, "INTEL(R) XEON(R) GOLD 6530"), 528_280_116)


def intel_sixteen_sockets(tree: Tree) -> None:
    """So many packages that zone ids reach a letter, registered in no order; counters full within minutes."""
    for number in range(16):
        limits = (Constraint("long_term", 205, 205), Constraint("short_term", 246, 413))
        name = f"package-{15 - number}"
        add_zone(tree, f"intel-rapl:{number:x}", name, limits, range_uj=NARROW_RANGE_UJ)
    cpus = add_cpus(tree, sockets=16, cores=1)
    add_policies(tree, cpus, "intel_pstate", min_khz=1_000_000, max_khz=4_000_000)
    add_proc(tree, cpus, _x86(INTEL, "Intel(R) Xeon(R) Platinum 8280L CPU @ 2.70GHz"), 6_442_450_944)


def intel_two_dies(tree: Tree) -> None:
    """Two packages of two dies; each die is a zone, and a limit of short-term comes before the long-term one."""
    for number in range(4):
        limits = (Constraint("short_term", 210, 350), Constraint("long_term", 175, 175))
        add_zone(tree, f"intel-rapl:{number}", f"package-{number // 2}-die-{number % 2}", limits)
    cpus = add_cpus(tree, sockets=2, cores=8)
    add_policies(tree, cpus, "intel_pstate", min_khz=1_000_000, max_khz=3_800_000)
    add_proc(tree, cpus, _x86(INTEL, "Intel(R) Xeon(R) Platinum 9242 CPU @ 2.30GHz"), 394_875_664)


def intel_without_short_term(tree: Tree) -> None:
    """A small server chip with one limit only and a table of frequencies."""
    add_zone(tree, "intel-rapl:0", "package-0", [Constraint("long_term", 25, 25)], range_uj=NARROW_RANGE_UJ)
    cpus = add_cpus(tree, sockets=1, cores=8)
    table = (2_200_000, 2_000_000, 1_800_000, 1_600_000, 1_400_000, 1_200_000, 1_000_000, 800_000)
    add_policies(tree, cpus, "acpi-cpufreq", min_khz=800_000, max_khz=2_200_000, per_policy=2, table=table)
    add_proc(tree, cpus, _x86(INTEL, "Intel(R) Atom(TM) CPU C3758 @ 2.20GHz"), 65_772_936)


def intel_without_cpufreq(tree: Tree) -> None:
    """Frequencies are the firmware's business; power limits work."""
    limits = (Constraint("long_term", 140, 140), Constraint("short_term", 168, 336))
    add_zone(tree, "intel-rapl:0", "package-0", limits)
    cpus = add_cpus(tree, sockets=1, cores=22, threads=2)
    add_proc(tree, cpus, _x86(INTEL, "Intel(R) Xeon(R) Gold 6238 CPU @ 2.10GHz"), 98_304_000)


def amd_energy_only(tree: Tree) -> None:
    """Energy counters and nothing to set."""
    package = add_zone(tree, "intel-rapl:0", "package-0", range_uj=NARROW_RANGE_UJ, enabled=0)
    add_zone(tree, "intel-rapl:0:0", "core", range_uj=NARROW_RANGE_UJ, enabled=0, parent=package)
    add_hwmon(tree, 0, "k10temp", "devices/pci0000:00/0000:00:18.3", temp1_input=45_000)
    cpus = add_cpus(tree, sockets=1, cores=16, threads=2)
    add_policies(
        tree, cpus, "acpi-cpufreq", min_khz=1_500_000, max_khz=3_000_000, table=(3_000_000, 2_500_000, 1_500_000)
    )
    add_proc(tree, cpus, _x86(AMD, "AMD EPYC 7302P 16-Core Processor"), 131_900_000)


def amd_with_hsmp(tree: Tree) -> None:
    """Energy counters, and power limits by HSMP's hwmon among other sensors."""
    for package in (0, 1):
        add_zone(tree, f"intel-rapl:{package}", f"package-{package}", range_uj=NARROW_RANGE_UJ, enabled=0)
    add_hwmon(tree, 0, "nvme", "devices/pci0000:00/0000:01:00.0/nvme/nvme0", temp1_input=38_000)
    add_hwmon(tree, 1, "k10temp", "devices/pci0000:00/0000:00:18.3", temp1_input=51_000)
    for socket in (0, 1):
        add_hwmon(
            tree,
            10 - socket,  # numbers follow the order of loading and are no order of sockets
            "amd_hsmp_hwmon",
            "devices/platform/amd_hsmp",
            power1_cap=400 * UW,
            power1_cap_max=400 * UW,
            power1_input=90 * UW,
        )
    cpus = add_cpus(tree, sockets=2, cores=12)
    add_policies(tree, cpus, "amd-pstate-epp", min_khz=1_500_000, max_khz=3_700_000)
    add_proc(tree, cpus, _x86(AMD, "AMD EPYC 9654 96-Core Processor"), 1_584_840_000)


def arm_server(tree: Tree) -> None:
    """Frequencies only; the CPU has no name, and package ids are whatever the firmware likes."""
    cpus = add_cpus(tree, sockets=2, cores=10, package_ids=(36, 3180))
    add_policies(tree, cpus, "cppc_cpufreq", min_khz=1_000_000, max_khz=3_000_000)
    add_proc(tree, cpus, _arm("0x41", "0xd0c"), 263_000_000)


def arm_board(tree: Tree) -> None:
    """No package ids, one policy for all cores."""
    cpus = add_cpus(tree, sockets=1, cores=4, package_ids=(-1,))
    table = (600_000, 700_000, 800_000, 900_000, 1_000_000, 1_500_000, 1_800_000)
    add_policies(tree, cpus, "cpufreq-dt", min_khz=600_000, max_khz=1_800_000, per_policy=4, table=table)
    add_proc(tree, cpus, _arm("0x41", "0xd08"), 8_000_000)


def virtual_machine(tree: Tree) -> None:
    """Nothing to read, nothing to set; each CPU claims a socket of its own."""
    cpus = add_cpus(tree, sockets=4, cores=1)
    cpuinfo = _x86(INTEL, "Intel Xeon Processor (Skylake, IBRS)")
    add_proc(tree, cpus, {**cpuinfo, "flags": cpuinfo["flags"] + " hypervisor"}, 16_393_412)


MACHINES: dict[str, Callable[[Tree], None]] = {
    "intel-i9-13900hx": intel_mobile_with_doubles,
    "intel-xeon-6148-dual": intel_dual,
    "intel-xeon-6530-dual": intel_dual_with_doubles,
    "intel-xeon-8280l-16-sockets": intel_sixteen_sockets,
    "intel-xeon-9242-dies": intel_two_dies,
    "intel-atom-c3758": intel_without_short_term,
    "intel-xeon-6238-no-cpufreq": intel_without_cpufreq,
    "amd-epyc-7302p": amd_energy_only,
    "amd-epyc-9654-hsmp": amd_with_hsmp,
    "arm-altra-dual": arm_server,
    "arm-cm4": arm_board,
    "vm": virtual_machine,
}


def _x86(vendor: str, model: str) -> dict[str, str]:
    return {"vendor_id": vendor, "model name": model, "flags": "fpu vme msr pae mce"}


def _arm(implementer: str, part: str) -> dict[str, str]:
    return {"BogoMIPS": "50.00", "CPU implementer": implementer, "CPU architecture": "8", "CPU part": part}
