"""How fast a core or a board is, uncapped, over the devices that work is counted in.

One cpuUnit is a core-second of an EPYC 9654, one gpuUnit a GPU-second of an H100 SXM. Peak rates stand for the speed of
real work here, which depends on the work: figures are official, their use is a proxy.
"""

from __future__ import annotations

from typing import NamedTuple

from joulie.catalogue.entries import CpuModel, Evidence, GpuModel, words
from joulie.plant.machines import GpuKind

REFERENCE_BOOST_GHZ = 3.7  # EPYC 9654
REFERENCE_BOARD_W = 700.0  # H100 SXM


class PeakRate(NamedTuple):
    """Dense 16-bit matrix throughput of one board, and how good the figure is."""

    tflops: float
    evidence: Evidence
    source: str


_A100 = PeakRate(312.0, "official", "NVIDIA A100 data sheet: BF16 tensor cores")
PEAK_RATES = {
    "H100 SXM": PeakRate(989.4, "official", "NVIDIA H100 data sheet: BF16 1,979 TFLOPS with sparsity, half without"),
    "H100 NVL": PeakRate(835.5, "official", "NVIDIA H100 data sheet: BF16 1,671 TFLOPS with sparsity, half without"),
    "A100 PCIe 40GB": _A100,
    "A100 PCIe": _A100,
    "A100 SXM": _A100,
    "L40S": PeakRate(362.05, "official", "NVIDIA L40S data sheet: BF16 tensor cores"),
    "MI300X": PeakRate(1307.4, "official", "AMD Instinct MI300X data sheet: BF16 matrix"),
    "Radeon PRO W7900": PeakRate(122.6, "official", "AMD Radeon PRO W7900 data sheet: FP16"),
}


def cpu_core_speed(model: CpuModel | None) -> float:
    """Of one core: boost frequency over the reference's, as in compute density (a proxy); an unknown CPU is 1."""
    return 1.0 if model is None else model.boost_ghz / REFERENCE_BOOST_GHZ


def gpu_speed(board: GpuModel | GpuKind) -> float:
    """Of one board: peak rate over the reference's; a board outside the table by its watts (a proxy)."""
    rate = _peak_rate(board)
    if rate is None:
        return board.max_w / REFERENCE_BOARD_W
    return rate.tflops / PEAK_RATES["H100 SXM"].tflops


def _peak_rate(board: GpuModel | GpuKind) -> PeakRate | None:
    there = set(words(board.name or ""))
    return next((rate for name, rate in PEAK_RATES.items() if there.issuperset(words(name))), None)
