"""What is published as NodeHardware: what the backends found, completed by topology, labels and catalogue. Pure.

What is not known is absent, never 0. `quality` says how certain each part is; overall it is the worst of
the parts that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from joulie.agent.outcome import CapLimits
from joulie.catalogue.lookup import Catalogue
from joulie.devices.interface import Discovered
from joulie.devices.topology import Topology
from joulie.model import names
from joulie.model.api import NodeHardware, NodeHardwareStatus
from joulie.model.api.fields import DEVICE_WATTS_LIMIT
from joulie.model.api.hardware import (
    Capabilities,
    CpuHardware,
    GpuCapRange,
    GpuHardware,
    Memory,
    Quality,
    QualityLevel,
    SocketCapRange,
)
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node
from joulie.physics.hardware import machine_of
from joulie.physics.plausibility import MAX_BOARDS, label_count, nfd_cpu_name, nfd_cpu_vendor, nfd_gpu_vendor
from joulie.settings import HardwareSettings

_WORST_FIRST: tuple[QualityLevel, ...] = ("unavailable", "heuristic", "exact")
_NO_TOPOLOGY = Topology()
MAX_WARNINGS, MAX_WARNING_LENGTH, MAX_MODEL_LENGTH = 20, 500, 256


def hardware_of(
    node: Node,
    found: Sequence[Discovered],
    topology: Topology | None,
    told: NodeHardwareStatus | None,
    settings: HardwareSettings,
    catalogue: Catalogue,
    *,
    gpus_elsewhere: bool = False,
) -> NodeHardwareStatus:
    """The node's hardware. `told`: what an endpoint says of its own hardware, which is then believed.

    `gpus_elsewhere`: its GPUs are reached by another way, so the endpoint does not speak for them.
    """
    gpu_found = [each for each in found if each.kind == "gpu"]
    if told is not None:
        if gpus_elsewhere and (told.gpu is None or any(each.present for each in gpu_found)):
            told = replace(told, gpu=_gpu(node, gpu_found, settings, catalogue), capabilities=None, quality=None)
        return _completed(told)
    cpu = _cpu(node, [each for each in found if each.kind == "cpu"], topology or _NO_TOPOLOGY, catalogue)
    gpu = _gpu(node, gpu_found, settings, catalogue)
    memory = topology.memory_bytes if topology else None
    return _completed(NodeHardwareStatus(cpu=cpu, gpu=gpu, memory=None if memory is None else Memory(memory)))


def limits_of(node: Node, hardware: NodeHardwareStatus, settings: HardwareSettings, catalogue: Catalogue) -> CapLimits:
    """Highest and lowest caps, exactly as the operator resolves them: percent means the same to both."""
    whole = NodeHardware(ObjectMeta(name=node.name), status=hardware)
    machine = machine_of(node, whole, settings, catalogue)
    default = hardware.gpu.cap_range_per_gpu.default_watts if hardware.gpu and hardware.gpu.cap_range_per_gpu else None
    return CapLimits(
        cpu_max_w=machine.cpu_max_w if machine.cpu_max_known else None,
        cpu_floor_w=machine.cpu_watts_floor_w if machine.cpu_max_known else None,
        cpu_packages=machine.sockets,
        gpu_max_w_each=machine.gpu_max_w_each if machine.gpu_max_known else None,
        gpu_default_w_each=_watts(default),
    )


def _cpu(node: Node, found: Sequence[Discovered], topology: Topology, catalogue: Catalogue) -> CpuHardware:
    labels = node.labels
    there = [each for each in found if each.present]
    raw = _name(topology.raw_model or _first(each.raw_model for each in there))
    named = raw or labels.get(names.CPU_MODEL_LABEL) or nfd_cpu_name(labels)
    model = catalogue.cpu(named)
    # A backend that takes watts knows the packages, even where it may not be used; a frequency policy is no package.
    by_watts = sorted((each for each in there if each.counts_packages), key=lambda each: each.no_control is not None)
    capper = next((each for each in by_watts if each.no_control is None or each.max_w is not None), None)
    sockets = topology.sockets or (capper.count if capper else None) or label_count(labels, names.CPU_SOCKETS_LABEL)
    # Physical cores, never the capacity, which counts threads: readers fall back to that by themselves.
    cores = topology.total_cores or (model.cores * sockets if model and sockets else None)
    control = any(each.no_control is None for each in there)
    reasons = [f"{each.backend}: {each.no_control}" for each in found if each.no_control]
    warnings = [*topology.warnings, *(text for each in there for text in each.warnings)]
    return CpuHardware(
        raw_model=named,
        model=model.name if model else None,
        vendor=topology.vendor or _first(each.vendor for each in there) or nfd_cpu_vendor(labels),
        sockets=sockets,
        total_cores=cores,
        cores_per_socket=topology.cores_per_socket,
        driver_family=topology.driver_family,
        cap_range=_socket_range(capper, sockets),
        control_available=control,
        telemetry_available=any(each.no_telemetry is None for each in there),
        quality=_cpu_quality(topology, raw, capper, control),
        warnings=_shown([*warnings, *([] if control else reasons)]),
    )


def _cpu_quality(topology: Topology, raw: str | None, capper: Discovered | None, control: bool) -> QualityLevel:
    """Exact: the hardware itself says what it is and how far it goes."""
    if raw is None and not control:
        return "unavailable"
    if capper is None or capper.max_w is None or raw is None or topology.sockets is None:
        return "heuristic"
    return capper.quality


def _socket_range(capper: Discovered | None, sockets: float | None) -> SocketCapRange | None:
    """For each socket; a package of several dies is counted by its dies."""
    if capper is None:
        return None
    packages_per_socket = capper.count / sockets if sockets and capper.count > sockets else 1.0
    ends = [_watts(end, packages_per_socket) for end in (capper.min_w, capper.max_w)]
    return None if ends == [None, None] else SocketCapRange(*ends)


def _gpu(node: Node, found: Sequence[Discovered], settings: HardwareSettings, catalogue: Catalogue) -> GpuHardware:
    there = sorted((each for each in found if each.present and each.count), key=lambda each: -each.count)
    labels = node.labels
    promised = label_count(labels, names.GPU_COUNT_LABEL) or min(node.capacity_gpus, MAX_BOARDS)
    on_the_bus = nfd_gpu_vendor(labels)
    named = labels.get(names.GPU_MODEL_LABEL) or _first(labels.get(key) for key in settings.gpu_product_label_keys)
    reasons = [f"{each.backend}: {each.no_control}" for each in found if each.no_control]
    if not there:
        if not promised:
            return GpuHardware(present=False, vendor=on_the_bus, warnings=_shown(_unseen(on_the_bus, found)))
        model = catalogue.gpu(named)
        return GpuHardware(
            present=True,
            raw_model=named,
            model=model.name if model else None,
            vendor=model.vendor if model else on_the_bus,
            count=promised,
            control_available=False,
            telemetry_available=False,
            quality="heuristic" if named else "unavailable",
            warnings=_shown(["the node advertises GPUs that this agent cannot see", *reasons]),
        )
    first = there[0]
    model = catalogue.gpu(first.raw_model or named)
    warnings = [text for each in there for text in each.warnings]
    if len(there) > 1:
        warnings.append(f"GPUs of several vendors; count and ranges are those of {first.backend}")
    quality = first.quality if first.raw_model else "heuristic"
    return GpuHardware(
        present=True,
        raw_model=_name(first.raw_model or named),
        model=model.name if model else None,
        vendor=first.vendor or (model.vendor if model else None),
        count=first.count,
        cap_range_per_gpu=_gpu_range(first),
        current_cap_watts=None,  # it moves with every target; what is enforced stands in the twin
        control_available=first.no_control is None,
        telemetry_available=first.no_telemetry is None,
        quality=quality,
        warnings=_shown([*warnings, *([] if first.no_control is None else reasons)]),
    )


def _unseen(vendor: str | None, found: Sequence[Discovered]) -> list[str]:
    """A board on the PCI bus that no driver shows: no cap can reach it, which deserves a warning."""
    reasons = [f"{each.backend}: {each.no_control}" for each in found if each.backend == vendor]
    return [f"NFD lists a PCI device of {vendor}, but no driver shows a board", *reasons] if vendor else []


def _gpu_range(board: Discovered) -> GpuCapRange | None:
    ends = [_watts(end) for end in (board.min_w, board.max_w, board.default_w)]
    return None if ends == [None, None, None] else GpuCapRange(*ends)


def _completed(status: NodeHardwareStatus) -> NodeHardwareStatus:
    """With the capabilities and the overall quality that follow from the parts, where they are not stated."""
    cpu, gpu = status.cpu or CpuHardware(), status.gpu or GpuHardware()
    capabilities = status.capabilities or Capabilities(
        cpu_control=cpu.control_available,
        gpu_control=bool(gpu.present and gpu.control_available),
        cpu_telemetry=cpu.telemetry_available,
        gpu_telemetry=bool(gpu.present and gpu.telemetry_available),
    )
    parts = [part.quality for part in (status.cpu, status.gpu) if part is not None and part.quality is not None]
    overall: QualityLevel = next((level for level in _WORST_FIRST if level in parts), "unavailable")
    quality = status.quality or Quality(overall, _shown([*(cpu.warnings or ()), *(gpu.warnings or ())]))
    return replace(status, capabilities=capabilities, quality=quality)


def _shown(warnings: Iterable[str]) -> list[str] | None:
    """Each once, cut to length; None where there is none."""
    unique = list(dict.fromkeys(text[:MAX_WARNING_LENGTH] for text in warnings))
    return unique[:MAX_WARNINGS] or None


def _watts(value: float | None, times: float = 1.0) -> float | None:
    """Of one socket or board; what cannot be true is not known."""
    return value * times if value is not None and 0 < value * times <= DEVICE_WATTS_LIMIT else None


def _name(text: str | None) -> str | None:
    return text[:MAX_MODEL_LENGTH] if text else None


def _first(candidates: Iterable[Any]) -> Any:
    return next((value for value in candidates if value), None)
