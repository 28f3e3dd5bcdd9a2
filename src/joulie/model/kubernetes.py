"""Nodes and Pods as the API server writes them, cut down to the fields that a decision reads.

Everything else in an object is skipped while decoding, which is most of it.
"""

from __future__ import annotations

from msgspec import Struct, field

from joulie.model.quantity import Quantity
from joulie.model.selector import Requirement

Resources = dict[str, Quantity]


class ObjectMeta(Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None  # counts changes of the spec


class TaintSpec(Struct, rename="camel"):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Struct, rename="camel"):
    unschedulable: bool | None = None
    taints: list[TaintSpec] | None = None


class NodeInfo(Struct):
    boot_id: str = field(default="", name="bootID")


class NodeStatus(Struct, rename="camel"):
    capacity: Resources | None = None
    allocatable: Resources | None = None
    node_info: NodeInfo | None = None


class NodeObject(Struct, rename="camel"):
    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ResourceRequirements(Struct, rename="camel"):
    requests: Resources | None = None
    limits: Resources | None = None


class Container(Struct, rename="camel"):
    name: str | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class Expression(Struct, rename="camel"):
    key: str
    operator: str
    values: tuple[str, ...] | None = None

    def requirement(self) -> Requirement:
        return Requirement(self.key, self.operator, self.values or ())


class NodeSelectorTerm(Struct, rename="camel"):
    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(Struct, rename="camel"):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Struct, rename="camel"):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Struct, rename="camel"):
    node_affinity: NodeAffinity | None = None


class TolerationSpec(Struct, rename="camel"):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PodSpec(Struct, rename="camel"):
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationSpec] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Resources | None = None
    resources: ResourceRequirements | None = None


class PodCondition(Struct, rename="camel"):
    type: str
    status: str = ""
    last_transition_time: str | None = None


class PodStatus(Struct, rename="camel"):
    phase: str | None = None
    conditions: list[PodCondition] | None = None


class PodObject(Struct, rename="camel"):
    metadata: ObjectMeta
    spec: PodSpec | None = None
    status: PodStatus | None = None
