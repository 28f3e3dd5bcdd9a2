"""The models that Joulie ships with.

Limits are the vendors' published ones; the lowest limits of NVIDIA's boards are those that its tools report. Curves are
SPECpower_ssj2008 results of two-socket servers, quoted as published (fair use: with
their source, and no metric of the benchmark derived from them).
"""

from __future__ import annotations

from joulie.catalogue.entries import CpuModel, GpuModel

_AMD = "AMD product specification"
_LOWEST = "lowest limit as nvidia-smi reports it"
_SPEC = f"{_AMD}; curve: SPECpower_ssj2008 published result, two sockets"

CPUS: tuple[CpuModel, ...] = (
    CpuModel(
        "EPYC 9654", 96, 2.4, 3.7, 360, "measured", _SPEC, 320, 400,
        (128, 257, 300, 340, 378, 410, 442, 498, 577, 697, 817),
    ),
    CpuModel("EPYC 9534", 64, 2.45, 3.7, 280, "official", _AMD, 240, 300),
    CpuModel(
        "EPYC 9655", 96, 2.6, 4.5, 400, "measured", _SPEC, 320, 400,
        (138, 297, 367, 438, 515, 593, 661, 710, 771, 812, 861),
    ),
    CpuModel(
        "EPYC 9965", 192, 2.25, 3.7, 500, "measured", _SPEC, 450, 500,
        (157, 265, 314, 362, 412, 461, 503, 544, 587, 661, 800),
    ),
    CpuModel("EPYC 9375F", 32, 3.8, 4.8, 320, "official", _AMD, 320, 400),
    CpuModel("Xeon Gold 6530", 32, 2.1, 4.0, 270, "official", "Intel product specification"),
)  # fmt: skip

GPUS: tuple[GpuModel, ...] = (
    GpuModel("H100 NVL", "nvidia", 400, "official", f"NVIDIA H100 NVL product brief; {_LOWEST}", 200),
    GpuModel(
        "H100 SXM", "nvidia", 700, "official", f"NVIDIA H100 data sheet; {_LOWEST}", 200,
        ("H100 SXM5", "H100 80GB HBM3"),
    ),
    GpuModel("A100 PCIe 40GB", "nvidia", 250, "official", f"NVIDIA A100 data sheet; {_LOWEST}", 100),
    GpuModel("A100 PCIe", "nvidia", 300, "official", f"NVIDIA A100 data sheet; {_LOWEST}", 100),
    GpuModel("A100 SXM", "nvidia", 400, "official", f"NVIDIA A100 data sheet; {_LOWEST}", 100, ("A100 SXM4", "A100")),
    GpuModel("L40S", "nvidia", 350, "official", f"NVIDIA L40S data sheet; {_LOWEST}", 100),
    GpuModel("MI300X", "amd", 750, "official", "AMD Instinct MI300X data sheet", 350),
    GpuModel("Radeon PRO W7900", "amd", 295, "official", "AMD Radeon PRO W7900 data sheet", 200, ("W7900",)),
)  # fmt: skip
