"""What a pod asks of a node: CPU cores and GPUs, as the Kubernetes scheduler reserves them.

A pod needs whichever is larger: all that runs side by side once it has started, or the most demanding moment while
it starts. Its runtime's overhead comes on top.

The rules: docs/reference/behaviour.md, 'Pod demand'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from joulie.model.kubernetes import Container, PodSpec, ResourceRequirements
from joulie.model.names import AMD_GPU, NVIDIA_GPU, WATTS_RESOURCE
from joulie.model.quantity import Quantity, parse_quantity

CPU = "cpu"

_CONTAINERS = "spec.containers"
_INIT_CONTAINERS = "spec.initContainers"
_SIDECAR_RESTART_POLICY = "Always"  # on an init container: it keeps running beside the others


class PodDemand(NamedTuple):
    """Cores and GPUs, NVIDIA and AMD together."""

    cpu_cores: float
    gpus: float


def demand(spec: PodSpec) -> PodDemand:
    """Cores and GPUs to reserve for this pod; a quantity that cannot be read is a ValueError, `path: reason`."""
    containers = spec.containers or ()
    if spec.init_containers or spec.overhead or spec.resources is not None or len(containers) > 1:
        gpus = _reserved(spec, NVIDIA_GPU) + _reserved(spec, AMD_GPU)
        return PodDemand(_reserved(spec, CPU), gpus)
    for container in containers:  # the one container that most pods consist of
        asked = container.resources
        if asked is not None:
            gpus = _asked(asked, NVIDIA_GPU, _CONTAINERS, 0) + _asked(asked, AMD_GPU, _CONTAINERS, 0)
            return PodDemand(_asked(asked, CPU, _CONTAINERS, 0), gpus)
    return PodDemand(0.0, 0.0)


def watts(spec: PodSpec) -> float:
    """The watts that the pod asks for as a resource; 0 where it asks for none, which costs next to nothing to see."""
    for containers in (spec.containers, spec.init_containers):
        for container in containers or ():
            asked = container.resources
            if asked is not None and _stated(asked, WATTS_RESOURCE) is not None:
                return _reserved(spec, WATTS_RESOURCE)
    return 0.0


def _reserved(spec: PodSpec, resource: str) -> float:
    """One resource of the whole pod. What the pod states as a whole replaces what its containers add up to."""
    whole = None if spec.resources is None else _stated(spec.resources, resource)
    if whole is not None:
        total = _parsed(whole[1], f"spec.resources.{whole[0]}.{resource}")
    else:
        total = _of_containers(spec.containers or (), spec.init_containers or (), resource)
    if spec.overhead and resource in spec.overhead:
        total += _parsed(spec.overhead[resource], f"spec.overhead.{resource}")
    return total


def _of_containers(containers: Sequence[Container], starters: Sequence[Container], resource: str) -> float:
    running = [
        _asked(container.resources, resource, _CONTAINERS, index)
        for index, container in enumerate(containers)
        if container.resources is not None
    ]
    sidecars: list[float] = []
    while_starting = 0.0
    for index, starter in enumerate(starters):
        resources = starter.resources
        asked = 0.0 if resources is None else _asked(resources, resource, _INIT_CONTAINERS, index)
        if starter.restart_policy == _SIDECAR_RESTART_POLICY:
            sidecars.append(asked)
        else:
            while_starting = max(while_starting, math.fsum((asked, *sidecars)))
    return max(math.fsum((*running, *sidecars)), while_starting)


def _asked(resources: ResourceRequirements, resource: str, containers: str, index: int) -> float:
    stated = _stated(resources, resource)
    if stated is None:
        return 0.0
    side, quantity = stated
    try:
        return parse_quantity(quantity)
    except ValueError as error:
        raise ValueError(f"{containers}[{index}].resources.{side}.{resource}: {error}") from None


def _stated(resources: ResourceRequirements, resource: str) -> tuple[str, Quantity] | None:
    """The request, else the limit: where only a limit stands, Kubernetes takes it for the request."""
    requests, limits = resources.requests, resources.limits
    if requests and resource in requests:
        return "requests", requests[resource]
    if limits and resource in limits:
        return "limits", limits[resource]
    return None


def _parsed(quantity: Quantity, path: str) -> float:
    try:
        return parse_quantity(quantity)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
