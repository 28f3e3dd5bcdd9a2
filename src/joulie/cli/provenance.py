"""Where each fact about a node's hardware comes from.

`machine_of` alone decides what a fact is. Here its sources are asked once more, in the same order, for the first that
says the same; so a source that is named here always agrees with the value beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from joulie.catalogue.lookup import Catalogue
from joulie.model import names
from joulie.model.api import NodeHardware
from joulie.model.api.hardware import CpuHardware, GpuHardware
from joulie.model.snapshot import Node
from joulie.physics.hardware import Machine
from joulie.settings import HardwareSettings

NOBODY = "nobody says"


class Fact(NamedTuple):
    """A resolved value, and who says so."""

    name: str
    value: float | str | None
    unit: str
    source: str


class Said(NamedTuple):
    """What one source says, if anything."""

    source: str
    value: float | str | None


def facts(
    machine: Machine, node: Node, hardware: NodeHardware | None, settings: HardwareSettings, catalogue: Catalogue
) -> list[Fact]:
    """What Joulie takes the node for."""
    status = hardware.status if hardware else None
    cpu = (status and status.cpu) or CpuHardware()
    gpu = (status and status.gpu) or GpuHardware()
    return [*_cpu_facts(machine, node, cpu, catalogue), *_gpu_facts(machine, node, gpu, settings, catalogue)]


def _cpu_facts(machine: Machine, node: Node, cpu: CpuHardware, catalogue: Catalogue) -> list[Fact]:
    model, cap_range, sockets = catalogue.cpu(machine.cpu_name), cpu.cap_range, machine.sockets
    known = [
        Said("NodeHardware cpu.model", _catalogued(catalogue.cpu(cpu.model), cpu.model)),
        Said("NodeHardware cpu.rawModel", _catalogued(catalogue.cpu(cpu.raw_model), cpu.raw_model)),
        _label(node, names.CPU_MODEL_LABEL, catalogue.cpu(node.labels.get(names.CPU_MODEL_LABEL))),
    ]
    highest = [
        Said(
            "NodeHardware cpu.capRange × sockets",
            _times(cap_range.max_watts_per_socket if cap_range else None, sockets),
        ),
        Said("catalogue × sockets", _times(model.max_w if model else None, sockets)),
        Said("estimate: 3.5 W a core, at least 150 W", None if machine.cpu_max_known else machine.cpu_max_w),
    ]
    lowest = Said(
        "NodeHardware cpu.capRange × sockets", _times(cap_range.min_watts_per_socket if cap_range else None, sockets)
    )
    counted = [
        Said("NodeHardware cpu.sockets", cpu.sockets),
        Said(f"label {names.CPU_SOCKETS_LABEL}", _count(node, names.CPU_SOCKETS_LABEL)),
        Said("assumed", 1.0),
    ]
    cores = [Said("NodeHardware cpu.totalCores", cpu.total_cores), Said("Node capacity", node.capacity_cores)]
    idle = "catalogue curve" if machine.cpu_curve_w else "20 % of the CPU maximum"
    return [
        _fact("CPU", machine.cpu_name, "", known),
        _fact("sockets", sockets, "", counted),
        _fact("cores", machine.cores, "", cores),
        _fact("CPU maximum", machine.cpu_max_w, "W", highest),
        _fact("CPU minimum", machine.cpu_min_w or None, "W", [lowest]),
        Fact("idle", machine.idle_w, "W", idle + (" + 20 % of the GPU maximum" if machine.gpu_count else "")),
    ]


def _gpu_facts(
    machine: Machine, node: Node, gpu: GpuHardware, settings: HardwareSettings, catalogue: Catalogue
) -> list[Fact]:
    counted = [
        Said("NodeHardware gpu", 0.0 if gpu.present is False else gpu.count),
        Said(f"label {names.GPU_COUNT_LABEL}", _count(node, names.GPU_COUNT_LABEL)),
        Said("Node capacity", node.capacity_gpus),
    ]
    count = _fact("GPUs", machine.gpu_count, "", counted)
    if not machine.gpu_count:
        return [count]
    model, cap_range = catalogue.gpu(machine.gpu_name), gpu.cap_range_per_gpu
    labels = (names.GPU_MODEL_LABEL, *settings.gpu_product_label_keys)
    known = [
        Said("NodeHardware gpu.model", _catalogued(catalogue.gpu(gpu.model), gpu.model)),
        Said("NodeHardware gpu.rawModel", _catalogued(catalogue.gpu(gpu.raw_model), gpu.raw_model)),
        *(_label(node, key, catalogue.gpu(node.labels.get(key))) for key in labels),
    ]
    set_caps = [
        caps
        for key, caps in settings.gpu_model_caps.items()
        if key.strip() == machine.gpu_name or (model is not None and catalogue.gpu(key) is model)
    ]
    highest = [
        Said("NodeHardware gpu.capRangePerGpu", cap_range.max_watts if cap_range else None),
        *(Said("GPU_MODEL_CAPS_JSON", caps.max_cap_watts) for caps in set_caps),
        Said("catalogue", model.max_w if model else None),
        Said("estimate for an unknown GPU", None if machine.gpu_max_known else machine.gpu_max_w_each),
    ]
    lowest = [
        Said("NodeHardware gpu.capRangePerGpu", cap_range.min_watts if cap_range else None),
        *(Said("GPU_MODEL_CAPS_JSON", caps.min_cap_watts) for caps in set_caps),
        Said("catalogue", model.min_w if model else None),
    ]
    return [
        count,
        _fact("GPU", machine.gpu_name, "", known),
        _fact("GPU maximum", machine.gpu_max_w_each, "W each", highest),
        _fact("GPU minimum", machine.gpu_min_w_each or None, "W each", lowest),
    ]


def _fact(name: str, value: float | str | None, unit: str, sources: Sequence[Said]) -> Fact:
    agreeing = (said.source for said in sources if value is not None and said.value == value)
    return Fact(name, value, unit, next(agreeing, NOBODY))


def _catalogued(model: object, name: str | None) -> str | None:
    """The name as `machine_of` has it: the catalogue's, else the trimmed one."""
    known = getattr(model, "name", None)
    return known if isinstance(known, str) else (name or "").strip() or None


def _label(node: Node, key: str, model: object) -> Said:
    return Said(f"label {key}", _catalogued(model, node.labels.get(key)))


def _count(node: Node, key: str) -> float | None:
    text = node.labels.get(key, "")
    return float(text) if text.isdecimal() and text.isascii() else None


def _times(each: float | None, sockets: float) -> float | None:
    return None if each is None else each * sockets
