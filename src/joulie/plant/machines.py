"""What a simulated node is made of: its CPU packages and GPU boards with their limits, from the catalogue's models."""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from joulie.catalogue.entries import CpuModel, GpuModel
from joulie.plant.curves import FREQUENCY_EXPONENT, curve_shape, generic_shape
from joulie.plant.sweeps import SWEEPS, sweep_of

MIN_GHZ = 1.5  # the frequency floor of server CPUs (lowest P-state of EPYC)
UNKNOWN_BOOST_GHZ = 3.0
CPU_IDLE_SHARE = 0.2  # of the packages' maximum, where no curve is known
GPU_IDLE_SHARE = 0.12
GPU_FREQUENCY_FLOOR = 0.3


class CpuKind(Struct, frozen=True):
    """All CPU packages of one node together."""

    name: str | None
    sockets: int
    cores: float
    max_w: float  # TDP of all packages: what they draw at full load
    cap_max_w: float  # highest cap, as the catalogue has it: a configurable TDP may lie above what is drawn
    min_w: float  # lowest cap that can be held at any load: full load at the frequency floor
    boost_ghz: float
    frequency_floor: float  # of boost
    shape: tuple[float, ...]  # package power over maximum at 0, 1 … 100 % load

    @property
    def idle_w(self) -> float:
        return self.max_w * self.shape[0]


class GpuKind(Struct, frozen=True):
    """One GPU board."""

    name: str | None
    vendor: str
    max_w: float
    min_w: float
    sweep: str  # whose measured slowdown under caps it follows

    @property
    def idle_w(self) -> float:
        return self.max_w * GPU_IDLE_SHARE


class PlantMachine(Struct, frozen=True):
    """One node's hardware."""

    cpu: CpuKind
    gpu: GpuKind | None = None
    gpus: int = 0

    @property
    def max_w(self) -> float:
        """Packages and boards at their limits."""
        return self.cpu.max_w + (self.gpu.max_w * self.gpus if self.gpu else 0.0)


def cpu_kind(model: CpuModel, sockets: int) -> CpuKind:
    """Packages of a model that the catalogue knows."""
    shape = generic_shape(CPU_IDLE_SHARE) if model.node_curve_w is None else curve_shape(model.node_curve_w)
    kind = _cpu(model.name, sockets, model.cores * sockets, model.tdp_w * sockets, model.boost_ghz, shape)
    return replace(kind, cap_max_w=model.max_w * sockets)


def unknown_cpu(name: str | None, sockets: int, cores: float, max_w: float) -> CpuKind:
    """Packages of which only the size is known."""
    return _cpu(name, sockets, cores, max_w, UNKNOWN_BOOST_GHZ, generic_shape(CPU_IDLE_SHARE))


def gpu_kind(model: GpuModel) -> GpuKind:
    """A board that the catalogue knows."""
    return unknown_gpu(model.name, model.vendor, model.max_w, model.min_w or 0.0)


def unknown_gpu(name: str | None, vendor: str, max_w: float, min_w: float = 0.0) -> GpuKind:
    """A board of which only the limits are known.

    Nothing is known about speed below where its sweep begins, so it takes no lower limit, whatever a real one does.
    """
    sweep = sweep_of(name)
    return GpuKind(name, vendor, max_w, min(max_w, max(min_w, SWEEPS[sweep].shares[0] * max_w)), sweep)


def _cpu(
    name: str | None, sockets: int, cores: float, max_w: float, boost_ghz: float, shape: tuple[float, ...]
) -> CpuKind:
    floor = min(1.0, MIN_GHZ / boost_ghz)
    at_floor_w = max_w * (shape[0] + (1.0 - shape[0]) * floor**FREQUENCY_EXPONENT)
    min_w = min(max_w, math.ceil(at_floor_w / sockets) * float(sockets))
    return CpuKind(name, sockets, cores, max_w, max_w, min_w, boost_ghz, floor, shape)
