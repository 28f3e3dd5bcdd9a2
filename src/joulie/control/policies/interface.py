"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from joulie.model.api import NodeTwin
from joulie.settings import PlanSettings

Profile = Literal["performance", "eco"]
State = Literal["performance", "eco", "draining"]


class NodeView(Struct, frozen=True, gc=False):
    """One eligible node."""

    name: str
    density: float  # compute density for planning: 0 to 2, densest first
    family: str  # GPU model, else CPU model, else unknown/<node>
    labels: Mapping[str, str]
    state: State  # what the cluster's objects say it is now
    performance_pods: int  # performance-only pods that run here, terminating ones included
    cpu_max_w: float
    gpu_max_w: float
    twin: NodeTwin | None  # as last written


class PolicyView(Struct, frozen=True):
    """The cluster as a policy sees it: eligible nodes, densest first, ties by name."""

    nodes: tuple[NodeView, ...]
    performance_pods: int  # active performance-only pods of the whole cluster, pending ones included
    now_s: float  # seconds since 1970
    settings: PlanSettings


class Choice(NamedTuple):
    """What one node should be, and why, in words for the person who pays for the power."""

    profile: Profile
    reason: str


class Policy(Protocol):
    """The whole interface of a policy."""

    name: str

    def plan(self, view: PolicyView) -> Mapping[str, Choice]:
        """A choice for every node of the view, by name. Pure: the same view gives the same plan."""
        ...
