"""The table of backends. Whatever lists them takes them from here: the agent, and `joulie agent restore`.

A new backend is a package beside this module that implements `interface.Capper`, and a line in `HOST_BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Callable

from joulie.devices.amd.boards import open_amd
from joulie.devices.cpufreq.capper import open_cpufreq
from joulie.devices.host import Host
from joulie.devices.hsmp.capper import open_hsmp
from joulie.devices.interface import Capper
from joulie.devices.nvidia.nvml import open_nvidia
from joulie.devices.rapl.capper import open_rapl

# Each is tried before those of its kind that follow: power limits before frequency.
HOST_BACKENDS: tuple[Callable[[Host], Capper], ...] = (
    open_rapl,
    open_hsmp,
    open_cpufreq,
    open_nvidia,
    open_amd,
)


def open_host(host: Host) -> list[Capper]:
    """One capper of each backend. Opening loads no library and touches no device; a backend that is asked may."""
    return [open_backend(host) for open_backend in HOST_BACKENDS]
