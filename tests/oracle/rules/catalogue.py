"""The hardware catalogue of section 9 and the names under which its models are met."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuEntry:
    """One CPU model: watts per socket, idle watts of the measured two-socket node where there is a curve."""

    name: str
    cores: int
    boost_ghz: float
    tdp_w: float
    ctdp_max_w: float | None
    curve_idle_w: float | None


@dataclass(frozen=True)
class GpuEntry:
    """One GPU model: board limits in watts."""

    name: str
    max_w: float
    min_w: float


CPUS = [
    CpuEntry("EPYC 9654", 96, 3.7, 360, 400, 128),
    CpuEntry("EPYC 9534", 64, 3.7, 280, 300, None),
    CpuEntry("EPYC 9655", 96, 4.5, 400, 400, 138),
    CpuEntry("EPYC 9965", 192, 3.7, 500, 500, 157),
    CpuEntry("EPYC 9375F", 32, 4.8, 320, 400, None),
    CpuEntry("Xeon Gold 6530", 32, 4.0, 270, None, None),
]
GPUS = [
    GpuEntry("H100 NVL", 400, 200),
    GpuEntry("H100 SXM", 700, 200),
    GpuEntry("A100 SXM", 400, 100),
    GpuEntry("L40S", 350, 100),
    GpuEntry("MI300X", 750, 350),
    GpuEntry("Radeon PRO W7900", 295, 200),
]
_GPU_ALIASES = {
    "h100 80gb hbm3": "H100 SXM",
    "h100 sxm5": "H100 SXM",
    "h100 sxm5 80gb": "H100 SXM",
    "h100 sxm 80gb": "H100 SXM",
    "mi300x oam": "MI300X",
    "a100 sxm4 80gb": "A100 SXM",
    "a100 sxm4 40gb": "A100 SXM",
}
_NOISE = {"amd", "nvidia", "intel", "instinct", "cpu", "gpu", "processor"}


def bare_name(name: str) -> str:
    """A vendor's spelling reduced to the words that tell models apart, in lower case."""
    plain = re.sub(r"\((r|tm)\)|[®™]", " ", name.lower()).split("@")[0]
    plain = re.sub(r"[-_\s]+", " ", plain)
    plain = re.sub(r"\b\d+ cores?\b", " ", plain)
    return " ".join(word for word in plain.split() if word not in _NOISE)


def find_cpu(name: str) -> CpuEntry | None:
    """The catalogue's entry for a CPU under any known spelling."""
    wanted = bare_name(name)
    return next((entry for entry in CPUS if bare_name(entry.name) == wanted), None)


def find_gpu(name: str) -> GpuEntry | None:
    """The catalogue's entry for a GPU under any known spelling."""
    wanted = bare_name(name)
    wanted = bare_name(_GPU_ALIASES.get(wanted, wanted))
    return next((entry for entry in GPUS if bare_name(entry.name) == wanted), None)


def cpu_family(name: str) -> str:
    """Canonical name of a known CPU, the trimmed name of another one."""
    entry = find_cpu(name)
    return entry.name if entry else name.strip()


def gpu_family(name: str) -> str:
    """Canonical name of a known GPU, the trimmed name of another one."""
    entry = find_gpu(name)
    return entry.name if entry else name.strip()
