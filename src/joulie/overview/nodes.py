"""One node as people see it: what it is, what it should be, what it draws, and what its agent says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from joulie.control.classify import is_performance_only
from joulie.control.cycle import nodes_in_scope
from joulie.control.pins import pins_in_force
from joulie.model.api import NodeHardware, NodeTwin
from joulie.model.api.twin import ControlState, ControlStatus, NodeTwinSpec, NodeTwinStatus, PowerMeasurement
from joulie.model.names import COOLING_ZONE_LABEL, CPU_MODEL_LABEL, GPU_MODEL_LABEL, RACK_LABEL, UNKNOWN
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Node, Pin, Snapshot
from joulie.settings import PlanSettings

Scope = Literal["in", "cordoned", "reserved", "out"]
MANAGED: tuple[Scope, ...] = ("in", "cordoned")
State = Literal["performance", "eco", "draining", "unknown"]

_NO_SPEC, _NO_STATUS = NodeTwinSpec(), NodeTwinStatus()
_NO_POWER, _NO_CONTROL = PowerMeasurement(), ControlStatus()


class ControlView(Struct, frozen=True, rename="camel", gc=False):
    """What the agent last said of a cap."""

    result: str  # applied, blocked, error, none
    backend: str
    message: str
    said_at_s: float | None


class NodeView(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Times are seconds since 1970, so that an unchanged node has an unchanged view. None: nobody said."""

    name: str
    scope: Scope
    state: State  # as its twin publishes it; unknown where it has none
    rack: str = ""
    zone: str = ""
    hardware: str = ""  # as people call it: GPU model where there is one, else the CPU's
    gpus: int = 0
    profile: str = ""  # wanted: performance or eco
    chosen_by: str = ""  # the policy, or `pinned`
    pin: str = ""  # the NodePowerProfile in force, also before it has taken effect
    pin_profile: str = ""
    pin_ends_at_s: float | None = None
    power_w: float | None = None
    power_source: str = ""
    capped_w: float | None = None
    max_w: float | None = None
    trend_w_per_min: float | None = None
    headroom: float | None = None
    cooling_stress: float | None = None
    rack_stress: float | None = None
    pue: float | None = None
    cpu_cap_pct: float | None = None  # wanted
    cpu_cap_w: float | None = None
    gpu_cap_pct: float | None = None
    gpu_cap_w: float | None = None
    cpu_effective_pct: float | None = None  # what counts: 100 where the cap could not be enforced
    gpu_effective_pct: float | None = None
    cpu_control: ControlView | None = None
    gpu_control: ControlView | None = None
    twin_at_s: float | None = None
    has_twin: bool = False
    pods: int = 0
    performance_pods: int = 0

    @property
    def managed(self) -> bool:
        return self.scope in MANAGED

    @property
    def agent_at_s(self) -> float | None:
        """When its agent last spoke."""
        said = [c.said_at_s for c in (self.cpu_control, self.gpu_control) if c is not None and c.said_at_s is not None]
        return max(said, default=None)

    @property
    def pin_waits(self) -> bool:
        """Whether the pin is newer than what is wanted of the node: the next decision will take it."""
        return bool(self.pin) and self.chosen_by != "pinned"


class PodCounts(Struct, frozen=True):
    """Pods that have not finished, by node."""

    all: Mapping[str, int]
    performance: Mapping[str, int]


def node_views(snapshot: Snapshot, settings: PlanSettings, now_s: float) -> dict[str, NodeView]:
    """Every node of the cluster by name, those out of scope included."""
    scopes = scopes_of(snapshot, settings)
    managed = {name for name, scope in scopes.items() if scope in MANAGED}
    pins, _ = pins_in_force(snapshot.pins, snapshot.nodes, managed, now_s)
    counts = pod_counts(snapshot, settings)
    return {
        name: node_view(
            node, scopes[name], snapshot.twins.get(name), snapshot.hardware.get(name), pins.get(name), counts
        )
        for name, node in sorted(snapshot.nodes.items())
    }


def scopes_of(snapshot: Snapshot, settings: PlanSettings) -> dict[str, Scope]:
    """Which nodes Joulie plans, which it leaves as they are, and which it does not touch."""
    managed = {node.name for node in nodes_in_scope(snapshot.nodes, settings)}
    return {name: _scope(node, name in managed, settings) for name, node in snapshot.nodes.items()}


def pod_counts(snapshot: Snapshot, settings: PlanSettings) -> PodCounts:
    everywhere: Counter[str] = Counter()
    performance: Counter[str] = Counter()
    for pod in snapshot.pods:
        if pod.node and not pod.finished:
            everywhere[pod.node] += 1
            performance[pod.node] += is_performance_only(pod, settings.power_profile_label)
    return PodCounts(everywhere, performance)


def node_view(
    node: Node, scope: Scope, twin: NodeTwin | None, hardware: NodeHardware | None, pin: Pin | None, pods: PodCounts
) -> NodeView:
    spec = (twin and twin.spec) or _NO_SPEC
    status = (twin and twin.status) or _NO_STATUS
    power = status.power_measurement or _NO_POWER
    control = status.control_status or _NO_CONTROL
    gpu_cap = spec.gpu.power_cap if spec.gpu else None
    effective = status.effective_cap_state
    return NodeView(
        name=node.name,
        scope=scope,
        state=status.schedulable_class or UNKNOWN,
        rack=node.labels.get(RACK_LABEL, ""),
        zone=node.labels.get(COOLING_ZONE_LABEL, ""),
        hardware=_called(node, hardware),
        gpus=_gpus(node, hardware),
        profile=spec.profile or "",
        chosen_by=(spec.policy.name or "") if spec.policy else "",
        pin=pin.name if pin else "",
        pin_profile=pin.profile if pin else "",
        pin_ends_at_s=pin.expires_at_s if pin else None,
        power_w=power.measured_node_power_w,
        power_source=power.source or "",
        capped_w=power.node_capped_power_w,
        max_w=power.node_tdp_w,
        trend_w_per_min=power.power_trend_w_per_min,
        headroom=status.predicted_power_headroom_score,
        cooling_stress=status.predicted_cooling_stress_score,
        rack_stress=status.predicted_psu_stress_score,
        pue=status.estimated_pue,
        cpu_cap_pct=spec.cpu.package_power_cap_pct_of_max if spec.cpu else None,
        cpu_cap_w=spec.cpu.package_power_cap_watts if spec.cpu else None,
        gpu_cap_pct=gpu_cap.cap_pct_of_max if gpu_cap else None,
        gpu_cap_w=gpu_cap.cap_watts_per_gpu if gpu_cap else None,
        cpu_effective_pct=effective.cpu_pct if effective else None,
        gpu_effective_pct=effective.gpu_pct if effective else None,
        cpu_control=_control(control.cpu),
        gpu_control=_control(control.gpu),
        twin_at_s=readable_time_s(status.last_updated),
        has_twin=twin is not None,
        pods=pods.all.get(node.name, 0),
        performance_pods=pods.performance.get(node.name, 0),
    )


def _scope(node: Node, managed: bool, settings: PlanSettings) -> Scope:
    if managed:
        return "cordoned" if node.unschedulable else "in"
    return "reserved" if node.labels.get(settings.reserved_label_key) == "true" else "out"


def _called(node: Node, hardware: NodeHardware | None) -> str:
    status = hardware.status if hardware else None
    gpu, cpu = (status.gpu, status.cpu) if status else (None, None)
    named = (
        (gpu.model or gpu.raw_model) if gpu else None,
        node.labels.get(GPU_MODEL_LABEL),
        (cpu.model or cpu.raw_model) if cpu else None,
        node.labels.get(CPU_MODEL_LABEL),
    )
    return next((name for name in named if name), "")


def _gpus(node: Node, hardware: NodeHardware | None) -> int:
    gpu = hardware.status.gpu if hardware and hardware.status else None
    return int(gpu.count) if gpu and gpu.count else int(node.capacity_gpus)


def _control(said: ControlState | None) -> ControlView | None:
    if said is None:
        return None
    return ControlView(said.result or "none", said.backend or "", said.message or "", readable_time_s(said.updated_at))
