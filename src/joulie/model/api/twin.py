"""NodeTwin: what a node should do (spec) and what the digital twin predicts for it (status)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from joulie.model.api.fields import NodeName, Part, Pct, Profile, Score, Timestamp, Watts
from joulie.model.api.orders import BudgetCaps, BudgetConfirmation, BudgetOrder
from joulie.model.api.profile import CpuCap, GpuCap, PolicyRef
from joulie.model.api.results import Conditions, ControlStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.tiers import SPEAKERS, PowerSource


class Scheduling(Part, frozen=True):
    """What the scheduler is told besides the profile."""

    draining: Annotated[bool, Meta(description="Eco is wanted, performance-only pods still run here.")] | None = None


class NodeTwinSpec(Part, frozen=True):
    """The desired state of one node, written by the operator."""

    node_name: Annotated[NodeName, Meta(description="The node that this twin stands for.")] | None = None
    profile: Annotated[Profile, Meta(description="performance: full power; eco: capped.")] | None = None
    cpu: Annotated[CpuCap, Meta(description="CPU cap to enforce.")] | None = None
    gpu: Annotated[GpuCap, Meta(description="GPU cap to enforce; absent without a GPU.")] | None = None
    policy: Annotated[PolicyRef, Meta(description="What chose this target.")] | None = None
    scheduling: Annotated[Scheduling, Meta(description="Transition state for the scheduler.")] | None = None
    budget: Annotated[BudgetOrder, Meta(description="What power budgets leave this node.")] | None = None
    failsafe: (
        Annotated[BudgetCaps, Meta(description="Upper limit while there is no contact with the operator.")] | None
    ) = None


class EffectiveCapState(Part, frozen=True):
    """The caps that count, after clamping and after what the agent could enforce."""

    cpu_pct: Annotated[Pct, Meta(description="CPU cap, percent of maximum.")] | None = None
    gpu_pct: Annotated[Pct, Meta(description="GPU cap, percent of maximum; absent without a GPU.")] | None = None


class PowerMeasurement(Part, frozen=True):
    """Power now and power allowed, in watts."""

    source: (
        Annotated[
            PowerSource,
            Meta(description=SPEAKERS),
        ]
        | None
    ) = None
    measured_node_power_w: Annotated[Watts, Meta(description="Power the node draws now.")] | None = None
    cpu_capped_power_w: Annotated[Watts, Meta(description="CPU power allowed by its cap.")] | None = None
    gpu_capped_power_w: Annotated[Watts, Meta(description="GPU power allowed by its cap.")] | None = None
    node_capped_power_w: Annotated[Watts, Meta(description="Node power allowed by its caps.")] | None = None
    cpu_tdp_w: Annotated[Watts, Meta(description="Maximum CPU power.")] | None = None
    gpu_tdp_w: Annotated[Watts, Meta(description="Maximum GPU power.")] | None = None
    node_tdp_w: Annotated[Watts, Meta(description="Maximum node power.")] | None = None
    power_trend_w_per_min: (
        Annotated[float, Meta(description="Slope of the power over five minutes, watts a minute.")] | None
    ) = None


class TwinControlStatus(ControlStatus, frozen=True):
    """Written by the agent alone."""

    budget: Annotated[BudgetConfirmation, Meta(description="The budget order that holds on the devices.")] | None = None


class NodeTwinStatus(Part, frozen=True):
    """What the twin predicts, written by the operator (controlStatus and the condition Enforced by the agent)."""

    schedulable_class: (
        Annotated[
            Literal["performance", "eco", "draining", "unknown", ""],
            Meta(description="What the scheduler may place here."),
        ]
        | None
    ) = None
    predicted_power_headroom_score: (
        Annotated[Score, Meta(description="Room for more work: 100 is all, 0 is none.")] | None
    ) = None
    predicted_cooling_stress_score: (
        Annotated[Score, Meta(description="Share of the cooling capacity in use, percent.")] | None
    ) = None
    predicted_psu_stress_score: (
        Annotated[Score, Meta(description="Share of the rack's power capacity in use, percent.")] | None
    ) = None
    effective_cap_state: Annotated[EffectiveCapState, Meta(description="The caps that count.")] | None = None
    hardware_density_score: Annotated[Score, Meta(description="How much compute the node packs.")] | None = None
    estimated_pue: (
        Annotated[float, Meta(ge=0, le=100, description="(IT + cooling) / IT, from the facility.")] | None
    ) = field(default=None, name="estimatedPUE")
    power_measurement: Annotated[PowerMeasurement, Meta(description="Power now and allowed.")] | None = None
    control_status: Annotated[TwinControlStatus, Meta(description="What the agent enforced.")] | None = None
    last_updated: Annotated[Timestamp, Meta(description="When the operator last wrote this.")] | None = None
    conditions: Conditions | None = None


class NodeTwin(Part, frozen=True):
    """Desired state and digital twin of one node."""

    metadata: ObjectMeta
    spec: Annotated[NodeTwinSpec, Meta(description="Desired state.")] | None = None
    status: Annotated[NodeTwinStatus, Meta(description="The twin's output.")] | None = None

    @property
    def node(self) -> str:
        return (self.spec and self.spec.node_name) or self.metadata.name
