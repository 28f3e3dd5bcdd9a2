"""What a node tells: telemetry, limits, the whole state, energy. Plain dictionaries, named as over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joulie.plant.machines import GPU_FREQUENCY_FLOOR
from joulie.plant.node_hardware import hardware_status

if TYPE_CHECKING:
    from joulie.simulator.simulation import Simulation


def _r(value: Any, digits: int = 3) -> float:
    """Rounded; whole numbers as integers, because readers written in Go refuse `40.0` for an integer field."""
    rounded = round(float(value), digits)
    return int(rounded) if rounded.is_integer() else rounded


def telemetry(simulation: Simulation, place: int) -> dict[str, Any]:
    """`GET /telemetry/{node}`: at the top level CPUs and GPUs together, in `cpu` and `gpu` each for itself."""
    fleet, load = simulation.fleet, simulation.load
    cpus = fleet.cpus
    boards = fleet.boards_of(place)
    cpu_average_w, cpu_instant_w = cpus.average_w[place], cpus.power_w[place]
    return {
        "node": simulation.nodes[place].name,
        "ts": simulation.stepped_at_s,
        "packagePowerWatts": _r(cpu_average_w + fleet.gpus.average_w[boards].sum()),
        "instantPackagePowerWatts": _r(cpu_instant_w + fleet.gpus.power_w[boards].sum()),
        "cpu": {
            "packagePowerWatts": _r(cpu_average_w),
            "instantPowerWatts": _r(cpu_instant_w),
            "utilization": _r(load.cpu[place], 4),
            "memoryIntensity": _r(load.memory_intensity[place], 4),
            "ioIntensity": _r(load.io_intensity[place], 4),
            "freqScale": _r(cpus.frequency[place], 4),
            "temperatureC": _r(cpus.temperature_c[place], 2),
            "thermalThrottlePct": _r(100.0 * cpus.thermal_throttle[place], 2),
            **_cpu_limits(simulation, place),
        },
        "gpu": _gpu_telemetry(simulation, place),
    }


def _gpu_telemetry(simulation: Simulation, place: int) -> dict[str, Any]:
    machine = simulation.nodes[place].machine
    if machine.gpu is None:
        return {"present": False, "count": 0}
    boards = simulation.fleet.boards_of(place)
    gpus = simulation.fleet.gpus
    power_w, average_w = gpus.power_w[boards], gpus.average_w[boards]
    use, throttle = simulation.load.gpu[boards], gpus.thermal_throttle[boards]
    limits_w, temperature_c = gpus.cap_w[boards].tolist(), gpus.temperature_c[boards].tolist()
    return {
        "present": True,
        "vendor": machine.gpu.vendor,
        "model": machine.gpu.name,
        "count": machine.gpus,
        "powerWattsTotal": _r(power_w.sum()),
        "avgPowerWattsTotal": _r(average_w.sum()),
        "utilization": _r(use.mean(), 4),
        **_gpu_limits(simulation, place),
        "devices": [
            {
                "index": index,
                "powerWatts": _r(watts),
                "avgPowerWatts": _r(average),
                "utilization": _r(busy, 4),
                "temperatureC": _r(temperature, 2),
                "thermalThrottlePct": _r(100.0 * hot, 2),
                "freqScale": _r(1.0 - hot * (1.0 - GPU_FREQUENCY_FLOOR), 4),
                "capWattsApplied": _r(limit),
            }
            for index, (watts, average, busy, temperature, hot, limit) in enumerate(
                zip(
                    power_w.tolist(),
                    average_w.tolist(),
                    use.tolist(),
                    temperature_c,
                    throttle.tolist(),
                    limits_w,
                    strict=True,
                )
            )
        ],
    }


def _cpu_limits(simulation: Simulation, place: int) -> dict[str, Any]:
    """What was accepted (null: no cap), and how far the hardware has followed."""
    cpus = simulation.fleet.cpus
    target_w = _r(cpus.cap_target_w[place]) if cpus.cap_is_set[place] else None
    return {
        "capWatts": target_w,
        "targetCapWatts": target_w,
        "capWattsApplied": _r(cpus.cap_w[place]),
        "throttlePct": _r(cpus.throttle_target_pct[place]),
        "throttlePctApplied": _r(cpus.throttle_pct[place]),
    }


def _gpu_limits(simulation: Simulation, place: int) -> dict[str, Any]:
    first, gpus = int(simulation.fleet.gpu_start[place]), simulation.fleet.gpus
    return {
        "capWattsPerGpuTarget": _r(gpus.cap_target_w[first]) if gpus.cap_is_set[first] else None,
        "capWattsPerGpuApplied": _r(gpus.cap_w[first]),
    }


def limits(simulation: Simulation, place: int) -> dict[str, Any]:
    """The limits of a node: the answer to a command."""
    has_gpu = simulation.nodes[place].machine.gpu is not None
    return {
        "cpu": _cpu_limits(simulation, place),
        "gpu": _gpu_limits(simulation, place) if has_gpu else None,
    }


def state(simulation: Simulation, place: int) -> dict[str, Any]:
    """`GET /state/{node}`: everything, the hardware as NodeHardware.status."""
    node, fleet = simulation.nodes[place], simulation.fleet
    machine = node.machine
    boards = fleet.boards_of(place)
    shown = limits(simulation, place)
    shown["cpu"] |= {
        "capRangeWatts": {"min": machine.cpu.min_w, "max": machine.cpu.cap_max_w},
        "speed": _r(fleet.cpus.speed[place], 4),
        "workCoreSeconds": _r(fleet.cpus.work_s[place]),
    }
    gpu_cap_w = None
    if machine.gpu is not None:
        gpu_cap_w = _r(fleet.gpus.cap_target_w[boards][0])
        shown["gpu"] |= {
            "capRangeWatts": {"min": machine.gpu.min_w, "max": machine.gpu.max_w},
            "speed": _r(fleet.gpus.speed[boards].mean(), 4),
            "workGpuSeconds": _r(fleet.gpus.work_s[boards].sum()),
        }
    now_s = simulation.clock()
    return {
        "node": node.name,
        "ts": simulation.stepped_at_s,
        "rack": node.rack,
        "zone": node.zone,
        "hardware": hardware_status(node.machine, gpu_cap_w),
        **shown,
        "power": power(simulation, place),
        "energy": energy(simulation, place),
        "inletC": _r(simulation.facility.inlet_c[place], 2),
        "faults": [fault for fault in simulation.faults.listed(now_s) if fault["node"] == node.name],
    }


def power(simulation: Simulation, place: int) -> dict[str, float]:
    """Watts of the last step; node = cpu + gpu + rest, at the wall."""
    fleet = simulation.fleet
    gpu_w = fleet.gpus.power_w[fleet.boards_of(place)].sum()
    return {
        "cpuWatts": _r(fleet.cpus.power_w[place]),
        "gpuWatts": _r(gpu_w),
        "restWatts": _r(fleet.rest_w[place]),
        "nodeWatts": _r(fleet.node_w[place]),
    }


def energy(simulation: Simulation, place: int) -> dict[str, float]:
    """Joules since the node appeared."""
    fleet = simulation.fleet
    cpu_j, rest_j = fleet.cpus.energy_j[place], fleet.rest_energy_j[place]
    gpu_j = fleet.gpus.energy_j[fleet.boards_of(place)].sum()
    return {
        "cpuJoules": _r(cpu_j),
        "gpuJoules": _r(gpu_j),
        "restJoules": _r(rest_j),
        "nodeJoules": _r(cpu_j + gpu_j + rest_j),
    }


def all_nodes(simulation: Simulation) -> list[dict[str, Any]]:
    """`GET /debug/nodes`: limits and power of every node, in one answer."""
    return [
        {
            "node": node.name,
            "rack": node.rack,
            "zone": node.zone,
            **limits(simulation, place),
            "power": power(simulation, place),
        }
        for place, node in enumerate(simulation.nodes)
    ]


def all_energy(simulation: Simulation) -> dict[str, Any]:
    """`GET /debug/energy`: the counters of nodes and building."""
    cooling = simulation.facility.cooling
    it_j = float(cooling.it_energy_j.sum())  # nodes that have left included
    fans_j, compressor_j = float(cooling.fan_energy_j.sum()), float(cooling.compressor_energy_j.sum())
    return {
        "elapsedSeconds": simulation.elapsed_s,
        "itJoules": _r(it_j),
        "fanJoules": _r(fans_j),
        "compressorJoules": _r(compressor_j),
        "facilityJoules": _r(it_j + fans_j + compressor_j),
        "nodes": {node.name: energy(simulation, place) for place, node in enumerate(simulation.nodes)},
    }
