"""The models that Joulie ships with (SPEC section 9).

Limits are the vendors' published ones. Curves are SPECpower_ssj2008 results of two-socket servers, quoted as published
by SPEC (fair use: with their source, and no SPEC metric derived from them).
"""

from __future__ import annotations

from joulie.catalogue.entries import CpuModel, GpuModel

_AMD = "AMD product specification"
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
    GpuModel("H100 NVL", "nvidia", 400, "official", "NVIDIA H100 NVL product brief", 200),
    GpuModel(
        "H100 SXM", "nvidia", 700, "official", "NVIDIA H100 data sheet", 350, ("H100 SXM5", "H100 80GB HBM3")
    ),
    GpuModel("L40S", "nvidia", 350, "official", "NVIDIA L40S data sheet", 200),
    GpuModel("MI300X", "amd", 750, "official", "AMD Instinct MI300X data sheet", 350),
    GpuModel("Radeon PRO W7900", "amd", 295, "official", "AMD Radeon PRO W7900 data sheet", 200, ("W7900",)),
)  # fmt: skip
