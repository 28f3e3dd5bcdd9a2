"""A fake /sys and /proc in a folder, put together from the pieces that real machines have.

Names, units and links are the kernel's own: class entries are relative links into `devices`, `cpuN/cpufreq` is a link
to its policy, watts are microwatts, frequencies kilohertz.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from joulie.devices.interface import Knob

POWERCAP = "devices/virtual/powercap"
CPU = "devices/system/cpu"
UW = 1_000_000
# 32 bits of 61 µJ, as most Intel CPUs have it; 15.3 µJ on others, which is full within minutes.
WIDE_RANGE_UJ = 262_143_328_850
NARROW_RANGE_UJ = 65_532_610_987


class Constraint(NamedTuple):
    """One power limit of a zone; `max_w` None: the kernel has the file and answers nothing useful, 0."""

    name: str
    limit_w: float
    max_w: float | None = None
    window_us: int = 976


class Tree:
    """One machine's files."""

    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        self.proc = root / "proc"
        (self.sys / CPU).mkdir(parents=True)
        self.proc.mkdir(parents=True)

    # Looking and changing

    def file(self, path: str) -> Path:
        return self.sys / path.removeprefix("/sys/")

    def text(self, path: str) -> str:
        return self.file(path).read_text().strip()

    def put(self, path: str, content: object) -> None:
        target = self.file(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{content}\n")

    def value(self, knob: Knob) -> int:
        """What a knob holds, by the file itself."""
        return int(self.text("/".join(knob)))

    def link(self, path: str, target: str) -> None:
        source = self.file(path)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.symlink_to(os.path.relpath(self.file(target), source.parent))

    # Time passing

    def zones(self, name: str = "package-*", control_type: str = "intel-rapl") -> list[str]:
        """Zone folders whose `name` is this, in the order of their ids."""
        folders = sorted(self.file(f"{POWERCAP}/{control_type}").glob("intel-rapl*"))
        named = [folder for folder in folders if Path((folder / "name").read_text().strip()).match(name)]
        return [f"{POWERCAP}/{control_type}/{folder.name}" for folder in named]

    def add_energy(self, zone: str, joules: float) -> None:
        """Count energy in one zone, starting again at zero where its counter does."""
        span_uj = int(self.text(f"{zone}/max_energy_range_uj"))
        self.put(f"{zone}/energy_uj", (int(self.text(f"{zone}/energy_uj")) + round(joules * UW)) % span_uj)

    def spend(self, watts: float, seconds: float) -> None:
        """All packages together draw these watts for a while: counters count, sensors show."""
        zones = self.zones()
        for zone in zones:
            self.add_energy(zone, watts * seconds / len(zones))
        for double in self.zones(control_type="intel-rapl-mmio"):
            self.add_energy(double, watts * seconds / len(zones))
        sensors = [*self.sys.glob("devices/platform/amd_hsmp*/hwmon/hwmon*/power1_input")]
        for sensor in sensors:
            sensor.write_text(f"{round(watts / len(sensors) * UW)}\n")

    def remove_zone(self, name: str) -> None:
        """A package goes away, with everything that leads to it."""
        for zone in self.zones(name):
            shutil.rmtree(self.file(zone))
        for entry in self.file("class/powercap").iterdir():
            if not entry.exists():
                entry.unlink()

    def unplug_cpu(self, number: int) -> None:
        """A CPU goes away; so does its policy when no other CPU is in it."""
        policy = self.file(f"{CPU}/cpu{number}/cpufreq").resolve()
        left = [cpu for cpu in (policy / "affected_cpus").read_text().split() if int(cpu) != number]
        if left:
            (policy / "affected_cpus").write_text(" ".join(left) + "\n")
        else:
            shutil.rmtree(policy)
        shutil.rmtree(self.file(f"{CPU}/cpu{number}/topology"))
        self.file(f"{CPU}/cpu{number}/cpufreq").unlink()
        self.put(f"{CPU}/cpu{number}/online", 0)


def add_zone(
    tree: Tree,
    zone_id: str,
    name: str,
    constraints: Sequence[Constraint] = (),
    *,
    range_uj: int = WIDE_RANGE_UJ,
    enabled: int = 1,
    parent: str | None = None,
) -> str:
    """A powercap zone such as `intel-rapl:0` or `intel-rapl:0:1`, and its entry in the class."""
    control_type = zone_id.split(":", 1)[0]
    folder = f"{parent or f'{POWERCAP}/{control_type}'}/{zone_id}"
    tree.put(f"{folder}/name", name)
    tree.put(f"{folder}/enabled", enabled)
    tree.put(f"{folder}/energy_uj", 1_000_000)
    tree.put(f"{folder}/max_energy_range_uj", range_uj)
    for number, constraint in enumerate(constraints):
        tree.put(f"{folder}/constraint_{number}_name", constraint.name)
        tree.put(f"{folder}/constraint_{number}_power_limit_uw", round(constraint.limit_w * UW))
        tree.put(f"{folder}/constraint_{number}_max_power_uw", round((constraint.max_w or 0) * UW))
        tree.put(f"{folder}/constraint_{number}_time_window_us", constraint.window_us)
    for entry, target in ((control_type, f"{POWERCAP}/{control_type}"), (zone_id, folder)):
        if not tree.file(f"class/powercap/{entry}").is_symlink():
            tree.link(f"class/powercap/{entry}", target)
    tree.link(f"{folder}/subsystem", "class/powercap")
    return folder


def add_cpus(
    tree: Tree,
    *,
    sockets: int,
    cores: int,
    threads: int = 1,
    package_ids: Sequence[int] | None = None,
) -> int:
    """CPUs numbered as Linux does: all first threads, then all second ones. Returns how many."""
    total = sockets * cores
    for cpu in range(total * threads):
        core = cpu % total
        topology = f"{CPU}/cpu{cpu}/topology"
        package = core // cores
        tree.put(f"{topology}/physical_package_id", package_ids[package] if package_ids else package)
        tree.put(f"{topology}/core_id", core % cores)
        tree.put(f"{topology}/core_cpus_list", ",".join(str(core + thread * total) for thread in range(threads)))
        if cpu:  # the boot CPU cannot be switched off and has no such file
            tree.put(f"{CPU}/cpu{cpu}/online", 1)
    tree.put(f"{CPU}/online", f"0-{total * threads - 1}")
    tree.put(f"{CPU}/present", f"0-{total * threads - 1}")
    return total * threads


def add_policies(
    tree: Tree,
    cpus: int,
    driver: str,
    *,
    min_khz: int,
    max_khz: int,
    per_policy: int = 1,
    table: Sequence[int] = (),
) -> None:
    """Frequency policies of `per_policy` CPUs each, and the links from their CPUs."""
    for first in range(0, cpus, per_policy):
        policy = f"{CPU}/cpufreq/policy{first}"
        members = list(range(first, min(first + per_policy, cpus)))
        for attribute, content in (
            ("affected_cpus", " ".join(map(str, members))),
            ("related_cpus", " ".join(map(str, members))),
            ("scaling_driver", driver),
            ("scaling_governor", "schedutil"),
            ("cpuinfo_min_freq", min_khz),
            ("cpuinfo_max_freq", max_khz),
            ("scaling_min_freq", min_khz),
            ("scaling_max_freq", max_khz),
            ("scaling_cur_freq", (min_khz + max_khz) // 2),
        ):
            tree.put(f"{policy}/{attribute}", content)
        if table:
            tree.put(f"{policy}/scaling_available_frequencies", " ".join(map(str, table)) + " ")
        for cpu in members:
            tree.link(f"{CPU}/cpu{cpu}/cpufreq", policy)


def add_hwmon(tree: Tree, number: int, name: str, parent: str, **attributes: int) -> None:
    """A hwmon device below its parent, and its entry in the class."""
    folder = f"{parent}/hwmon/hwmon{number}"
    tree.put(f"{folder}/name", name)
    for attribute, content in attributes.items():
        tree.put(f"{folder}/{attribute}", content)
    tree.link(f"class/hwmon/hwmon{number}", folder)


def add_proc(tree: Tree, cpus: int, cpuinfo: dict[str, str], memory_kb: int) -> None:
    """/proc/cpuinfo and /proc/meminfo."""
    blocks = (
        "\n".join(f"{key}\t: {value}" for key, value in {"processor": str(cpu), **cpuinfo}.items())
        for cpu in range(cpus)
    )
    (tree.proc / "cpuinfo").write_text("\n\n".join(blocks) + "\n\n")
    (tree.proc / "meminfo").write_text(f"MemTotal:       {memory_kb} kB\nMemFree:        {memory_kb // 2} kB\n")
