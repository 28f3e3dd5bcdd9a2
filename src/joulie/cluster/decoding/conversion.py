"""Converts typed Kubernetes objects to the model that decisions read.

Every ValueError raised here reads `field.path: what is wrong`; the caller knows the object and where it came from.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern

from joulie.control.demand import CPU, demand, watts
from joulie.model.api import NodePowerProfile, NodeTwin
from joulie.model.kubernetes import NodeObject, NodeStatus, PodObject, PodSpec, PodStatus, Resources
from joulie.model.names import (
    AMD_GPU,
    NVIDIA_GPU,
    PERFORMANCE,
    STANDARD,
    WATTS_RESOURCE,
    WORKLOAD_CLASS_ANNOTATION,
)
from joulie.model.quantity import parse_quantity
from joulie.model.rfc3339 import parse_time_s, readable_time_s
from joulie.model.selector import Requirement
from joulie.model.snapshot import Node, Pin, Pod, Taint, Toleration, WorkloadClass

DEFAULT_NAMESPACE = "default"
MAX_NAME_CHARS = 253
MAX_CAPACITY = 65_536  # cores or GPUs, as in NodeHardware; a twin with more could not be written

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
_FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
_NOT_IN_A_NAME = frozenset(" /%")

Terms = tuple[tuple[Requirement, ...], ...]


def check_twin(twin: NodeTwin) -> None:
    """A twin must have the name of its node, otherwise a node could have two."""
    check_name(twin.metadata.name)
    check_name(twin.node, "spec.nodeName")
    if twin.node != twin.metadata.name:
        raise ValueError(f"spec.nodeName: {twin.node} is not the name of the object")


def check_name(name: str, path: str = "metadata.name") -> None:
    """Kubernetes' limits for a name in a URL, and no control characters."""
    if not name:
        raise ValueError(f"{path}: missing")
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(f"{path}: longer than {MAX_NAME_CHARS} characters")
    if not name.isprintable() or not _NOT_IN_A_NAME.isdisjoint(name):
        raise ValueError(f"{path}: {name!a} is not a name")


def to_node(node: NodeObject) -> Node:
    """A Node; missing quantities count as zero."""
    metadata, status = node.metadata, node.status
    check_name(metadata.name)
    return Node(
        name=intern(metadata.name),
        labels=metadata.labels or {},
        unschedulable=node.spec is not None and bool(node.spec.unschedulable),
        capacity_cores=_capacity(status, CPU),
        capacity_nvidia_gpus=_capacity(status, NVIDIA_GPU),
        capacity_amd_gpus=_capacity(status, AMD_GPU),
        taints=tuple(
            Taint(taint.key, taint.value or "", taint.effect) for taint in (node.spec and node.spec.taints) or ()
        ),
        boot_id=status.node_info.boot_id if status is not None and status.node_info is not None else "",
        capacity_watts=_watts(status.capacity if status is not None else None),
        allocatable_watts=_watts(status.allocatable if status is not None else None),
    )


def _watts(resources: Resources | None) -> float | None:
    """What the node advertises of our own resource; what cannot be read counts as not there, and is written anew."""
    if not resources or WATTS_RESOURCE not in resources:
        return None
    try:
        return parse_quantity(resources[WATTS_RESOURCE])
    except ValueError:
        return None


def _capacity(status: NodeStatus | None, resource: str) -> float:
    """The capacity, or what is allocatable if the capacity lacks the resource."""
    if status is None:
        return 0.0
    for side, resources in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        if resources and resource in resources:
            try:
                capacity = parse_quantity(resources[resource])
            except ValueError as error:
                raise ValueError(f"status.{side}.{resource}: {error}") from None
            if capacity > MAX_CAPACITY:
                raise ValueError(f"status.{side}.{resource}: {capacity:g} is out of range (up to {MAX_CAPACITY})")
            return capacity
    return 0.0


def to_pod(pod: PodObject) -> Pod:
    """A Pod with its requests added up, and its constraints on nodes as far as they can distinguish nodes."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    check_name(metadata.name)
    namespace = metadata.namespace or DEFAULT_NAMESPACE
    if namespace != DEFAULT_NAMESPACE:
        check_name(namespace, "metadata.namespace")
    annotations = metadata.annotations
    performance = annotations is not None and annotations.get(WORKLOAD_CLASS_ANNOTATION) == PERFORMANCE
    workload_class: WorkloadClass = PERFORMANCE if performance else STANDARD
    finished = status is not None and status.phase in _FINISHED_PHASES
    terminating = metadata.deletion_timestamp is not None
    scheduled_at_s = None if status is None else _scheduled_at_s(status)
    if spec is None:
        return Pod(namespace, metadata.name, "", workload_class, 0.0, 0.0, finished, terminating, scheduled_at_s)
    cpu_cores, gpus = demand(spec)
    return Pod(  # positional: half the cost of keywords, and there are very many pods
        namespace,
        metadata.name,
        intern(spec.node_name) if spec.node_name else "",  # one string per node, not per pod
        workload_class,
        _shared(cpu_cores),
        _shared(gpus),
        finished,
        terminating,
        scheduled_at_s,
        spec.node_selector or None,
        None if spec.affinity is None else required_terms(spec),
        _tolerations(tuple((t.key, t.operator, t.value, t.effect) for t in spec.tolerations))
        if spec.tolerations
        else (),
        watts(spec),
    )


@lru_cache(maxsize=1024)
def _tolerations(said: tuple[tuple[str | None, str | None, str | None, str | None], ...]) -> tuple[Toleration, ...]:
    """One object for equal lists: Kubernetes adds the same two tolerations to nearly every pod."""
    return tuple(
        Toleration(key or "", None if operator == "Exists" else value or "", effect or "")
        for key, operator, value, effect in said
    )


@lru_cache(maxsize=4096)
def _shared(number: float) -> float:
    """One object for equal numbers: many pods request the same, and shared objects stay in the CPU cache."""
    return number


def required_terms(spec: PodSpec) -> Terms | None:
    """The required node affinity as terms (ORed) of requirements (ANDed) on labels.

    None: any labels match. That is so without an affinity, and as soon as one term has only `matchFields` (with which a
    DaemonSet names its node): fields count as satisfiable, so that term can always match. An empty term matches no node
    and is dropped; `()` therefore means that no node matches.
    """
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return None
    terms: list[tuple[Requirement, ...]] = []
    only_fields = False
    for position, term in enumerate(required.node_selector_terms or ()):
        if term.match_expressions:
            for index, expression in enumerate(term.match_expressions):
                if expression.operator not in _OPERATORS:
                    raise ValueError(
                        f"{_TERMS}[{position}].matchExpressions[{index}].operator: "
                        f"{expression.operator[:64]!a} is none of {', '.join(sorted(_OPERATORS))}"
                    )
            terms.append(tuple(expression.requirement() for expression in term.match_expressions))
        elif term.match_fields:
            only_fields = True
    return None if only_fields else tuple(terms)


_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def _scheduled_at_s(status: PodStatus) -> float | None:
    """When the scheduler bound the pod; None if the time cannot be parsed, which does not invalidate the pod."""
    for condition in status.conditions or ():
        if condition.type == "PodScheduled":
            return readable_time_s(condition.last_transition_time) if condition.status in ("True", "") else None
    return None


def to_pin(profile: NodePowerProfile) -> Pin:
    """A pin; ValueError if its times cannot be parsed, because then its end and its age are unknown."""
    metadata, spec = profile.metadata, profile.spec
    check_name(metadata.name)
    check_name(spec.node_name, "spec.nodeName")
    gpu_cap = None if spec.gpu is None else spec.gpu.power_cap
    return Pin(
        name=metadata.name,
        node=spec.node_name,
        profile=spec.profile,
        cpu_cap_w=None if spec.cpu is None else spec.cpu.package_power_cap_watts,
        cpu_cap_pct=None if spec.cpu is None else spec.cpu.package_power_cap_pct_of_max,
        gpu_cap_w=None if gpu_cap is None else gpu_cap.cap_watts_per_gpu,
        gpu_cap_pct=None if gpu_cap is None else gpu_cap.cap_pct_of_max,
        created_at_s=_time_s(metadata.creation_timestamp, "metadata.creationTimestamp"),
        expires_at_s=_time_s(spec.expires_at, "spec.expiresAt"),
        generation=metadata.generation,
        status=profile.status,
    )


def _time_s(text: str | None, path: str) -> float | None:
    if text is None:
        return None
    try:
        return parse_time_s(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
