"""How simulated hardware reports itself, as NodeHardware.status."""

from __future__ import annotations

from joulie.model.api.hardware import (
    Capabilities,
    CpuHardware,
    GpuCapRange,
    GpuHardware,
    NodeHardwareStatus,
    Quality,
    SocketCapRange,
)
from joulie.plant.machines import GpuKind, PlantMachine

DRIVER = "joulie-simulator"
_AMD_CPU_WORDS, _INTEL_CPU_WORDS = ("epyc", "amd"), ("xeon", "intel")


def hardware_status(machine: PlantMachine, gpu_cap_w: float | None = None) -> NodeHardwareStatus:
    """As NodeHardware.status: this hardware knows itself exactly."""
    cpu, gpu = machine.cpu, machine.gpu
    has_gpu = gpu is not None
    return NodeHardwareStatus(
        cpu=CpuHardware(
            raw_model=cpu.name,
            model=cpu.name,
            vendor=_cpu_vendor(cpu.name),
            sockets=cpu.sockets,
            total_cores=cpu.cores,
            cores_per_socket=float(cpu.cores // cpu.sockets),
            driver_family=DRIVER,
            cap_range=SocketCapRange(cpu.min_w / cpu.sockets, cpu.cap_max_w / cpu.sockets),
            control_available=True,
            telemetry_available=True,
            quality="exact",
        ),
        gpu=GpuHardware(present=False, count=0) if gpu is None else _gpu_hardware(gpu, machine.gpus, gpu_cap_w),
        capabilities=Capabilities(cpu_control=True, gpu_control=has_gpu, cpu_telemetry=True, gpu_telemetry=has_gpu),
        quality=Quality(overall="exact"),
    )


def _gpu_hardware(gpu: GpuKind, count: int, cap_w: float | None) -> GpuHardware:
    return GpuHardware(
        present=True,
        raw_model=gpu.name,
        model=gpu.name,
        vendor=gpu.vendor,
        count=count,
        cap_range_per_gpu=GpuCapRange(gpu.min_w, gpu.max_w, gpu.max_w),
        current_cap_watts=cap_w,
        control_available=True,
        telemetry_available=True,
        quality="exact",
    )


def _cpu_vendor(name: str | None) -> str | None:
    lowered = (name or "").lower()
    if any(word in lowered for word in _AMD_CPU_WORDS):
        return "amd"
    return "intel" if any(word in lowered for word in _INTEL_CPU_WORDS) else None
