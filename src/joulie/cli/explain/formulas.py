"""The twin's numbers with their formulas, filled in for one node.

The numbers come from the twin; this module only writes the formulas as text, and a test evaluates them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from joulie.cli.context import LoadedCluster
from joulie.cli.style import plain
from joulie.control.survey import BoundPods, MachineColumns
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.snapshot import Node
from joulie.physics.cooling import COMFORTABLE_C, STRESS_AT_REFERENCE, STRESS_PER_DEGREE, LinearCoolingModel
from joulie.physics.hardware import Machine


class Formula(NamedTuple):
    """A number of the twin and how it is calculated."""

    name: str
    value: float
    unit: str
    text: str


def formulas(cluster: LoadedCluster, node: Node, machine: Machine, row: int) -> list[Formula]:
    """For the node in this row of the plan's twins."""
    at = {name: column[row] for name, column in cluster.plan.twins.columns.items()}
    gpu = f" + {_n(machine.gpu_max_w)} W GPU × {_n(at['gpu_pct'])} %" if machine.gpu_count else ""
    return [
        Formula("budget", at["capped_w"], "W", f"{_n(machine.cpu_max_w)} W CPU × {_n(at['cpu_pct'])} %{gpu}"),
        Formula("draws", at["measured_w"], "W", _drawn(cluster, machine, row, at["capped_w"])),
        Formula("cooling stress", at["cooling_stress"], "%", _cooling(cluster, node, at["capped_w"], machine.max_w)),
        Formula(
            "headroom",
            at["headroom"],
            "%",
            f"({_n(at['cpu_pct'])} + {_n(at['gpu_pct'])}) / 200 × (1 − {_n(at['cooling_stress'])} / 100) × 100"
            + ("" if machine.gpu_count else "   (no GPU counts as 100)"),
        ),
        Formula("supply stress", at["psu_stress"], "%", _supply(cluster, node)),
        Formula("hardware density", at["density"], "%", _density(machine)),
    ]


def _n(value: float) -> str:
    return plain(value, 2)


def _drawn(cluster: LoadedCluster, machine: Machine, row: int, capped_w: float) -> str:
    source = cluster.plan.twins.sources[row]
    if source != "static":
        return f"from {source}"
    pods = [pod for pod in cluster.snapshot.pods if pod.node == machine.node and not pod.finished]
    bound = BoundPods()
    for pod in pods:
        bound.add(0, pod)
    added_w = float(bound.added_power_w(MachineColumns.of([machine]), cluster.settings.marginal)[0])
    asking = f"{len(pods)} pod{'s' * (len(pods) != 1)}"
    return f"min({_n(capped_w)} W budget, {_n(machine.idle_w)} W idle + {_n(added_w)} W for {asking})"


def _cooling(cluster: LoadedCluster, node: Node, capped_w: float, max_w: float) -> str:
    settings, telemetry = cluster.settings.twin, cluster.snapshot.telemetry
    everywhere = settings.ambient_c if telemetry.ambient_c is None else telemetry.ambient_c
    ambient_c = telemetry.zone_ambient_c.get(node.labels.get(COOLING_ZONE_LABEL, ""), everywhere)
    if not isinstance(cluster.cooling, LinearCoolingModel):
        return f"model {cluster.cooling.name} at {_n(capped_w)} W and {_n(ambient_c)} °C"
    reference_w = float(cluster.cooling.reference_w(max_w))
    from_power = f"{_n(capped_w)} W / {_n(reference_w)} W × {_n(STRESS_AT_REFERENCE)}"
    from_heat = f"max(0, {_n(ambient_c)} °C − {_n(COMFORTABLE_C)} °C) × {_n(STRESS_PER_DEGREE)}"
    return f"{from_power} + {from_heat}, at most 100"


def _supply(cluster: LoadedCluster, node: Node) -> str:
    twins, rack = cluster.plan.twins, node.labels.get(RACK_LABEL, "")
    nodes = cluster.snapshot.nodes
    mates = [i for i, name in enumerate(twins.nodes) if not rack or nodes[name].labels.get(RACK_LABEL, "") == rack]
    drawn_w = math.fsum(twins.columns["measured_w"][i] for i in mates)
    where = f"rack {rack}" if rack else "the cluster"
    if rack in cluster.snapshot.telemetry.rack_power_w:
        drawn_w = cluster.snapshot.telemetry.rack_power_w[rack]
    return f"{_n(drawn_w)} W drawn by {where} / {_n(cluster.settings.twin.rack_capacity_w)} W × 100, at most 100"


def _density(machine: Machine) -> str:
    cores = f"{_n(machine.cores)} / 192 cores × 100"
    if not machine.gpu_count:
        return f"{cores}, at most 100"
    return f"mean of {cores} and {_n(machine.gpu_count)} / 8 GPUs × 100, each at most 100"
