"""The nodes of a run: as the plant has them, and as operator and extender would see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.setup import ClusterSetup, NodeGroup
from joulie.model import names
from joulie.model.api import NodeHardware
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node
from joulie.physics.hardware import Machine as Recognised
from joulie.physics.hardware import machine_of
from joulie.plant.fleet import wall_max_w
from joulie.plant.machines import PlantMachine, cpu_kind, gpu_kind
from joulie.plant.node_hardware import hardware_status
from joulie.plant.reference import cpu_core_speed, gpu_speed
from joulie.settings import HardwareSettings

MAX_NODES = 1_000_000


@dataclass(frozen=True, slots=True)
class LabCluster:
    """Nodes in the order of their names, which is their order everywhere."""

    names: tuple[str, ...]
    nodes: dict[str, Node]
    hardware: dict[str, NodeHardware]
    machines: tuple[PlantMachine, ...]  # the truth
    recognised: tuple[Recognised, ...]  # what decisions know
    core_speed: NDArray[np.float64]  # over the reference devices'
    gpu_speed: NDArray[np.float64]
    zone_of: NDArray[np.int32]
    zones: tuple[str, ...]
    wall_max_w: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)


def lab_cluster(
    setup: ClusterSetup, catalogue: Catalogue | None = None, settings: HardwareSettings | None = None
) -> LabCluster:
    """Groups one after the other, racks filled in that order; InputError for unknown hardware."""
    catalogue, settings = catalogue or Catalogue(), settings or HardwareSettings()
    total = sum(group.count for group in setup.nodes)
    if not 0 < total <= MAX_NODES:
        raise InputError(f"cluster.nodes: {total} nodes; a run has 1 to {MAX_NODES:,}")
    digits = max(5, len(str(total - 1)))
    nodes: dict[str, Node] = {}
    hardware: dict[str, NodeHardware] = {}
    machines: list[PlantMachine] = []
    recognised: list[Recognised] = []
    for index, group in enumerate(setup.nodes):
        machine = _machine(group, f"cluster.nodes[{index}]", catalogue)
        reported = hardware_status(machine)
        for _ in range(group.count):
            name = f"node-{len(machines):0{digits}d}"
            nodes[name] = _node(name, len(machines), machine, setup, group.labels)
            hardware[name] = NodeHardware(ObjectMeta(name=name), status=reported)
            machines.append(machine)
            recognised.append(machine_of(nodes[name], hardware[name], settings, catalogue))
    per_zone = setup.nodes_per_rack * setup.racks_per_zone
    zone_of = np.arange(total, dtype=np.int32) // per_zone
    return LabCluster(
        tuple(nodes),
        nodes,
        hardware,
        tuple(machines),
        tuple(recognised),
        np.array([cpu_core_speed(catalogue.cpu(machine.cpu.name)) for machine in machines]),
        np.array([gpu_speed(machine.gpu) if machine.gpu else 0.0 for machine in machines]),
        zone_of.astype(np.int32),
        tuple(f"zone-{number}" for number in range(int(zone_of[-1]) + 1)),
        np.array([wall_max_w(machine) for machine in machines]),
    )


def _machine(group: NodeGroup, where: str, catalogue: Catalogue) -> PlantMachine:
    cpu = catalogue.cpu(group.cpu)
    if cpu is None:
        known = ", ".join(model.name for model in catalogue.cpus)
        raise InputError(f"{where}.cpu: {group.cpu!r} is not in the catalogue; it has: {known}")
    if bool(group.gpu) != bool(group.gpus):
        raise InputError(f"{where}: gpu and gpus go together, got gpu {group.gpu!r} and gpus {group.gpus}")
    if not group.gpu:
        return PlantMachine(cpu_kind(cpu, group.sockets))
    gpu = catalogue.gpu(group.gpu)
    if gpu is None:
        known = ", ".join(model.name for model in catalogue.gpus)
        raise InputError(f"{where}.gpu: {group.gpu!r} is not in the catalogue; it has: {known}")
    return PlantMachine(cpu_kind(cpu, group.sockets), gpu_kind(gpu), group.gpus)


def _node(name: str, place: int, machine: PlantMachine, setup: ClusterSetup, more: dict[str, str]) -> Node:
    rack = place // setup.nodes_per_rack
    labels = {
        **more,
        names.MANAGED_LABEL: "true",
        names.RACK_LABEL: f"rack-{rack}",
        names.COOLING_ZONE_LABEL: f"zone-{rack // setup.racks_per_zone}",
    }
    amd = machine.gpu is not None and machine.gpu.vendor == "amd"
    return Node(
        name,
        labels,
        capacity_cores=machine.cpu.cores,
        capacity_nvidia_gpus=0.0 if amd else float(machine.gpus),
        capacity_amd_gpus=float(machine.gpus) if amd else 0.0,
    )
