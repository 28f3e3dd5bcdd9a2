"""NodeHardware: what an agent found on a node."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from joulie.model.api.fields import Bytes, Count, Part, ReportedWatts, Timestamp
from joulie.model.api.results import Conditions
from joulie.model.kubernetes import ObjectMeta

QualityLevel = Literal["exact", "heuristic", "unavailable"]
Warnings = Annotated[list[str], Meta(description="What could not be found out, and why.")]
ModelName = Annotated[str, Meta(max_length=256)]


class SocketCapRange(Part, frozen=True):
    """CPU cap range for each socket; an end of zero or less counts as unknown."""

    min_watts_per_socket: Annotated[ReportedWatts, Meta(description="Lowest cap.")] | None = None
    max_watts_per_socket: Annotated[ReportedWatts, Meta(description="Highest cap.")] | None = None


class GpuCapRange(Part, frozen=True):
    """Cap range of each GPU board; an end of zero or less counts as unknown."""

    min_watts: Annotated[ReportedWatts, Meta(description="Lowest cap.")] | None = None
    max_watts: Annotated[ReportedWatts, Meta(description="Highest cap.")] | None = None
    default_watts: Annotated[ReportedWatts, Meta(description="The board's default limit.")] | None = None


class CpuHardware(Part, frozen=True):
    """The node's CPUs."""

    raw_model: Annotated[ModelName, Meta(description="Model as the system names it.")] | None = None
    model: Annotated[ModelName, Meta(description="Model as the catalogue names it.")] | None = None
    vendor: Annotated[ModelName, Meta(description="Vendor.")] | None = None
    sockets: Annotated[Count, Meta(description="Number of sockets.")] | None = None
    total_cores: Annotated[Count, Meta(description="Cores of all sockets together.")] | None = None
    cores_per_socket: Annotated[Count, Meta(description="Cores of each socket.")] | None = None
    driver_family: Annotated[ModelName, Meta(description="Frequency driver, such as intel_pstate.")] | None = None
    cap_range: Annotated[SocketCapRange, Meta(description="Cap range for each socket.")] | None = None
    control_available: Annotated[bool, Meta(description="A cap can be set.")] | None = None
    telemetry_available: Annotated[bool, Meta(description="Power can be read.")] | None = None
    quality: Annotated[QualityLevel, Meta(description="How sure this is.")] | None = None
    warnings: Warnings | None = None


class GpuHardware(Part, frozen=True):
    """The node's GPUs."""

    present: Annotated[bool, Meta(description="Whether there is a GPU.")] | None = None
    raw_model: Annotated[ModelName, Meta(description="Model as the driver names it.")] | None = None
    model: Annotated[ModelName, Meta(description="Model as the catalogue names it.")] | None = None
    vendor: Annotated[ModelName, Meta(description="nvidia or amd.")] | None = None
    count: Annotated[Count, Meta(description="Number of GPU boards.")] | None = None
    cap_range_per_gpu: Annotated[GpuCapRange, Meta(description="Cap range of each board.")] | None = None
    current_cap_watts: Annotated[ReportedWatts, Meta(description="Cap now in force.")] | None = None
    control_available: Annotated[bool, Meta(description="A cap can be set.")] | None = None
    telemetry_available: Annotated[bool, Meta(description="Power can be read.")] | None = None
    quality: Annotated[QualityLevel, Meta(description="How sure this is.")] | None = None
    warnings: Warnings | None = None


class Memory(Part, frozen=True):
    """The node's memory."""

    total_bytes: Annotated[Bytes, Meta(description="Installed memory.")] | None = None


class Capabilities(Part, frozen=True):
    """What Joulie can do on this node."""

    cpu_control: Annotated[bool, Meta(description="CPU caps can be set.")] | None = None
    gpu_control: Annotated[bool, Meta(description="GPU caps can be set.")] | None = None
    cpu_telemetry: Annotated[bool, Meta(description="CPU power can be read.")] | None = None
    gpu_telemetry: Annotated[bool, Meta(description="GPU power can be read.")] | None = None


class Quality(Part, frozen=True):
    """How far the discovery can be trusted."""

    overall: Annotated[QualityLevel, Meta(description="The worst of the parts that are present.")] | None = None
    warnings: Warnings | None = None


class NodeHardwareStatus(Part, frozen=True):
    """What was discovered."""

    cpu: Annotated[CpuHardware, Meta(description="CPUs.")] | None = None
    gpu: Annotated[GpuHardware, Meta(description="GPUs.")] | None = None
    memory: Annotated[Memory, Meta(description="Memory.")] | None = None
    capabilities: Annotated[Capabilities, Meta(description="What can be controlled and read.")] | None = None
    quality: Annotated[Quality, Meta(description="How far this can be trusted.")] | None = None
    updated_at: Annotated[Timestamp, Meta(description="When the agent last looked.")] | None = None
    conditions: Conditions | None = None


class NodeHardwareSpec(Part, frozen=True):
    """Empty: the object's name is the node's name."""


class NodeHardware(Part, frozen=True):
    """Hardware of the node of the same name, as its agent found it."""

    metadata: ObjectMeta
    spec: Annotated[NodeHardwareSpec, Meta(description="Unused.")] | None = None
    status: Annotated[NodeHardwareStatus, Meta(description="What was discovered.")] | None = None
