"""The digital twin of every node in scope, computed in arrays and handed out as `NodeTwin.status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.caps import Caps
from joulie.control.policies.interface import State
from joulie.errors import JoulieError, PluginError
from joulie.model.api import NodeTwin, NodeTwinStatus, PowerMeasurement
from joulie.model.api.results import ControlState, ControlStatus
from joulie.model.api.twin import EffectiveCapState
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Telemetry
from joulie.model.tiers import PowerSource
from joulie.physics import power, twin
from joulie.physics.cooling import CoolingModel, LinearCoolingModel
from joulie.physics.hardware import Machine
from joulie.settings import TwinSettings

Numbers = NDArray[np.float64]


class TwinTable(Struct, frozen=True):
    """Twin output in columns, one row a node, sorted by name."""

    nodes: Sequence[str]
    states: Sequence[State]
    sources: Sequence[PowerSource]
    has_gpu: Sequence[bool]
    columns: dict[str, list[float]]
    estimated_pue: float | None
    now_s: float

    def __len__(self) -> int:
        return len(self.nodes)

    def status(self, row: int) -> NodeTwinStatus:
        """What would be written to the node's twin; `controlStatus` is the agent's and is not here."""
        at = {name: column[row] for name, column in self.columns.items()}
        return NodeTwinStatus(
            schedulable_class=self.states[row],
            predicted_power_headroom_score=at["headroom"],
            predicted_cooling_stress_score=at["cooling_stress"],
            predicted_psu_stress_score=at["psu_stress"],
            effective_cap_state=EffectiveCapState(at["cpu_pct"], at["gpu_pct"] if self.has_gpu[row] else None),
            hardware_density_score=at["density"],
            estimated_pue=self.estimated_pue,
            power_measurement=PowerMeasurement(
                source=self.sources[row],
                measured_node_power_w=at["measured_w"],
                cpu_capped_power_w=at["cpu_capped_w"],
                gpu_capped_power_w=at["gpu_capped_w"],
                node_capped_power_w=at["capped_w"],
                cpu_tdp_w=at["cpu_max_w"],
                gpu_tdp_w=at["gpu_max_w"],
                node_tdp_w=at["max_w"],
                power_trend_w_per_min=at["trend"],
            ),
            last_updated=format_time(self.now_s),
        )


class TwinRow(Struct, frozen=True, gc=False):
    """What the twin needs to know of one node."""

    node: Node
    machine: Machine
    caps: Caps
    state: State
    written: NodeTwin | None  # the twin as it is: it says what the agent could not enforce


def predict(
    rows: Sequence[TwinRow],
    pods_w: Numbers,
    telemetry: Telemetry,
    settings: TwinSettings,
    cooling: CoolingModel,
    now_s: float,
) -> TwinTable:
    """The twin of every row; `pods_w` is what the pods on each row's node draw."""
    machines = [row.machine for row in rows]
    cpu_max_w = np.array([machine.cpu_max_w for machine in machines], dtype=np.float64)
    gpu_max_w = np.array([machine.gpu_max_w for machine in machines], dtype=np.float64)
    cpu_pct = np.array([_enforced_cpu_pct(row) for row in rows], dtype=np.float64)
    gpu_pct = np.array([_enforced_gpu_pct(row) for row in rows], dtype=np.float64)
    idle_w = np.array([machine.idle_w for machine in machines], dtype=np.float64)
    under = under_caps(cpu_max_w, gpu_max_w, cpu_pct, gpu_pct, _ambient_c(rows, telemetry, settings), cooling)
    static_w = power.static_power_w(under.capped_w, idle_w, pods_w)
    sources, measured_w = _measured(rows, static_w, telemetry, settings, now_s)
    columns = {
        "headroom": under.headroom,
        "cooling_stress": under.cooling_stress,
        "psu_stress": twin.psu_stress_score(_supply_load_w(rows, measured_w, telemetry), settings.rack_capacity_w),
        "cpu_pct": cpu_pct,
        "gpu_pct": gpu_pct,
        "density": twin.hardware_density_score(
            np.array([machine.cores for machine in machines], dtype=np.float64),
            np.array([machine.gpu_count for machine in machines], dtype=np.float64),
        ),
        "measured_w": measured_w,
        "cpu_capped_w": under.cpu_capped_w,
        "gpu_capped_w": under.gpu_capped_w,
        "capped_w": under.capped_w,
        "cpu_max_w": cpu_max_w,
        "gpu_max_w": gpu_max_w,
        "max_w": cpu_max_w + gpu_max_w,
        "trend": np.array([telemetry.trend_w_per_min.get(row.node.name, 0.0) for row in rows], dtype=np.float64),
    }
    return TwinTable(
        nodes=[row.node.name for row in rows],
        states=[row.state for row in rows],
        sources=sources,
        has_gpu=[machine.gpu_count > 0 for machine in machines],
        columns={name: column.tolist() for name, column in columns.items()},
        estimated_pue=telemetry.estimated_pue,
        now_s=now_s,
    )


class UnderCaps(NamedTuple):
    """What the twin predicts from caps and air alone, one element a node."""

    cpu_capped_w: Numbers
    gpu_capped_w: Numbers
    capped_w: Numbers
    cooling_stress: Numbers
    headroom: Numbers


def under_caps(
    cpu_max_w: Numbers,
    gpu_max_w: Numbers,
    cpu_pct: Numbers,
    gpu_pct: Numbers,
    ambient_c: Numbers,
    cooling: CoolingModel,
) -> UnderCaps:
    """Power that the caps allow, and what cooling that needs. The lab, which has no objects, begins here."""
    cpu_capped_w = power.capped_power_w(cpu_max_w, cpu_pct)
    gpu_capped_w = power.capped_power_w(gpu_max_w, gpu_pct)
    capped_w = cpu_capped_w + gpu_capped_w
    stress = twin.clamp_score(_cooling_stress(cooling, capped_w, ambient_c, cpu_max_w + gpu_max_w))
    return UnderCaps(cpu_capped_w, gpu_capped_w, capped_w, stress, twin.headroom_score(cpu_pct, gpu_pct, stress))


def _enforced_cpu_pct(row: TwinRow) -> float:
    """A cap that the agent could not enforce does not count."""
    control = _control(row)
    return 100.0 if control and _failed(control.cpu) else row.caps.effective_cpu_pct(row.machine)


def _enforced_gpu_pct(row: TwinRow) -> float:
    control = _control(row)
    return 100.0 if control and _failed(control.gpu) else row.caps.effective_gpu_pct(row.machine)


def _control(row: TwinRow) -> ControlStatus | None:
    return row.written.status.control_status if row.written and row.written.status else None


def _failed(control: ControlState | None) -> bool:
    return control is not None and control.result in ("blocked", "error")


def _measured(
    rows: Sequence[TwinRow], static_w: Numbers, telemetry: Telemetry, settings: TwinSettings, now_s: float
) -> tuple[list[PowerSource], Numbers]:
    """The best tier available for each node: measured, then utilisation, then the static estimate."""
    sources: list[PowerSource] = ["static"] * len(rows)
    if not (telemetry.power or telemetry.utilisation):
        return sources, static_w
    measured_w = static_w.copy()
    oldest_s = now_s - settings.power_max_age_s
    for index, row in enumerate(rows):
        name, max_w = row.node.name, row.machine.max_w
        reading = telemetry.power.get(name)
        if reading and reading.measured_at_s >= oldest_s and power.is_believable(reading.power_w, max_w):
            sources[index], measured_w[index] = reading.source, reading.power_w
            continue
        load = telemetry.utilisation.get(name)
        if load and load.measured_at_s >= oldest_s:
            implied_w = power.utilisation_power_w(row.machine, load.cpu, load.gpu)
            if implied_w is not None:
                sources[index], measured_w[index] = "utilization", implied_w
    return sources, measured_w


def _cooling_stress(cooling: CoolingModel, capped_w: Numbers, ambient_c: Numbers, max_w: Numbers) -> Numbers:
    """The model's answer, one number a node; a plug-in's errors are reported as its own, in one line."""
    if type(cooling) is LinearCoolingModel:  # a subclass may know but the two arguments of the interface
        return cooling.stress(capped_w, ambient_c, max_w)
    try:
        answer = np.add(cooling.stress(capped_w, ambient_c), 0.0, dtype=np.float64)
        return np.broadcast_to(answer, capped_w.shape)
    except JoulieError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"cooling model {cooling.name} failed: {type(error).__name__}: {reason}") from error


def _ambient_c(rows: Sequence[TwinRow], telemetry: Telemetry, settings: TwinSettings) -> Numbers:
    everywhere = settings.ambient_c if telemetry.ambient_c is None else telemetry.ambient_c
    zones = telemetry.zone_ambient_c
    if not zones:
        return np.full(len(rows), everywhere)
    return np.array([zones.get(row.node.labels.get(COOLING_ZONE_LABEL, ""), everywhere) for row in rows])


def _supply_load_w(rows: Sequence[TwinRow], measured_w: Numbers, telemetry: Telemetry) -> Numbers:
    """What each node's supply carries: its rack's nodes, or the whole cluster where it names no rack."""
    rack_of = [row.node.labels.get(RACK_LABEL, "") for row in rows]
    racks = sorted(set(rack_of))
    number = {rack: index for index, rack in enumerate(racks)}
    member = np.array([number[rack] for rack in rack_of], dtype=np.intp)
    total_w = np.bincount(member, measured_w, len(racks)).astype(np.float64, copy=False)
    for rack, index in number.items():
        if not rack:
            total_w[index] = float(np.sum(measured_w))
        elif rack in telemetry.rack_power_w:
            total_w[index] = telemetry.rack_power_w[rack]
    return total_w[member]
