"""Caps, and NodePowerProfile: a target that a person pins to one node."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from joulie.model.api.fields import NodeName, Part, Pct, Profile, Timestamp, Watts
from joulie.model.api.results import Conditions, ControlStatus
from joulie.model.kubernetes import ObjectMeta


class CpuCap(Part, frozen=True):
    """CPU cap of each package; watts win over percent."""

    package_power_cap_watts: Annotated[Watts, Meta(description="Watts for each CPU package.")] | None = None
    package_power_cap_pct_of_max: (
        Annotated[Pct, Meta(description="Percent of the CPU packages' maximum power.")] | None
    ) = None


class GpuPowerCap(Part, frozen=True):
    """GPU cap for each board; watts win over percent."""

    scope: Annotated[Literal["perGpu"], Meta(description="What one cap applies to.")] | None = None
    cap_watts_per_gpu: Annotated[Watts, Meta(description="Watts for each GPU board.")] | None = None
    cap_pct_of_max: Annotated[Pct, Meta(description="Percent of a GPU board's maximum power.")] | None = None


class GpuCap(Part, frozen=True):
    """GPU part of a target."""

    power_cap: Annotated[GpuPowerCap, Meta(description="Power cap of the node's GPUs.")] | None = None


class PolicyRef(Part, frozen=True):
    """What chose a target."""

    name: Annotated[str, Meta(description="Name of the policy, or `pinned`.", max_length=253)] | None = None


class NodePowerProfileSpec(Part, frozen=True):
    """The target that a person wants for one node."""

    node_name: Annotated[NodeName, Meta(description="The node that this target is for.")]
    profile: Annotated[Profile, Meta(description="performance: full power; eco: capped.")]
    cpu: Annotated[CpuCap, Meta(description="CPU cap; what is missing comes from the settings.")] | None = None
    gpu: Annotated[GpuCap, Meta(description="GPU cap; what is missing comes from the settings.")] | None = None
    policy: Annotated[PolicyRef, Meta(description="What asked for this target.")] | None = None
    expires_at: Annotated[Timestamp, Meta(description="When the pin ends by itself (RFC 3339).")] | None = None


class NodePowerProfileStatus(Part, frozen=True):
    """What became of the pin, written by the operator, or by the node's agent where there is no operator."""

    control: Annotated[ControlStatus, Meta(description="What became of its caps.")] | None = None
    conditions: Conditions | None = None


class NodePowerProfile(Part, frozen=True):
    """Pins one node to a target instead of the policy's choice."""

    metadata: ObjectMeta
    spec: Annotated[NodePowerProfileSpec, Meta(description="The pinned target.")]
    status: Annotated[NodePowerProfileStatus, Meta(description="What became of it.")] | None = None
