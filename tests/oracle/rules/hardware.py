"""What a node is made of: identity, counts, watts (section 13; shared by plan, twin and score)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.oracle.rules.catalogue import cpu_family, find_cpu, find_gpu, gpu_family
from tests.oracle.rules.settings import Settings
from tests.oracle.rules.snapshot import Snapshot, labels_of
from tests.oracle.rules.values import Obj, dig, number, parse_quantity, positive, text

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
UNKNOWN_BOOST_GHZ = 3.0


@dataclass(frozen=True)
class Hardware:
    """Resolved hardware of one node. CPU watts are of the whole node, GPU watts per board."""

    family: str
    sockets: float
    cores: float
    boost_ghz: float
    cpu_max_w: float
    cpu_max_known: bool
    cpu_min_w: float | None
    cpu_min_cap_pct: float
    cpu_idle_w: float
    gpu_count: float
    gpu_max_w: float
    gpu_max_known: bool
    gpu_min_w: float | None
    share_cores: float
    share_gpus: float

    @property
    def gpu_total_w(self) -> float:
        """Maximum of all boards together."""
        return self.gpu_count * self.gpu_max_w


def hardware_of(name: str, snapshot: Snapshot, settings: Settings) -> Hardware:
    """Resolve one node from NodeHardware, labels, settings, catalogue and capacity."""
    node = snapshot.nodes[name]
    labels = labels_of(node)
    status = dig(snapshot.hardware.get(name), "status") or {}
    cpu, gpu = _plausible_cpu(dig(status, "cpu") or {}), _plausible_gpu(dig(status, "gpu") or {})

    cpu_model = _first_text(
        cpu.get("model"), cpu.get("rawModel"), labels.get("joulie.io/hw.cpu-model"), _nfd_cpu(labels)
    )
    known_cpu = find_cpu(cpu_model) if cpu_model else None
    sockets = positive(cpu.get("sockets")) or _positive_label(labels.get("joulie.io/hw.cpu-sockets")) or 1.0
    capacity_cores = parse_quantity(dig(node, "status", "capacity", "cpu")) or 0.0
    catalogue_cores = known_cpu.cores * sockets if known_cpu else None
    cores = positive(cpu.get("totalCores")) or catalogue_cores or capacity_cores
    max_per_socket = positive(dig(cpu, "capRange", "maxWattsPerSocket"))
    if max_per_socket is None and known_cpu is not None:
        max_per_socket = known_cpu.ctdp_max_w or known_cpu.tdp_w
    min_per_socket = positive(dig(cpu, "capRange", "minWattsPerSocket"))
    cpu_max_w = max_per_socket * sockets if max_per_socket else max(150.0, 3.5 * cores)
    curve_idle_w = known_cpu.curve_idle_w if known_cpu else None

    count, capacity_gpus = _gpu_count(gpu, labels, node), _capacity_gpus(node)
    product_labels = [labels.get(key) for key in settings.gpu_label_keys]
    gpu_model = _first_text(
        gpu.get("model"), gpu.get("rawModel"), labels.get("joulie.io/hw.gpu-model"), *product_labels
    )
    known_gpu = find_gpu(gpu_model) if gpu_model else None
    stated = _model_caps(gpu_model, settings)
    gpu_max_w = (
        positive(dig(gpu, "capRangePerGpu", "maxWatts"))
        or positive(stated.get("maxCapWatts"))
        or (known_gpu.max_w if known_gpu else None)
    )
    gpu_min_w = (
        positive(dig(gpu, "capRangePerGpu", "minWatts"))
        or positive(stated.get("minCapWatts"))
        or (known_gpu.min_w if known_gpu else None)
    )
    fallback_gpu_w = 400.0 if _is_amd_gpu(gpu, gpu_model, labels, node, settings) else 350.0

    if count > 0:
        family = gpu_family(gpu_model) if gpu_model else f"unknown/{name}"
    else:
        family = cpu_family(cpu_model) if cpu_model else f"unknown/{name}"
    return Hardware(
        family=family,
        sockets=sockets,
        cores=cores,
        boost_ghz=known_cpu.boost_ghz if known_cpu else UNKNOWN_BOOST_GHZ,
        cpu_max_w=cpu_max_w,
        cpu_max_known=max_per_socket is not None,
        cpu_min_w=min_per_socket * sockets if min_per_socket else None,
        cpu_min_cap_pct=settings.cpu_min_cap_pct,
        cpu_idle_w=curve_idle_w * sockets / 2 if curve_idle_w else 0.2 * cpu_max_w,
        gpu_count=count,
        gpu_max_w=(gpu_max_w or fallback_gpu_w) if count > 0 else 0.0,
        gpu_max_known=gpu_max_w is not None,
        gpu_min_w=gpu_min_w,
        share_cores=capacity_cores if capacity_cores > 0 else cores,
        share_gpus=capacity_gpus if capacity_gpus > 0 else count,
    )


def _plausible_cpu(cpu: Obj) -> Obj:
    """Nothing of the part counts where a socket takes over 1.5 kW or there are more than any machine has."""
    caps = dig(cpu, "capRange") or {}
    watts = max(number(caps.get(end)) or 0.0 for end in ("minWattsPerSocket", "maxWattsPerSocket"))
    cores = max(number(cpu.get(count)) or 0.0 for count in ("totalCores", "coresPerSocket"))
    return {} if watts > 1500 or cores > 8192 or (number(cpu.get("sockets")) or 0.0) > 32 else cpu


def _plausible_gpu(gpu: Obj) -> Obj:
    """Nothing of the part counts where there are over 32 boards or one takes over 2 kW."""
    caps = dig(gpu, "capRangePerGpu") or {}
    watts = max(number(caps.get(end)) or 0.0 for end in ("minWatts", "maxWatts", "defaultWatts"))
    return {} if watts > 2000 or (number(gpu.get("count")) or 0.0) > 32 else gpu


def _nfd_cpu(labels: Obj) -> str:
    """What Node Feature Discovery tells of a CPU, as a name."""
    parts = [text(labels.get(f"feature.node.kubernetes.io/cpu-model.{part}")) for part in ("vendor_id", "family", "id")]
    return f"{parts[0]} family {parts[1]} model {parts[2]}" if all(parts) else ""


def _first_text(*candidates: Any) -> str:
    """The first candidate that is a text with something in it, trimmed."""
    return next((text(candidate) for candidate in candidates if text(candidate)), "")


def _whole_label(value: Any) -> float | None:
    return float(value) if isinstance(value, str) and value.strip().isdecimal() else None


def _positive_label(value: Any) -> float | None:
    return positive(_whole_label(value))


def _capacity_gpus(node: Obj) -> float:
    return sum(parse_quantity(dig(node, "status", "capacity", resource)) or 0.0 for resource in GPU_RESOURCES)


def _gpu_count(gpu: Obj, labels: Obj, node: Obj) -> float:
    """NodeHardware, then the label, then capacity; NodeHardware that says "not present" says zero."""
    if gpu.get("present") is False:
        return 0.0
    stated = number(gpu.get("count"))
    if stated is not None and stated >= 0:
        return stated
    labelled = _whole_label(labels.get("joulie.io/hw.gpu-count"))
    return labelled if labelled is not None else _capacity_gpus(node)


def _model_caps(gpu_model: str, settings: Settings) -> Obj:
    """The entry of ``GPU_MODEL_CAPS_JSON`` whose key names the same model, under any spelling."""
    if not gpu_model:
        return {}
    wanted = gpu_family(gpu_model)
    return next((caps for key, caps in settings.gpu_model_caps.items() if gpu_family(key) == wanted), {})


def _is_amd_gpu(gpu: Obj, gpu_model: str, labels: Obj, node: Obj, settings: Settings) -> bool:
    """Vendor: NodeHardware, else the model's name, else the naming label, else capacity."""
    vendor = text(gpu.get("vendor")).lower()
    if vendor:
        return vendor in ("amd", "advanced micro devices, inc.")
    name = gpu_model.lower()
    if any(word in name for word in ("amd", "radeon", "instinct")):
        return True
    if "nvidia" in name:
        return False
    if gpu_model and not text(labels.get("joulie.io/hw.gpu-model")):
        source = next((key for key in settings.gpu_label_keys if text(labels.get(key)) == gpu_model), "")
        if source.startswith(("amd.com/", "nvidia.com/")):
            return source.startswith("amd.com/")
    have = {resource: parse_quantity(dig(node, "status", "capacity", resource)) or 0.0 for resource in GPU_RESOURCES}
    if have["nvidia.com/gpu"] > 0:
        return False
    return have["amd.com/gpu"] > 0 or _nfd_gpu_vendors(labels) == {"1002"}


def _nfd_gpu_vendors(labels: Obj) -> set[str]:
    """PCI vendors of the display devices and accelerators that Node Feature Discovery lists."""
    found = (
        re.fullmatch(r"feature\.node\.kubernetes\.io/pci-(0300|0302|0380|1200)_(10de|1002)(_\w+)?\.present", key)
        for key, value in labels.items()
        if value == "true"
    )
    return {match[2] for match in found if match}
