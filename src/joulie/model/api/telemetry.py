"""TelemetryProfile: where a node's telemetry comes from and where control goes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from joulie.model.api.fields import Count, NodeName, Part, Seconds, Timestamp
from joulie.model.api.results import Conditions, ControlState
from joulie.model.kubernetes import ObjectMeta
from joulie.model.names import ControlMode, ControlType, SourceType

Endpoint = Annotated[str, Meta(min_length=1, max_length=2048, description="URL; {node} becomes the node's name.")]


class NodeLabelSelector(Part, frozen=True):
    """Nodes by their labels."""

    match_labels: Annotated[dict[str, str], Meta(description="Labels that a node must have.")] | None = None


class Target(Part, frozen=True):
    """Which nodes a profile is for; one node beats a selector, which beats the cluster."""

    scope: Annotated[Literal["node", "cluster"], Meta(description="One node, or the cluster.")]
    node_name: Annotated[NodeName, Meta(description="The node, with scope node.")] | None = None
    node_selector: Annotated[NodeLabelSelector, Meta(description="Only nodes with these labels.")] | None = None


class HttpSource(Part, frozen=True):
    """Telemetry over HTTP."""

    endpoint: Endpoint
    timeout_seconds: Annotated[Seconds, Meta(description="How long to wait.")] | None = None


class PrometheusSource(Part, frozen=True):
    """Telemetry from Prometheus."""

    endpoint: Endpoint
    query: Annotated[str, Meta(min_length=1, description="PromQL; {node} becomes the node's name.")]


class Source(Part, frozen=True):
    """Where one device's telemetry comes from."""

    type: Annotated[SourceType, Meta(description="Kind of source.")]
    http: Annotated[HttpSource, Meta(description="With type http.")] | None = None
    prometheus: Annotated[PrometheusSource, Meta(description="With type prometheus.")] | None = None


class Sources(Part, frozen=True):
    """Telemetry by device."""

    cpu: Annotated[Source, Meta(description="CPU power.")] | None = None
    gpu: Annotated[Source, Meta(description="GPU power.")] | None = None


class HttpControl(Part, frozen=True):
    """Control over HTTP."""

    endpoint: Endpoint
    timeout_seconds: Annotated[Seconds, Meta(description="How long to wait.")] | None = None
    mode: Annotated[ControlMode, Meta(description="Which CPU control to use.")] | None = None


class Control(Part, frozen=True):
    """Where one device's caps are sent."""

    type: Annotated[ControlType, Meta(description="Kind of control.")]
    http: Annotated[HttpControl, Meta(description="With type http.")] | None = None


class Controls(Part, frozen=True):
    """Control by device."""

    cpu: Annotated[Control, Meta(description="CPU caps.")] | None = None
    gpu: Annotated[Control, Meta(description="GPU caps.")] | None = None


class TelemetryProfileSpec(Part, frozen=True):
    """Routing of telemetry and control."""

    target: Annotated[Target, Meta(description="Which nodes.")]
    sources: Annotated[Sources, Meta(description="Where telemetry comes from.")] | None = None
    controls: Annotated[Controls, Meta(description="Where caps are sent.")] | None = None


class RoutedControl(Part, frozen=True):
    """Result of control, for a profile of one node."""

    cpu: Annotated[ControlState, Meta(description="CPU caps.")] | None = None
    gpu: Annotated[ControlState, Meta(description="GPU caps.")] | None = None


class RoutedNodes(Part, frozen=True):
    """How many nodes a profile routes, and what became of the caps that it routes; each node counts once."""

    routed: Annotated[Count, Meta(description="Nodes in scope whose telemetry or caps this profile routes.")]
    applied: Annotated[Count, Meta(description="Nodes where every cap was applied.")]
    blocked: Annotated[Count, Meta(description="Nodes where a cap cannot be applied.")]
    error: Annotated[Count, Meta(description="Nodes where applying a cap failed.")]
    none: Annotated[Count, Meta(description="Nodes that report no cap.")]
    unknown: Annotated[Count, Meta(description="Nodes whose agent has not reported.")]


class TelemetryProfileStatus(Part, frozen=True):
    """Counts and conditions by the operator; control by the agent, for a profile of one node."""

    control: Annotated[RoutedControl, Meta(description="What became of the caps.")] | None = None
    updated_at: Annotated[Timestamp, Meta(description="When the agent last said so.")] | None = None
    nodes: Annotated[RoutedNodes, Meta(description="Nodes by what became of their caps.")] | None = None
    conditions: Conditions | None = None


class TelemetryProfile(Part, frozen=True):
    """Where telemetry of some nodes comes from and where their caps go."""

    metadata: ObjectMeta
    spec: Annotated[TelemetryProfileSpec, Meta(description="Routing.")]
    status: Annotated[TelemetryProfileStatus, Meta(description="Results.")] | None = None
