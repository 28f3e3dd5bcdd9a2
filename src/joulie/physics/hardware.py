"""What a node is made of, from NodeHardware where an agent wrote it, else from labels and capacity.

Plan, twin and score all read hardware through `machine_of`, so they never disagree about a maximum.

The rules: docs/reference/behaviour.md, 'Resolving hardware'.
"""

from __future__ import annotations

from msgspec import Struct

from joulie.catalogue.entries import CURVE_SOCKETS, CpuModel, GpuModel, words
from joulie.catalogue.lookup import Catalogue
from joulie.model import names
from joulie.model.api import NodeHardware
from joulie.model.api.hardware import CpuHardware, GpuHardware
from joulie.model.snapshot import Node
from joulie.physics.plausibility import MAX_BOARDS, believable, label_count, nfd_cpu_name, nfd_gpu_vendor
from joulie.settings import HardwareSettings
from joulie.settings.parsing import GpuModelCaps

UNKNOWN_BOOST_GHZ = 3.0
UNKNOWN_CPU_MIN_W = 150.0
UNKNOWN_CPU_W_PER_CORE = 3.5
UNKNOWN_GPU_W = 350.0
UNKNOWN_AMD_GPU_W = 400.0
IDLE_SHARE = 0.2  # of the maximum, where no curve is known

_AMD_WORDS = frozenset(("amd", "advanced", "instinct", "radeon"))


class Machine(Struct, frozen=True, gc=False):
    """A node's resolved hardware; watts are for the whole node unless the name says otherwise.

    Cores are physical. Where nothing states the number of sockets it is 1; a cap for each package needs no such number,
    only totals of the node do.
    """

    node: str
    family: str
    cpu_name: str | None
    gpu_name: str | None
    sockets: float
    cores: float
    boost_ghz: float
    cpu_max_w: float
    cpu_min_w: float  # 0: no minimum is stated
    cpu_max_known: bool  # False: cpu_max_w is an estimate from the number of cores
    cpu_watts_floor_w: float  # the lowest cap in watts: the minimum, or where none is stated a share of the maximum
    gpu_count: float
    gpu_max_w_each: float  # 0 without a GPU
    gpu_min_w_each: float
    gpu_max_known: bool
    idle_w: float
    share_cores: float  # what a pod's CPU request is a share of
    share_gpus: float
    cpu_curve_w: tuple[float, ...] | None = None  # of a two-socket server

    @property
    def gpu_max_w(self) -> float:
        return self.gpu_count * self.gpu_max_w_each

    @property
    def max_w(self) -> float:
        return self.cpu_max_w + self.gpu_max_w

    @property
    def cpu_floor_pct(self) -> float:
        """The lowest CPU cap in percent that the hardware takes."""
        return min(100.0, 100.0 * self.cpu_min_w / self.cpu_max_w)

    @property
    def gpu_floor_pct(self) -> float:
        return min(100.0, 100.0 * self.gpu_min_w_each / self.gpu_max_w_each) if self.gpu_max_w_each else 0.0


def machine_of(node: Node, hardware: NodeHardware | None, settings: HardwareSettings, catalogue: Catalogue) -> Machine:
    """The node's hardware, each fact from the first source that has it."""
    cpu, gpu = believable(hardware)
    labels = node.labels

    cpu_name = _first_name(cpu.model, cpu.raw_model, labels.get(names.CPU_MODEL_LABEL)) or nfd_cpu_name(labels)
    cpu_model = catalogue.cpu(cpu_name)
    sockets = _positive(cpu.sockets) or label_count(labels, names.CPU_SOCKETS_LABEL) or 1.0
    cores = _positive(cpu.total_cores) or (cpu_model.cores * sockets if cpu_model else node.capacity_cores)
    cpu_max_w, cpu_max_known = _cpu_max_w(cpu, cpu_model, sockets, cores)
    cap_range = cpu.cap_range
    cpu_min_w = (_positive(cap_range.min_watts_per_socket) or 0.0) * sockets if cap_range else 0.0

    gpu_count = _gpu_count(node, gpu)
    gpu_name, gpu_min_w, gpu_max_w, gpu_max_known = None, 0.0, 0.0, False
    if gpu_count:
        gpu_name = _gpu_name(node, gpu, settings)
        gpu_min_w, gpu_max_w, gpu_max_known = _gpu_range_w(node, gpu, gpu_name, settings, catalogue)
    gpu_model = catalogue.gpu(gpu_name)
    if gpu_count:
        family = gpu_model.name if gpu_model else gpu_name
    else:
        family = cpu_model.name if cpu_model else cpu_name
    return Machine(
        node=node.name,
        family=family or f"unknown/{node.name}",
        cpu_name=cpu_model.name if cpu_model else cpu_name,
        gpu_name=gpu_model.name if gpu_model else gpu_name,
        sockets=sockets,
        cores=cores,
        boost_ghz=cpu_model.boost_ghz if cpu_model else UNKNOWN_BOOST_GHZ,
        cpu_max_w=cpu_max_w,
        cpu_min_w=cpu_min_w,
        cpu_max_known=cpu_max_known,
        cpu_watts_floor_w=min(cpu_max_w, cpu_min_w or cpu_max_w * settings.cpu_min_cap_pct / 100.0),
        gpu_count=gpu_count,
        gpu_max_w_each=gpu_max_w,
        gpu_min_w_each=gpu_min_w,
        gpu_max_known=gpu_max_known,
        idle_w=_cpu_idle_w(cpu_model, sockets, cpu_max_w) + IDLE_SHARE * gpu_count * gpu_max_w,
        share_cores=node.capacity_cores or cores,
        share_gpus=node.capacity_gpus or gpu_count,
        cpu_curve_w=cpu_model.node_curve_w if cpu_model else None,
    )


def _first_name(*candidates: str | None) -> str | None:
    return next((name.strip() for name in candidates if name and name.strip()), None)


def _positive(value: float | None) -> float | None:
    """A range end or count that is zero, negative or absent counts as absent."""
    return value if value is not None and value > 0 else None


def _cpu_max_w(cpu: CpuHardware, model: CpuModel | None, sockets: float, cores: float) -> tuple[float, bool]:
    stated = _positive(cpu.cap_range.max_watts_per_socket) if cpu.cap_range else None
    if stated is None and model is not None:
        stated = model.max_w
    if stated is not None:
        return stated * sockets, True
    return max(UNKNOWN_CPU_MIN_W, UNKNOWN_CPU_W_PER_CORE * cores), False


def _cpu_idle_w(model: CpuModel | None, sockets: float, cpu_max_w: float) -> float:
    if model is not None and model.node_idle_w is not None:
        return model.node_idle_w * sockets / CURVE_SOCKETS
    return IDLE_SHARE * cpu_max_w


def _gpu_count(node: Node, gpu: GpuHardware) -> float:
    if gpu.present is False:
        return 0.0
    if gpu.count is not None:
        return gpu.count
    labelled = label_count(node.labels, names.GPU_COUNT_LABEL)
    return min(node.capacity_gpus, MAX_BOARDS) if labelled is None else labelled


def _gpu_name(node: Node, gpu: GpuHardware, settings: HardwareSettings) -> str | None:
    labels = node.labels
    products = (labels.get(key) for key in settings.gpu_product_label_keys)
    return _first_name(gpu.model, gpu.raw_model, labels.get(names.GPU_MODEL_LABEL), *products)


def _gpu_range_w(
    node: Node, gpu: GpuHardware, name: str | None, settings: HardwareSettings, catalogue: Catalogue
) -> tuple[float, float, bool]:
    """Lowest and highest cap of each GPU, and whether the highest is known; each end by itself."""
    low = high = None
    if gpu.cap_range_per_gpu is not None:
        low, high = _positive(gpu.cap_range_per_gpu.min_watts), _positive(gpu.cap_range_per_gpu.max_watts)
    model = catalogue.gpu(name)
    configured = _configured_caps(name, settings, catalogue)
    if configured is not None:
        low, high = low or _positive(configured.min_cap_watts), high or _positive(configured.max_cap_watts)
    if model is not None:
        low, high = low or model.min_w, high or model.max_w
    if high is None:
        amd = _is_amd(node, gpu, name, settings)
        return low or 0.0, UNKNOWN_AMD_GPU_W if amd else UNKNOWN_GPU_W, False
    return low or 0.0, high, True


def _configured_caps(name: str | None, settings: HardwareSettings, catalogue: Catalogue) -> GpuModelCaps | None:
    """The entry of GPU_MODEL_CAPS_JSON for a model, whichever of its names the entry uses."""
    if name is None or not settings.gpu_model_caps:
        return None
    exact = settings.gpu_model_caps.get(name)
    if exact is not None:
        return exact
    model = catalogue.gpu(name)
    same = (key for key in sorted(settings.gpu_model_caps) if _same_model(key, name, model, catalogue))
    return next((settings.gpu_model_caps[key] for key in same), None)


def _same_model(key: str, name: str, model: GpuModel | None, catalogue: Catalogue) -> bool:
    return key.strip() == name or (model is not None and catalogue.gpu(key) is model)


def _is_amd(node: Node, gpu: GpuHardware, name: str | None, settings: HardwareSettings) -> bool:
    """By the vendor that is stated, else by the name, the label that gave it, the resource offered, or PCI devices."""
    if gpu.vendor is not None and gpu.vendor.strip():
        return not _AMD_WORDS.isdisjoint(words(gpu.vendor))
    if name is not None and not _AMD_WORDS.isdisjoint(words(name)):
        return True
    given_by = next((key for key in settings.gpu_product_label_keys if node.labels.get(key, "").strip() == name), "")
    if given_by.startswith("amd.com/") or (node.capacity_amd_gpus > 0 and node.capacity_nvidia_gpus == 0):
        return True
    return not node.capacity_nvidia_gpus and nfd_gpu_vendor(node.labels) == "amd"
