"""What labels and NodeHardware say about a node's hardware, and whether it can be true.

A node's own agent or kubelet writes these. One node that claims the hardware of a whole hall would outrank all others,
so a part that states more than any machine has is treated as absent, and a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from joulie.model import names
from joulie.model.api import NodeHardware
from joulie.model.api.hardware import CpuHardware, GpuCapRange, GpuHardware, SocketCapRange
from joulie.model.snapshot import Node

MAX_BOARDS = 32
MAX_BOARD_W = 2_000.0
MAX_SOCKET_W = 1_500.0
MAX_SOCKETS = 32
MAX_CORES = 8_192

NO_CPU, NO_GPU = CpuHardware(), GpuHardware()
_COUNT = re.compile(r"\d{1,5}", re.ASCII)
_NO_LINES: list[str] = []
_NO_SOCKET_RANGE, _NO_BOARD_RANGE = SocketCapRange(), GpuCapRange()

_NFD = "feature.node.kubernetes.io/"
_NFD_CPU = f"{_NFD}cpu-model."
_NFD_PCI = f"{_NFD}pci-"
# Display controllers, 3D controllers, other display devices and processing accelerators, by vendor.
_GPU_CLASSES = ("0300", "0302", "0380", "1200")
_GPU_VENDORS: Mapping[str, Literal["nvidia", "amd"]] = {"10de": "nvidia", "1002": "amd"}


def believable(hardware: NodeHardware | None) -> tuple[CpuHardware, GpuHardware]:
    """The CPU and GPU part of NodeHardware; empty where a part is absent or cannot be true."""
    status = hardware.status if hardware else None
    if status is None:
        return NO_CPU, NO_GPU
    cpu, gpu = status.cpu or NO_CPU, status.gpu or NO_GPU
    return (
        NO_CPU if cpu is not NO_CPU and any(_cpu_excess(cpu)) else cpu,
        NO_GPU if gpu is not NO_GPU and any(_gpu_excess(gpu)) else gpu,
    )


def hardware_warnings(node: Node, hardware: NodeHardware | None) -> list[str]:
    """What was stated about the node's hardware and is not believed."""
    lines = label_warnings(node)
    status = hardware.status if hardware else None
    if status is None:
        return lines
    for part, excess in (("cpu", _cpu_excess(status.cpu or NO_CPU)), ("gpu", _gpu_excess(status.gpu or NO_GPU))):
        if (first := next(excess, None)) is not None:
            lines = [*lines, f"NodeHardware/{node.name}: status.{part}.{first}: implausible, status.{part} is ignored"]
    return lines


def _cpu_excess(cpu: CpuHardware) -> Iterator[str]:
    caps = cpu.cap_range or _NO_SOCKET_RANGE
    yield from _above("sockets", cpu.sockets, MAX_SOCKETS, "")
    yield from _above("totalCores", cpu.total_cores, MAX_CORES, "")
    yield from _above("coresPerSocket", cpu.cores_per_socket, MAX_CORES, "")
    yield from _above("capRange.maxWattsPerSocket", caps.max_watts_per_socket, MAX_SOCKET_W, " W a socket")
    yield from _above("capRange.minWattsPerSocket", caps.min_watts_per_socket, MAX_SOCKET_W, " W a socket")


def _gpu_excess(gpu: GpuHardware) -> Iterator[str]:
    caps = gpu.cap_range_per_gpu or _NO_BOARD_RANGE
    yield from _above("count", gpu.count, MAX_BOARDS, " boards")
    for name, watts in (("max", caps.max_watts), ("min", caps.min_watts), ("default", caps.default_watts)):
        yield from _above(f"capRangePerGpu.{name}Watts", watts, MAX_BOARD_W, " W a board")


def _above(field: str, value: float | None, most: float, unit: str) -> Iterator[str]:
    if value is not None and not value <= most:  # what is not a number is not below anything
        yield f"{field}: {value:g} is above the plausible maximum of {most:g}{unit}"


def label_count(labels: Mapping[str, str], key: str) -> float | None:
    """A count that a label states; None where it states none or one that cannot be true."""
    text = labels.get(key)
    if not text or not _COUNT.fullmatch(text):
        return None
    count = float(text)
    return count if count <= _MAX_OF_LABEL[key] else None


_MAX_OF_LABEL = {names.CPU_SOCKETS_LABEL: MAX_SOCKETS, names.GPU_COUNT_LABEL: MAX_BOARDS}


def label_warnings(node: Node) -> list[str]:
    """Warnings about hardware labels and capacity that hold no count, or an impossible one: they are ignored."""
    labels = node.labels
    sockets, gpus = labels.get(names.CPU_SOCKETS_LABEL), labels.get(names.GPU_COUNT_LABEL)
    if sockets is None and gpus is None and node.capacity_gpus <= MAX_BOARDS:
        return _NO_LINES
    lines = []
    for key, text in ((names.CPU_SOCKETS_LABEL, sockets), (names.GPU_COUNT_LABEL, gpus)):
        if text is None or label_count(labels, key) is not None:
            continue
        why = f"above the plausible maximum of {_MAX_OF_LABEL[key]}" if _COUNT.fullmatch(text) else "not a count"
        lines.append(f"Node/{node.name}: metadata.labels[{key}]: {text!r} is {why}, so it is ignored")
    if node.capacity_gpus > MAX_BOARDS:
        lines.append(
            f"Node/{node.name}: status.capacity: {node.capacity_gpus:g} GPUs are more than the plausible maximum of"
            f" {MAX_BOARDS} boards, which is used instead (shared GPUs are counted once for each share); "
            f"the label {names.GPU_COUNT_LABEL} can state the boards"
        )
    return lines


def nfd_cpu_name(labels: Mapping[str, str]) -> str | None:
    """`AMD family 25 model 17`, as Node Feature Discovery sees it: no product, but equal for equal machines."""
    vendor, family, model = (labels.get(f"{_NFD_CPU}{part}", "").strip() for part in ("vendor_id", "family", "id"))
    return f"{vendor} family {family} model {model}" if vendor and family and model else None


def nfd_cpu_vendor(labels: Mapping[str, str]) -> str | None:
    return labels.get(f"{_NFD_CPU}vendor_id", "").strip() or None


def nfd_gpu_vendor(labels: Mapping[str, str]) -> Literal["nvidia", "amd"] | None:
    """The vendor of the GPUs among the PCI devices that Node Feature Discovery lists; None: none, or both."""
    vendors = {
        vendor
        for key, value in labels.items()
        if key.startswith(_NFD_PCI) and value == "true" and (vendor := _pci_gpu_vendor(key)) is not None
    }
    return vendors.pop() if len(vendors) == 1 else None


def _pci_gpu_vendor(key: str) -> Literal["nvidia", "amd"] | None:
    """Of `…/pci-0302_10de.present`; further fields, such as the device, may follow the vendor."""
    name, _, feature = key.removeprefix(_NFD_PCI).partition(".")
    device_class, vendor, *_ = [*name.split("_"), ""]
    return _GPU_VENDORS.get(vendor) if feature == "present" and device_class in _GPU_CLASSES else None
