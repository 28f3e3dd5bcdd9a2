"""One node as people see it: what it is, what it should be, what it draws, and what its agent says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from joulie.control.classify import is_eco_only, is_performance_only
from joulie.control.cycle import nodes_in_scope
from joulie.control.pins import pins_in_force
from joulie.control.survey import DemandByClass
from joulie.model.api import NodeHardware, NodeTwin
from joulie.model.api.orders import BudgetOrder
from joulie.model.api.results import ControlState, ControlStatus
from joulie.model.api.twin import NodeTwinSpec, NodeTwinStatus, PowerMeasurement, TwinControlStatus
from joulie.model.names import (
    COOLING_ZONE_LABEL,
    CPU_MODEL_LABEL,
    CPU_SOCKETS_LABEL,
    GPU_MODEL_LABEL,
    RACK_LABEL,
    UNKNOWN,
)
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Node, Pin, Snapshot
from joulie.physics.plausibility import believable, hardware_warnings
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


class NodeOverview(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Times are seconds since 1970, so that an unchanged node has an unchanged view. None: not reported."""

    name: str
    scope: Scope
    state: State  # as its twin publishes it; unknown where it has none
    rack: str = ""
    zone: str = ""
    hardware: str = ""  # as people call it: GPU model where there is one, else the CPU's
    gpus: int = 0
    doubt: str = ""  # what was stated about its hardware and is not believed
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
    cpu_cap_w: float | None = None  # each package
    gpu_cap_pct: float | None = None
    gpu_cap_w: float | None = None
    cpu_effective_pct: float | None = None  # what counts: 100 where the cap could not be enforced
    gpu_effective_pct: float | None = None
    cpu_at_full: bool = False  # the wanted cap takes nothing away
    gpu_at_full: bool = False
    cpu_control: ControlView | None = None
    gpu_control: ControlView | None = None
    twin_at_s: float | None = None
    twin_written_at_s: float | None = None  # by the API server's clock; None: not known
    agent_written_at_s: float | None = None
    budget_groups: tuple[str, ...] = ()  # groups of budgets that it counts in
    budget_reason: str = ""  # why it has so much of them and no more
    budget_w: float | None = None  # what they leave its devices together
    budget_cpu_w: float | None = None  # each package
    budget_gpu_w: float | None = None  # each board
    budget_is_confirmed: bool = False  # its agent read this back from the devices
    budget_holds_no_watts: bool = False  # its agent follows the order, and no device holds a cap in watts
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
    demand: DemandByClass = DemandByClass()


class Written(NamedTuple):
    """When the parts of a twin were last written, by the API server's clock; None: it does not tell."""

    operator_s: float | None = None
    agent_s: float | None = None


def node_views(
    snapshot: Snapshot, settings: PlanSettings, now_s: float, written: Mapping[str, Written] | None = None
) -> dict[str, NodeOverview]:
    """Every node of the cluster by name, those out of scope included."""
    scopes = scopes_of(snapshot, settings)
    managed = {name for name, scope in scopes.items() if scope in MANAGED}
    pins, _ = pins_in_force(snapshot.pins, snapshot.nodes, managed, now_s)
    counts = pod_counts(snapshot, settings)
    views = {
        name: node_view(
            node, scopes[name], snapshot.twins.get(name), snapshot.hardware.get(name), pins.get(name), counts
        )
        for name, node in sorted(snapshot.nodes.items())
    }
    for name, at in (written or {}).items():
        if name in views:
            views[name] = replace(views[name], twin_written_at_s=at.operator_s, agent_written_at_s=at.agent_s)
    return views


def scopes_of(snapshot: Snapshot, settings: PlanSettings) -> dict[str, Scope]:
    """Which nodes Joulie plans, which it leaves as they are, and which it does not touch."""
    managed = {node.name for node in nodes_in_scope(snapshot.nodes, settings)}
    return {name: _scope(node, name in managed, settings) for name, node in snapshot.nodes.items()}


def pod_counts(snapshot: Snapshot, settings: PlanSettings) -> PodCounts:
    everywhere: Counter[str] = Counter()
    performance: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    label = settings.power_profile_label
    for pod in snapshot.pods:
        if pod.finished:
            continue
        is_performance = is_performance_only(pod, label)
        if pod.node:
            everywhere[pod.node] += 1
            performance[pod.node] += is_performance
        if not pod.terminating:
            asked["performance" if is_performance else "eco" if is_eco_only(pod, label) else "either"] += 1
    return PodCounts(everywhere, performance, DemandByClass(asked["performance"], asked["eco"], asked["either"]))


def node_view(
    node: Node, scope: Scope, twin: NodeTwin | None, hardware: NodeHardware | None, pin: Pin | None, pods: PodCounts
) -> NodeOverview:
    spec = (twin and twin.spec) or _NO_SPEC
    status = (twin and twin.status) or _NO_STATUS
    power = status.power_measurement or _NO_POWER
    control = status.control_status or _NO_CONTROL
    gpu_cap = spec.gpu.power_cap if spec.gpu else None
    effective = status.effective_cap_state
    order = _order(node, hardware, spec.budget, control)
    return NodeOverview(
        name=node.name,
        scope=scope,
        state=status.schedulable_class or UNKNOWN,
        rack=node.labels.get(RACK_LABEL, ""),
        zone=node.labels.get(COOLING_ZONE_LABEL, ""),
        hardware=_called(node, hardware),
        gpus=_gpus(node, hardware),
        doubt="; ".join(hardware_warnings(node, hardware)),
        profile=spec.profile or "",
        chosen_by=(spec.policy.name or "") if spec.policy else "",
        pin=pin.name if pin else "",
        pin_profile=pin.profile if pin else "",
        pin_ends_at_s=pin.expires_at_s if pin else None,
        power_w=power.measured_node_power_w,
        power_source=power.source or "",
        capped_w=_lower(power.node_capped_power_w, order.budget_w),
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
        cpu_at_full=spec.cpu is not None
        and _at_full(
            spec.cpu.package_power_cap_watts,
            spec.cpu.package_power_cap_pct_of_max,
            power.cpu_tdp_w,
            _sockets(node, hardware),
        ),
        gpu_at_full=gpu_cap is not None
        and _at_full(gpu_cap.cap_watts_per_gpu, gpu_cap.cap_pct_of_max, power.gpu_tdp_w, _gpus(node, hardware)),
        cpu_control=_control(control.cpu),
        gpu_control=_control(control.gpu),
        twin_at_s=readable_time_s(status.last_updated),
        **order._asdict(),
        has_twin=twin is not None,
        pods=pods.all.get(node.name, 0),
        performance_pods=pods.performance.get(node.name, 0),
    )


class _Order(NamedTuple):
    """What budgets leave a node; the names are those of NodeView."""

    budget_groups: tuple[str, ...] = ()
    budget_reason: str = ""
    budget_w: float | None = None
    budget_cpu_w: float | None = None
    budget_gpu_w: float | None = None
    budget_is_confirmed: bool = False
    budget_holds_no_watts: bool = False


def _order(node: Node, hardware: NodeHardware | None, told: BudgetOrder | None, control: ControlStatus) -> _Order:
    if told is None or told.released:
        return _Order()
    cpu_w, gpu_w = told.caps.cpu_watts_per_package, told.caps.gpu_watts_per_gpu
    together_w = (cpu_w or 0.0) * _sockets(node, hardware) + (gpu_w or 0.0) * _gpus(node, hardware)
    confirmation = control.budget if isinstance(control, TwinControlStatus) else None
    followed = confirmation is not None and confirmation.order == told.order
    holds = confirmation is not None and confirmation.held is not None
    answers = followed and holds, followed and not holds
    return _Order(tuple(told.groups or ()), told.reason or "", together_w, cpu_w, gpu_w, *answers)


def _lower(first: float | None, second: float | None) -> float | None:
    return first if first is None or second is None else min(first, second)


def _scope(node: Node, managed: bool, settings: PlanSettings) -> Scope:
    if managed:
        return "cordoned" if node.unschedulable else "in"
    return "reserved" if node.labels.get(settings.reserved_label_key) == "true" else "out"


def _called(node: Node, hardware: NodeHardware | None) -> str:
    cpu, gpu = believable(hardware)
    named = (
        gpu.model or gpu.raw_model,
        node.labels.get(GPU_MODEL_LABEL),
        cpu.model or cpu.raw_model,
        node.labels.get(CPU_MODEL_LABEL),
    )
    return next((name for name in named if name), "")


def _gpus(node: Node, hardware: NodeHardware | None) -> int:
    return int(believable(hardware)[1].count or node.capacity_gpus)


def _sockets(node: Node, hardware: NodeHardware | None) -> int:
    cpu = hardware.status.cpu if hardware and hardware.status else None
    label = node.labels.get(CPU_SOCKETS_LABEL, "")
    return int((cpu and cpu.sockets) or (int(label) if label.isdecimal() else 1)) or 1


def _at_full(each_w: float | None, pct: float | None, max_w: float | None, devices: int) -> bool:
    """Whether a cap leaves everything: watts win, as they do on the node."""
    if each_w is None:
        return pct is not None and pct >= 100
    return max_w is not None and each_w * devices >= max_w - 0.5


def _control(said: ControlState | None) -> ControlView | None:
    if said is None:
        return None
    return ControlView(said.result or "none", said.backend or "", said.message or "", readable_time_s(said.updated_at))
