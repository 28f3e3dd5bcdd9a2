"""A cluster at one moment, as the decision code sees it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from joulie.model.api import NodeHardware, NodePowerProfileStatus, NodeTwin
from joulie.model.selector import Requirement
from joulie.model.tiers import PowerSource

WorkloadClass = Literal["performance", "standard"]


class Taint(NamedTuple):
    """What keeps pods off a node that do not tolerate it."""

    key: str
    value: str
    effect: str  # NoSchedule, PreferNoSchedule, NoExecute

    def __str__(self) -> str:
        return f"{self.key}{self.value and f'={self.value}'}:{self.effect}"


class Toleration(NamedTuple):
    """Which taints a pod puts up with; an empty part stands for any."""

    key: str = ""
    value: str | None = None  # None: any, as with the operator Exists
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        return (
            self.key in ("", taint.key)
            and self.effect in ("", taint.effect)
            and (self.value is None or self.value == taint.value)
        )


class Node(Struct, frozen=True, gc=False):
    """What a decision reads of a Kubernetes Node."""

    name: str
    labels: Mapping[str, str]
    unschedulable: bool = False
    capacity_cores: float = 0.0  # 0: not stated
    capacity_nvidia_gpus: float = 0.0
    capacity_amd_gpus: float = 0.0
    taints: tuple[Taint, ...] = ()
    boot_id: str = ""  # changes with each boot; empty: not stated
    capacity_watts: float | None = None  # of the resource joulie.io/watts; None: not advertised
    allocatable_watts: float | None = None

    @property
    def capacity_gpus(self) -> float:
        return self.capacity_nvidia_gpus + self.capacity_amd_gpus


class Pod(Struct, frozen=True, gc=False):
    """What a decision reads of a Kubernetes Pod; demand is already added up over its containers."""

    namespace: str
    name: str
    node: str  # "": not bound yet
    workload_class: WorkloadClass
    cpu_cores: float = 0.0
    gpus: float = 0.0
    finished: bool = False  # Succeeded or Failed
    terminating: bool = False  # has a deletion time stamp
    scheduled_at_s: float | None = None
    # Only what can tell the power profiles apart, so that most pods carry nothing.
    node_selector: Mapping[str, str] | None = None
    required_terms: tuple[tuple[Requirement, ...], ...] | None = None  # terms ORed, requirements ANDed
    tolerations: tuple[Toleration, ...] = ()
    watts: float = 0.0  # of the resource joulie.io/watts; 0: it asks for none


class Pin(Struct, frozen=True, gc=False):
    """A NodePowerProfile: the target that a person set for one node."""

    name: str
    node: str
    profile: Literal["performance", "eco"]
    cpu_cap_w: float | None = None  # each package
    cpu_cap_pct: float | None = None
    gpu_cap_w: float | None = None  # each GPU
    gpu_cap_pct: float | None = None
    created_at_s: float | None = None
    expires_at_s: float | None = None
    generation: int | None = None
    status: NodePowerProfileStatus | None = None  # what was said of it; no decision depends on it


class PowerReading(Struct, frozen=True, gc=False):
    """Node power from outside: its source, how much, when."""

    source: PowerSource
    power_w: float
    measured_at_s: float


class Utilisation(Struct, frozen=True, gc=False):
    """How busy a node's devices are, 0 to 1, and when that was read."""

    measured_at_s: float
    cpu: float | None = None
    gpu: float | None = None


class Telemetry(Struct, frozen=True):
    """What sensors say; empty when decisions are made from files."""

    power: Mapping[str, PowerReading] = field(default_factory=dict)  # by node
    utilisation: Mapping[str, Utilisation] = field(default_factory=dict)  # by node
    trend_w_per_min: Mapping[str, float] = field(default_factory=dict)  # by node
    ambient_c: float | None = None
    zone_ambient_c: Mapping[str, float] = field(default_factory=dict)  # by cooling zone
    rack_power_w: Mapping[str, float] = field(default_factory=dict)  # by rack
    estimated_pue: float | None = None


class Snapshot(Struct, frozen=True):
    """Everything a decision may depend on. Containers may be in any order: no result depends on it."""

    nodes: Mapping[str, Node]
    pods: Collection[Pod] = ()
    hardware: Mapping[str, NodeHardware] = field(default_factory=dict)  # by node
    twins: Mapping[str, NodeTwin] = field(default_factory=dict)  # by node
    pins: Collection[Pin] = ()
    telemetry: Telemetry = field(default_factory=Telemetry)
