"""Pods: what they ask for, how much power that adds, and whether they insist on performance nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.rules.hardware import GPU_RESOURCES, Hardware
from tests.oracle.rules.selector import greater_or_less
from tests.oracle.rules.settings import Settings
from tests.oracle.rules.snapshot import Snapshot
from tests.oracle.rules.values import Obj, clamp, dig, items, mapping, parse_quantity

CLASS_ANNOTATION = "joulie.io/workload-class"


@dataclass(frozen=True)
class Demand:
    """Cores and GPUs a pod asks for."""

    cores: float
    gpus: float


def demand_of(pod: Obj) -> Demand:
    """Section 13, "Demand"; NVIDIA and AMD GPUs add up."""
    return Demand(_asked(pod, "cpu"), sum(_asked(pod, resource) for resource in GPU_RESOURCES))


def _asked(pod: Obj, resource: str) -> float:
    """max(containers + sidecars, each init + the sidecars before it), or the pod's own, plus overhead."""
    spec = mapping(pod.get("spec"))
    overhead = parse_quantity(mapping(spec.get("overhead")).get(resource)) or 0.0
    whole_pod = _request(spec, resource)
    if whole_pod is not None:
        return whole_pod + overhead
    sidecars, largest_init = 0.0, 0.0
    for container in items(spec.get("initContainers")):
        amount = _request(container, resource) or 0.0
        if container.get("restartPolicy") == "Always":
            sidecars += amount
        else:
            largest_init = max(largest_init, amount + sidecars)
    regular = sum(_request(container, resource) or 0.0 for container in items(spec.get("containers")))
    return max(regular + sidecars, largest_init) + overhead


def _request(holder: Any, resource: str) -> float | None:
    """What ``resources`` of a container or a pod asks for: the request, else the limit, else nothing."""
    for kind in ("requests", "limits"):
        amount = parse_quantity(mapping(dig(holder, "resources", kind)).get(resource))
        if amount is not None:
            return amount
    return None


def workload_class(pod: Obj) -> str:
    """``performance`` by annotation, everything else is ``standard``."""
    stated = mapping(dig(pod, "metadata", "annotations")).get(CLASS_ANNOTATION)
    return "performance" if stated == "performance" else "standard"


def marginal_power_w(pod: Obj, hardware: Hardware, settings: Settings) -> float:
    """Watts a pod adds to a node, without PUE."""
    demand = demand_of(pod)
    watts = 0.0
    if hardware.share_cores > 0:
        watts += settings.cpu_coefficient * clamp(demand.cores / hardware.share_cores, 0, 1) * hardware.cpu_max_w
    if hardware.gpu_count > 0:
        share = clamp(demand.gpus / hardware.share_gpus, 0, 1)
        watts += settings.gpu_coefficient[workload_class(pod)] * share * hardware.gpu_total_w
    return watts


def is_finished(pod: Obj) -> bool:
    """Completed or failed: draws nothing, holds nothing."""
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def is_terminating(pod: Obj) -> bool:
    """Deletion was asked for; the pod is still there."""
    return dig(pod, "metadata", "deletionTimestamp") is not None


def pods_on(snapshot: Snapshot, node: str) -> list[Obj]:
    """Unfinished pods bound to a node, terminating ones included."""
    return [pod for pod in snapshot.pods if dig(pod, "spec", "nodeName") == node and not is_finished(pod)]


def performance_demand(snapshot: Snapshot, settings: Settings) -> int:
    """P of ``queue_aware_v1``: performance-only pods anywhere, neither finished nor terminating."""
    return sum(
        1
        for pod in snapshot.pods
        if not is_finished(pod) and not is_terminating(pod) and is_performance_only(pod, settings.profile_key)
    )


def demand_by_class(snapshot: Snapshot, settings: Settings) -> Obj:
    """How many active pods insist on performance, on eco, or on neither."""
    counts = {"performanceOnly": 0, "ecoOnly": 0, "general": 0}
    for pod in snapshot.pods:
        if is_finished(pod) or is_terminating(pod):
            continue
        if is_performance_only(pod, settings.profile_key):
            counts["performanceOnly"] += 1
        elif is_eco_only(pod, settings.profile_key):
            counts["ecoOnly"] += 1
        else:
            counts["general"] += 1
    return counts


def is_eco_only(pod: Obj, profile_key: str) -> bool:
    """Selector or affinity speak of the profile, and a node labelled ``performance`` cannot satisfy them."""
    wanted = mapping(dig(pod, "spec", "nodeSelector")).get(profile_key)
    if wanted == "eco":
        return True
    required = dig(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, dict):
        return False
    terms = [mapping(term) for term in items(required.get("nodeSelectorTerms"))]
    speaks = any(
        expression.get("key") == profile_key for term in terms for expression in items(term.get("matchExpressions"))
    )
    return speaks and not any(_term_allows(term, profile_key, "performance") for term in terms)


def is_performance_only(pod: Obj, profile_key: str) -> bool:
    """By class, or because node selector and required affinity speak of the profile and can never match ``eco``."""
    if workload_class(pod) == "performance":
        return True
    wanted = mapping(dig(pod, "spec", "nodeSelector")).get(profile_key)
    if wanted is not None and wanted != "eco":
        return True
    required = dig(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, dict):
        return False
    terms = [mapping(term) for term in items(required.get("nodeSelectorTerms"))]
    mentioned = wanted is not None or any(
        expression.get("key") == profile_key for term in terms for expression in items(term.get("matchExpressions"))
    )
    allowing = [term for term in terms if _term_allows(term, profile_key, "eco")]
    if allowing and all(_demands_draining(term) for term in allowing):
        # Beside a term that rules eco out, one for draining nodes only keeps the pod alive there.
        return any(items(term.get("matchExpressions")) for term in terms if term not in allowing)
    return mentioned and not allowing


def _term_allows(term: Obj, profile_key: str, profile: str) -> bool:
    """Whether a profile can satisfy a term; other keys count as satisfiable, an empty term matches nothing."""
    expressions = items(term.get("matchExpressions"))
    if not expressions and not items(term.get("matchFields")):
        return False
    return all(_holds(expression, profile) for expression in expressions if expression.get("key") == profile_key)


def _demands_draining(term: Obj) -> bool:
    """Whether the term cannot hold on a node whose draining label is ``false`` or not there."""
    wishes = [wish for wish in items(term.get("matchExpressions")) if wish.get("key") == "joulie.io/draining"]
    return not all(_holds(wish, "false") for wish in wishes) and not all(_holds(wish, None) for wish in wishes)


def _holds(expression: Obj, value: str | None) -> bool:
    """Whether an expression holds on a node with this value of its key, or (None) without the key."""
    operator, values = expression.get("operator"), items(expression.get("values"))
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt") and values and value is not None:
        return greater_or_less(">" if operator == "Gt" else "<", value, str(values[0]))
    return False
