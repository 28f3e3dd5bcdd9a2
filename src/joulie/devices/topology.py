"""What CPUs and memory the node has, from /sys and /proc, on x86, ARM and virtual machines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct

from joulie.devices.arm_models import arm_model
from joulie.devices.cpufreq import CPU_FOLDER, find_policies
from joulie.devices.interface import DeviceError
from joulie.devices.sysfs import SysFs

_CPU = re.compile(r"cpu\d+")
_MEMORY = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


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
    """Look anew; never raises for what is absent."""
    cpuinfo = _cpuinfo(_text(f"{os.fspath(proc)}/cpuinfo"))
    memory = _MEMORY.search(_text(f"{os.fspath(proc)}/meminfo"))
    cpus = [f"{CPU_FOLDER}/{name}" for name in sysfs.names(CPU_FOLDER) if _CPU.fullmatch(name)]
    online = [cpu for cpu in cpus if sysfs.names(f"{cpu}/topology")]  # an offline CPU has no topology
    packages = {sysfs.integer_or_none(f"{cpu}/topology/physical_package_id") for cpu in online}
    known_packages = {package for package in packages if package is not None and package >= 0}
    sockets = len(known_packages) if known_packages and known_packages == packages else None
    cores = len({_core(sysfs, cpu) for cpu in online})
    virtual = "hypervisor" in cpuinfo.get("flags", "").split()
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
        warnings=_warnings(model, sockets, len(cpus) - len(online), virtual),
    )


def _core(sysfs: SysFs, cpu: str) -> str:
    """The threads that share a core name it better than core_id, which repeats on some ARM servers."""
    for attribute in ("core_cpus_list", "thread_siblings_list"):
        try:
            return sysfs.read(f"{cpu}/topology/{attribute}")
        except DeviceError:
            continue
    return cpu


def _identity(cpuinfo: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Model and vendor. 64-bit ARM kernels give numbers only."""
    if "CPU implementer" in cpuinfo:
        model, vendor = arm_model(cpuinfo["CPU implementer"], cpuinfo.get("CPU part", ""))
        return cpuinfo.get("model name") or model, vendor
    return cpuinfo.get("model name") or None, cpuinfo.get("vendor_id") or None


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


def _warnings(model: str | None, sockets: int | None, offline: int, virtual: bool) -> tuple[str, ...]:
    warnings = []
    if model is None:
        warnings.append("the CPU's model is not known: /proc/cpuinfo does not name it")
    if sockets is None:
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
