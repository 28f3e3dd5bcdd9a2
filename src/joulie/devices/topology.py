"""What CPUs and memory the node has, from /sys and /proc, on x86, ARM and virtual machines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct

from joulie.devices.cpufreq.capper import CPU_FOLDER, find_policies
from joulie.devices.interface import DeviceError
from joulie.devices.sysfs import SysFs

_CPU = re.compile(r"cpu\d+")
_MEMORY = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)

# Names for the numbers by which ARM CPUs identify themselves (MIDR: implementer and part).
_ARM_VENDORS = {
    0x41: "ARM",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0xC0: "Ampere",
}
_ARM_MODELS = {
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920",
    (0x6D, 0xD49): "Cobalt-100",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1A",
}


class Topology(Struct, frozen=True):
    """What is not known is None, never 0. Cores are physical ones of CPUs that are online."""

    raw_model: str | None = None
    vendor: str | None = None
    sockets: int | None = None
    total_cores: int | None = None
    cores_per_socket: int | None = None
    threads: int | None = None
    driver_family: str | None = None
    memory_bytes: int | None = None
    virtual: bool = False
    warnings: tuple[str, ...] = ()


def read_topology(sysfs: SysFs, proc: str | os.PathLike[str] = "/proc") -> Topology:
    """Read it again; never raises for what is absent."""
    cpuinfo = _cpuinfo(_text(f"{os.fspath(proc)}/cpuinfo"))
    memory = _MEMORY.search(_text(f"{os.fspath(proc)}/meminfo"))
    cpus = [f"{CPU_FOLDER}/{name}" for name in sysfs.names(CPU_FOLDER) if _CPU.fullmatch(name)]
    online = [cpu for cpu in cpus if sysfs.names(f"{cpu}/topology")]  # an offline CPU has no topology
    packages = {sysfs.integer_or_none(f"{cpu}/topology/physical_package_id") for cpu in online}
    known_packages = {package for package in packages if package is not None and package >= 0}
    sockets = len(known_packages) if known_packages and known_packages == packages else None
    cores = len({_core(sysfs, cpu) for cpu in online})
    virtual = "hypervisor" in cpuinfo.get("flags", "").split()
    # Hypervisors give each virtual CPU a socket of its own unless told otherwise; ARM has no flag that tells of one.
    invented = sockets is not None and 1 < sockets == cores and (virtual or "CPU implementer" in cpuinfo)
    if invented:
        sockets = None
    model, vendor = _identity(cpuinfo)
    return Topology(
        raw_model=model,
        vendor=vendor,
        sockets=sockets,
        total_cores=cores or None,
        cores_per_socket=cores // sockets if sockets and cores % sockets == 0 else None,
        threads=len(online) or None,
        driver_family=_driver(sysfs),
        memory_bytes=None if memory is None else int(memory[1]) * 1024,
        virtual=virtual,
        warnings=_warnings(model, sockets, invented, len(cpus) - len(online), virtual),
    )


def _core(sysfs: SysFs, cpu: str) -> str:
    """The threads that share a core identify it better than core_id, which repeats on some ARM servers."""
    for attribute in ("core_cpus_list", "thread_siblings_list"):
        try:
            return sysfs.read(f"{cpu}/topology/{attribute}")
        except DeviceError:
            continue
    return cpu


def _identity(cpuinfo: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Model and vendor. 64-bit ARM kernels give numbers only."""
    if "CPU implementer" in cpuinfo:
        model, vendor = _arm_model(cpuinfo["CPU implementer"], cpuinfo.get("CPU part", ""))
        return cpuinfo.get("model name") or model, vendor
    return cpuinfo.get("model name") or None, cpuinfo.get("vendor_id") or None


def _arm_model(implementer: str, part: str) -> tuple[str | None, str | None]:
    """Model and vendor; numbers without a name are shown as they are."""
    try:
        vendor_id, part_id = int(implementer, 16), int(part, 16)
    except ValueError:
        return None, None
    vendor = _ARM_VENDORS.get(vendor_id, f"implementer {vendor_id:#x}")
    return _ARM_MODELS.get((vendor_id, part_id), f"{vendor} part {part_id:#x}"), vendor


def _cpuinfo(text: str) -> dict[str, str]:
    """The first CPU's entries."""
    first = text.strip().split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): " ".join(value.split()) for key, _, value in pairs}


def _driver(sysfs: SysFs) -> str | None:
    for policy in find_policies(sysfs):
        try:
            return sysfs.read(f"{policy}/scaling_driver") or None
        except DeviceError:
            continue
    return None


def _warnings(model: str | None, sockets: int | None, invented: bool, offline: int, virtual: bool) -> tuple[str, ...]:
    warnings = []
    if model is None:
        warnings.append("the CPU's model is not known: /proc/cpuinfo does not name it")
    if invented:
        warnings.append("the number of sockets is not known: one for each CPU is what a virtual machine invents")
    elif sockets is None:
        warnings.append("the number of sockets is not known: the firmware gives no package ids")
    if offline:
        warnings.append(f"{offline} CPUs are offline and not counted")
    if virtual:
        warnings.append("this is a virtual machine: its CPUs are not the host's, and caps belong on the host")
    return tuple(warnings)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
