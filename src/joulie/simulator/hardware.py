"""What a simulated node is made of, from its labels, capacity and the catalogue."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from joulie.catalogue.lookup import Catalogue
from joulie.model import names
from joulie.model.api import NodeHardware
from joulie.model.snapshot import Node
from joulie.physics.hardware import Machine as Recognised
from joulie.physics.hardware import machine_of
from joulie.plant.machines import CpuKind, GpuKind, PlantMachine, cpu_kind, unknown_cpu, unknown_gpu
from joulie.settings import HardwareSettings


class SimulatedNode(Struct, frozen=True):
    """A node, its hardware and where it stands."""

    name: str
    machine: PlantMachine
    cores: float  # what a pod's CPU request is a share of
    rack: str = ""
    zone: str = ""


def simulated_node(
    node: Node, stated: NodeHardware | None, settings: HardwareSettings, catalogue: Catalogue
) -> SimulatedNode:
    """Hardware is recognised as plan and twin do it; its behaviour is the plant's."""
    recognised = machine_of(node, stated, settings, catalogue)
    gpu = _gpu(recognised, node, catalogue)
    return SimulatedNode(
        node.name,
        PlantMachine(_cpu(recognised, catalogue), gpu, int(recognised.gpu_count) if gpu else 0),
        recognised.share_cores or 1.0,
        node.labels.get(names.RACK_LABEL, ""),
        node.labels.get(names.COOLING_ZONE_LABEL, ""),
    )


def _cpu(recognised: Recognised, catalogue: Catalogue) -> CpuKind:
    """With the maximum that plan and twin know: a percentage has to mean the same watts to all of them."""
    sockets = max(1, int(recognised.sockets))
    model = catalogue.cpu(recognised.cpu_name)
    if model is not None:
        kind, max_w = _known_cpu(model, sockets), recognised.cpu_max_w
        return kind if kind.cap_max_w == max_w else replace(kind, cap_max_w=max_w, min_w=min(kind.min_w, max_w))
    return unknown_cpu(recognised.cpu_name, sockets, float(round(recognised.cores)) or 1.0, recognised.cpu_max_w)


_known_cpu = lru_cache(maxsize=256)(cpu_kind)


def _gpu(recognised: Recognised, node: Node, catalogue: Catalogue) -> GpuKind | None:
    if int(recognised.gpu_count) < 1:
        return None
    model = catalogue.gpu(recognised.gpu_name)
    if model is not None:
        vendor: str = model.vendor
    else:
        vendor = "amd" if node.capacity_amd_gpus > node.capacity_nvidia_gpus else "nvidia"
    return unknown_gpu(recognised.gpu_name, vendor, recognised.gpu_max_w_each, recognised.gpu_min_w_each)
