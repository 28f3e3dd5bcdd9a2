"""Random Nodes with their NodeHardware: known, vendor-spelled, invented and nameless models."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracle.rules.values import Obj

CPU_SPELLINGS = {
    "EPYC 9654": ["AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654", "epyc 9654"],
    "EPYC 9534": ["AMD EPYC 9534 64-Core Processor"],
    "EPYC 9655": ["AMD EPYC 9655 96-Core Processor"],
    "EPYC 9965": ["AMD EPYC 9965 192-Core Processor"],
    "EPYC 9375F": ["AMD EPYC 9375F 32-Core Processor"],
    "Xeon Gold 6530": ["INTEL(R) XEON(R) GOLD 6530", "Intel(R) Xeon(R) Gold 6530"],
}
CPU_CORES = {
    "EPYC 9654": 96,
    "EPYC 9534": 64,
    "EPYC 9655": 96,
    "EPYC 9965": 192,
    "EPYC 9375F": 32,
    "Xeon Gold 6530": 32,
}
CPU_MAX_W = {
    "EPYC 9654": 400,
    "EPYC 9534": 300,
    "EPYC 9655": 400,
    "EPYC 9965": 500,
    "EPYC 9375F": 400,
    "Xeon Gold 6530": 270,
}
GPU_SPELLINGS = {
    "H100 NVL": ["NVIDIA H100 NVL", "NVIDIA-H100-NVL"],
    "H100 SXM": ["NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"],
    "A100 SXM": ["NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB"],
    "L40S": ["NVIDIA L40S", "NVIDIA-L40S"],
    "MI300X": ["AMD Instinct MI300X"],
    "Radeon PRO W7900": ["AMD Radeon PRO W7900"],
}
GPU_MAX_W = {
    "H100 NVL": 400,
    "H100 SXM": 700,
    "A100 SXM": 400,
    "L40S": 350,
    "MI300X": 750,
    "Radeon PRO W7900": 295,
}
GPU_VENDOR = {
    "H100 NVL": "NVIDIA",
    "H100 SXM": "NVIDIA",
    "A100 SXM": "NVIDIA",
    "L40S": "NVIDIA",
    "MI300X": "AMD",
    "Radeon PRO W7900": "AMD",
}
INVENTED_CPUS = ["Zetta Core 7", "Quux Server CPU 12"]
INVENTED_GPUS = {"Zetta Accel Z9": "NVIDIA", "Quux Tensor Q4": "AMD", "Plain Board 1": "Plain"}


@dataclass(frozen=True)
class Machine:
    """What a node really is; objects tell more or less of it. Empty model: its name is unknown."""

    cpu: str
    sockets: int
    cores: int
    gpu: str
    gpu_vendor: str
    gpus: int


def whole(rng: Random, value: float) -> float:
    """The same number as JSON would carry it: whole ones as int or as float."""
    return int(value) if float(value).is_integer() and rng.random() < 0.6 else float(value)


def label_text(model: str) -> str:
    """A model's name as a label value may hold it."""
    return model.replace("(R)", "").replace(" ", "-")


def random_machine(rng: Random) -> Machine:
    """One machine; few models, so that families and densities repeat."""
    cpu = rng.choice([*CPU_CORES, *CPU_CORES, *INVENTED_CPUS, ""])
    sockets = rng.choice([1, 2, 2, 4])
    cores = sockets * (CPU_CORES.get(cpu) or rng.choice([4, 8, 24, 48, 128]))
    if rng.random() < 0.5:
        return Machine(cpu, sockets, cores, "", "", 0)
    gpu = rng.choice([*GPU_MAX_W, *GPU_MAX_W, *INVENTED_GPUS, ""])
    vendor = GPU_VENDOR.get(gpu) or INVENTED_GPUS.get(gpu) or rng.choice(["NVIDIA", "AMD"])
    return Machine(cpu, sockets, cores, gpu, vendor, rng.choice([1, 2, 4, 8, 8, 10]))


def random_node(rng: Random, name: str, machine: Machine, contested: bool) -> list[Obj]:
    """The Node and, mostly, its NodeHardware. Together they tell sockets and GPU count."""
    hardware = _hardware(rng, machine) if rng.random() < 0.65 else {}
    cpu_told, gpu_told = hardware.get("cpu", {}), hardware.get("gpu", {})
    labels = _role_labels(rng) | _cpu_labels(rng, machine, cpu_told, contested) | _nfd_labels(rng, machine)
    capacity = _capacity(rng, machine, "totalCores" in cpu_told, contested)
    if machine.gpus:
        labels |= _gpu_labels(rng, machine, gpu_told)
        capacity["amd.com/gpu" if machine.gpu_vendor == "AMD" else "nvidia.com/gpu"] = str(machine.gpus)
    ready = {"type": "Ready", "status": "False" if rng.random() < 0.1 else "True"}
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True} if rng.random() < 0.12 else {},
        "status": {"capacity": capacity, "allocatable": dict(capacity), "conditions": [ready]},
    }
    if not hardware:
        return [node]
    told = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeHardware",
        "metadata": {"name": name},
        "status": hardware,
    }
    return [node, told]


def _role_labels(rng: Random) -> dict[str, str]:
    """Scope, place and what selectors look at."""
    candidates = {
        "joulie.io/managed": (0.94, ["true"] * 14 + ["false"]),
        "joulie.io/reserved": (0.12, ["true", "true", "false", "yes"]),
        "joulie.io/rack": (0.6, ["r1", "r2", "r3"]),
        "joulie.io/cooling-zone": (0.2, ["z1", "z2"]),
        "joulie.io/power-profile": (0.4, ["performance", "eco"]),
        "team": (0.3, ["a", "b", "c"]),
        "generation": (0.3, ["3", "5", "7", "old"]),
    }
    return {key: rng.choice(values) for key, (share, values) in candidates.items() if rng.random() < share}


def _nfd_labels(rng: Random, machine: Machine) -> dict[str, str]:
    """What Node Feature Discovery writes: no product names, and the display device of the board's controller."""
    if rng.random() < 0.7:
        return {}
    nfd = "feature.node.kubernetes.io"
    labels = {f"{nfd}/pci-0300_1a03.present": "true"}
    if rng.random() < 0.7:
        vendor, family, model = rng.choice([("AMD", "25", "17"), ("Intel", "6", "143")])
        labels |= {f"{nfd}/cpu-model.vendor_id": vendor, f"{nfd}/cpu-model.family": family}
        labels |= {f"{nfd}/cpu-model.id": model}
    if machine.gpus and rng.random() < 0.7:
        board = "1200_1002" if machine.gpu_vendor == "AMD" else rng.choice(["0302_10de", "0302_10de_2330"])
        labels[f"{nfd}/pci-{board}.present"] = "true"
    return labels


def _is_named(told: Obj) -> bool:
    return "model" in told or "rawModel" in told


def _cpu_labels(rng: Random, machine: Machine, told: Obj, contested: bool) -> dict[str, str]:
    labels = {}
    if machine.cpu and rng.random() < (0.3 if _is_named(told) else 0.8):
        labels["joulie.io/hw.cpu-model"] = _label_spelling(rng, machine.cpu, CPU_SPELLINGS)
    if told.get("model") and rng.random() < 0.15:
        labels["joulie.io/hw.cpu-model"] = "Overruled-CPU"
    if "sockets" in told and rng.random() < 0.15:
        labels["joulie.io/hw.cpu-sockets"] = rng.choice(["8", "two"])
    if "sockets" not in told and not (contested and rng.random() < 0.3):
        labels["joulie.io/hw.cpu-sockets"] = str(machine.sockets)
    return labels


def _gpu_labels(rng: Random, machine: Machine, told: Obj) -> dict[str, str]:
    labels = {}
    vendor = "amd.com" if machine.gpu_vendor == "AMD" else "nvidia.com"
    if rng.random() < 0.3:
        labels["joulie.io/hw.gpu-count"] = str(machine.gpus + ("count" in told and rng.choice([0, 0, 1])))
    if machine.gpu and rng.random() < (0.3 if _is_named(told) else 0.9):
        names = ["joulie.io/hw.gpu-model", "joulie.io/gpu.product", f"{vendor}/gpu.product"]
        key = rng.choice([*names, "amd.com/gpu.product-name"] if vendor == "amd.com" else names)
        labels[key] = _label_spelling(rng, machine.gpu, GPU_SPELLINGS)
        if rng.random() < 0.2:
            labels[f"{vendor}/gpu.family"] = "AI"
    if (_is_named(told) or "capRangePerGpu" not in told) and rng.random() < 0.15:
        other = "MI300X" if machine.gpu_vendor == "AMD" else "L40S"
        labels[rng.choice(["joulie.io/hw.gpu-model", "joulie.io/gpu.product", f"{vendor}/gpu.product"])] = other
    return labels


def _label_spelling(rng: Random, model: str, spellings: dict[str, list[str]]) -> str:
    return label_text(rng.choice([model, *spellings.get(model, [])]))


def _capacity(rng: Random, machine: Machine, cores_told: bool, contested: bool) -> dict[str, Any]:
    """Capacity; hardware threads (twice the cores) only where NodeHardware tells the cores."""
    threads = machine.cores * (2 if (cores_told or contested) and rng.random() < 0.5 else 1)
    if cores_told and rng.random() < 0.1:
        return {"memory": "256Gi", "pods": "110"}
    cpu: Any = rng.choice([str(threads), str(threads), threads, f"{threads * 1000}m"])
    return {"cpu": cpu, "memory": "1056Gi", "pods": "110"}


def _hardware(rng: Random, machine: Machine) -> Obj:
    """NodeHardware.status with parts left out and range ends zero, negative or absent."""
    status: Obj = {"cpu": _cpu_status(rng, machine), "quality": {"overall": "heuristic"}}
    if rng.random() < 0.04:
        status["cpu"] |= rng.choice([{"sockets": 33}, {"totalCores": 9000}, {"capRange": {"maxWattsPerSocket": 1501}}])
    if machine.gpus and rng.random() < 0.85:
        status["gpu"] = _gpu_status(rng, machine)
        if rng.random() < 0.06:
            status["gpu"] |= rng.choice([{"count": 64}, {"capRangePerGpu": {"maxWatts": 10_000}}])
    elif not machine.gpus and rng.random() < 0.4:
        status["gpu"] = {"present": False, "count": 0}
    return status


def _cpu_status(rng: Random, machine: Machine) -> Obj:
    cpu: Obj = {}
    if machine.cpu and rng.random() < 0.7:
        cpu["model"] = rng.choice([machine.cpu] * 6 + [""])
    if machine.cpu and rng.random() < 0.6:
        cpu["rawModel"] = rng.choice([machine.cpu, f" {machine.cpu} ", *CPU_SPELLINGS.get(machine.cpu, [])])
        if cpu.get("model") and rng.random() < 0.2:
            cpu["rawModel"] = "Overruled CPU"
    if rng.random() < 0.8:
        cpu["sockets"] = whole(rng, machine.sockets)
    if rng.random() < 0.7:
        cpu["totalCores"] = whole(rng, machine.cores)
    if rng.random() < 0.6:
        cpu["capRange"] = _range(rng, "minWattsPerSocket", "maxWattsPerSocket", CPU_MAX_W.get(machine.cpu, 240))
    return cpu


def _gpu_status(rng: Random, machine: Machine) -> Obj:
    gpu: Obj = {"present": True}
    if rng.random() < 0.8:
        gpu["count"] = whole(rng, machine.gpus)
    if machine.gpu and rng.random() < 0.6:
        gpu["model"] = machine.gpu
    if machine.gpu and rng.random() < 0.5:
        gpu["rawModel"] = rng.choice([machine.gpu, *GPU_SPELLINGS.get(machine.gpu, [])])
    if rng.random() < 0.6:
        gpu["vendor"] = rng.choice([machine.gpu_vendor, machine.gpu_vendor.lower()])
    if rng.random() < 0.6:
        gpu["capRangePerGpu"] = _range(rng, "minWatts", "maxWatts", GPU_MAX_W.get(machine.gpu, 300))
    return gpu


def _range(rng: Random, low_key: str, high_key: str, top: float) -> Obj:
    """A cap range near ``top``; either end may be missing in one of the ways that count as such."""
    low = rng.choice([0, -1, 0.0, top * 0.25, top * 0.4, top * 0.5, None])
    high = rng.choice([0, -5, top * 0.9, top, top, top, None])
    return {key: whole(rng, end) for key, end in ((low_key, low), (high_key, high)) if end is not None}
