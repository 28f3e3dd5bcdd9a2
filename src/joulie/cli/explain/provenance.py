"""Where each fact about a node's hardware comes from.

`machine_of` alone resolves each fact. This module checks its sources again, in the same order, for the first one that
gives the same value; so the source it names always agrees with the value.
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
from joulie.physics.plausibility import believable, nfd_cpu_name
from joulie.settings import HardwareSettings

UNKNOWN_SOURCE = "unknown"


class HardwareFact(NamedTuple):
    """A resolved value and its source."""

    name: str
    value: float | str | None
    unit: str
    source: str


class SourceValue(NamedTuple):
    """The value that one source gives, if any."""

    name: str
    value: float | str | None


def facts(
    machine: Machine, node: Node, hardware: NodeHardware | None, settings: HardwareSettings, catalogue: Catalogue
) -> list[HardwareFact]:
    """The node's hardware as Joulie resolved it."""
    cpu, gpu = believable(hardware)
    return [*_cpu_facts(machine, node, cpu, catalogue), *_gpu_facts(machine, node, gpu, settings, catalogue)]


def _cpu_facts(machine: Machine, node: Node, cpu: CpuHardware, catalogue: Catalogue) -> list[HardwareFact]:
    model, cap_range, sockets = catalogue.cpu(machine.cpu_name), cpu.cap_range, machine.sockets
    known = [
        SourceValue("NodeHardware cpu.model", _catalogued(catalogue.cpu(cpu.model), cpu.model)),
        SourceValue("NodeHardware cpu.rawModel", _catalogued(catalogue.cpu(cpu.raw_model), cpu.raw_model)),
        _label(node, names.CPU_MODEL_LABEL, catalogue.cpu(node.labels.get(names.CPU_MODEL_LABEL))),
        SourceValue("labels of Node Feature Discovery", nfd_cpu_name(node.labels)),
    ]
    highest = [
        SourceValue(
            "NodeHardware cpu.capRange × sockets",
            _times(cap_range.max_watts_per_socket if cap_range else None, sockets),
        ),
        SourceValue("catalogue × sockets", _times(model.max_w if model else None, sockets)),
        SourceValue("estimate: 3.5 W per core, at least 150 W", None if machine.cpu_max_known else machine.cpu_max_w),
    ]
    lowest = SourceValue(
        "NodeHardware cpu.capRange × sockets", _times(cap_range.min_watts_per_socket if cap_range else None, sockets)
    )
    counted = [
        SourceValue("NodeHardware cpu.sockets", cpu.sockets),
        SourceValue(f"label {names.CPU_SOCKETS_LABEL}", _count(node, names.CPU_SOCKETS_LABEL)),
        SourceValue("assumed", 1.0),
    ]
    cores = [
        SourceValue("NodeHardware cpu.totalCores", cpu.total_cores),
        SourceValue("catalogue × sockets", _times(model.cores if model else None, sockets)),
        SourceValue("Node capacity", node.capacity_cores),
    ]
    idle = "catalogue curve" if machine.cpu_curve_w else "20 % of the CPU maximum"
    return [
        _fact("CPU", machine.cpu_name, "", known),
        _fact("sockets", sockets, "", counted),
        _fact("cores", machine.cores, "", cores),
        _fact("CPU maximum", machine.cpu_max_w, "W", highest),
        _fact("CPU minimum", machine.cpu_min_w or None, "W", [lowest]),
        HardwareFact("idle", machine.idle_w, "W", idle + (" + 20 % of the GPU maximum" if machine.gpu_count else "")),
    ]


def _gpu_facts(
    machine: Machine, node: Node, gpu: GpuHardware, settings: HardwareSettings, catalogue: Catalogue
) -> list[HardwareFact]:
    counted = [
        SourceValue("NodeHardware gpu", 0.0 if gpu.present is False else gpu.count),
        SourceValue(f"label {names.GPU_COUNT_LABEL}", _count(node, names.GPU_COUNT_LABEL)),
        SourceValue("Node capacity", node.capacity_gpus),
    ]
    count = _fact("GPUs", machine.gpu_count, "", counted)
    if not machine.gpu_count:
        return [count]
    model, cap_range = catalogue.gpu(machine.gpu_name), gpu.cap_range_per_gpu
    labels = (names.GPU_MODEL_LABEL, *settings.gpu_product_label_keys)
    known = [
        SourceValue("NodeHardware gpu.model", _catalogued(catalogue.gpu(gpu.model), gpu.model)),
        SourceValue("NodeHardware gpu.rawModel", _catalogued(catalogue.gpu(gpu.raw_model), gpu.raw_model)),
        *(_label(node, key, catalogue.gpu(node.labels.get(key))) for key in labels),
    ]
    set_caps = [
        caps
        for key, caps in settings.gpu_model_caps.items()
        if key.strip() == machine.gpu_name or (model is not None and catalogue.gpu(key) is model)
    ]
    highest = [
        SourceValue("NodeHardware gpu.capRangePerGpu", cap_range.max_watts if cap_range else None),
        *(SourceValue("GPU_MODEL_CAPS_JSON", caps.max_cap_watts) for caps in set_caps),
        SourceValue("catalogue", model.max_w if model else None),
        SourceValue("estimate for an unknown GPU", None if machine.gpu_max_known else machine.gpu_max_w_each),
    ]
    lowest = [
        SourceValue("NodeHardware gpu.capRangePerGpu", cap_range.min_watts if cap_range else None),
        *(SourceValue("GPU_MODEL_CAPS_JSON", caps.min_cap_watts) for caps in set_caps),
        SourceValue("catalogue", model.min_w if model else None),
    ]
    return [
        count,
        _fact("GPU", machine.gpu_name, "", known),
        _fact("GPU maximum", machine.gpu_max_w_each, "W each", highest),
        _fact("GPU minimum", machine.gpu_min_w_each or None, "W each", lowest),
    ]


def _fact(name: str, value: float | str | None, unit: str, sources: Sequence[SourceValue]) -> HardwareFact:
    agreeing = (source.name for source in sources if value is not None and source.value == value)
    return HardwareFact(name, value, unit, next(agreeing, UNKNOWN_SOURCE))


def _catalogued(model: object, name: str | None) -> str | None:
    """The name that `machine_of` resolves: the catalogue's, or else the trimmed one."""
    known = getattr(model, "name", None)
    return known if isinstance(known, str) else (name or "").strip() or None


def _label(node: Node, key: str, model: object) -> SourceValue:
    return SourceValue(f"label {key}", _catalogued(model, node.labels.get(key)))


def _count(node: Node, key: str) -> float | None:
    text = node.labels.get(key, "")
    return float(text) if text.isdecimal() and text.isascii() else None


def _times(each: float | None, sockets: float) -> float | None:
    return None if each is None else each * sockets
