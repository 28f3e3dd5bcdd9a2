"""The order in which policies consider nodes: by compute density, highest first, ties by name.

The rules: docs/reference/behaviour.md, 'Density'.
"""

from __future__ import annotations

from collections.abc import Sequence

from joulie.physics.hardware import Machine


def density_parts(machines: Sequence[Machine]) -> list[tuple[float, float]]:
    """CPU and GPU part of each machine, relative to the largest here: 0 to 1."""
    cpu = [machine.cores * machine.boost_ghz for machine in machines]
    gpu = [machine.gpu_max_w for machine in machines]
    largest_cpu, largest_gpu = max(cpu, default=0.0) or 1.0, max(gpu, default=0.0) or 1.0
    return [(c / largest_cpu, g / largest_gpu) for c, g in zip(cpu, gpu, strict=True)]


def planning_densities(machines: Sequence[Machine]) -> list[float]:
    """Both parts added, 0 to 2; rounded so that equal hardware stays equal whatever the order of arithmetic."""
    return [round(cpu + gpu, 9) for cpu, gpu in density_parts(machines)]


def densest_first(densities: Sequence[float]) -> list[int]:
    """Positions in the policy's order; equal densities keep their order, which must be that of the names."""
    return sorted(range(len(densities)), key=densities.__getitem__, reverse=True)
