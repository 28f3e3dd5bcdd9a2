"""Random Pods: every way to ask for resources, to insist on a power profile, and to be alive or not."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.oracle.rules.values import Obj, format_time

PROFILE_KEY = "joulie.io/power-profile"
DRAINING_KEY = "joulie.io/draining"
GPU_KEYS = ("nvidia.com/gpu", "nvidia.com/gpu", "amd.com/gpu")
CPU_AMOUNTS: tuple[Any, ...] = (
    "100m",
    "250m",
    "1",
    "1.5",
    "2",
    "4",
    "8",
    "16",
    "64",
    "1e1",
    "2E0",
    "0.5",
    3,
    2.5,
    "1k",
    "500000u",
    "0",
)


def random_pod(
    rng: Random, name: str, nodes: list[str], twin_times: dict[str, float], now: float, contested: bool
) -> Obj:
    """One pod; bound ones were bound around the time at which their node's twin was updated."""
    spec = _resources(rng, contested)
    annotations = _class_annotation(rng)
    spec |= _constraints(rng, contested)
    metadata: Obj = {"name": name, "namespace": rng.choice(["default", "team-a"]), "uid": f"uid-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    status: Obj = {"phase": "Pending"}
    if nodes and rng.random() < 0.8:
        spec["nodeName"] = rng.choice([*nodes, "gone"]) if rng.random() < 0.1 else rng.choice(nodes)
        status["phase"] = rng.choice(["Running"] * 7 + ["Pending", "Succeeded", "Failed"])
        updated = twin_times.get(spec["nodeName"], now)
        bound = updated + rng.choice([-4000, -60, -1, 0, 0, 1, 30])
        if rng.random() < 0.9:
            status["conditions"] = [
                {"type": "Initialized", "status": "True", "lastTransitionTime": format_time(now)},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(bound)},
            ]
    elif rng.random() < 0.5:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": format_time(now)}]
    if rng.random() < 0.1:
        metadata["deletionTimestamp"] = format_time(now - 5)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _class_annotation(rng: Random) -> dict[str, str]:
    if rng.random() < 0.5:
        return {}
    return {
        "joulie.io/workload-class": rng.choice(["performance", "performance", "standard", "Performance", "best", ""])
    }


def _container(rng: Random, name: str, gpu_key: str | None) -> Obj:
    requests: Obj = {}
    limits: Obj = {}
    if rng.random() < 0.8:
        requests["cpu"] = rng.choice(CPU_AMOUNTS)
    if rng.random() < 0.3:
        limits["cpu"] = rng.choice(("20", "32", "64500m"))
    if rng.random() < 0.5:
        requests["memory"] = rng.choice(("2Gi", "512Mi", "1e9", "128M"))
    if gpu_key and rng.random() < 0.7:
        limits[gpu_key] = rng.choice(("1", "2", "4", "8", 1))
        if rng.random() < 0.5:
            requests[gpu_key] = limits[gpu_key]
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    container: Obj = {"name": name, "image": "registry.example/app:1"}
    if resources:
        container["resources"] = resources
    return container


def _resources(rng: Random, contested: bool) -> Obj:
    """Containers, init containers, sidecars, overhead and pod-level resources."""
    gpu_key = rng.choice(GPU_KEYS) if rng.random() < 0.4 else None
    spec: Obj = {"containers": [_container(rng, f"c{i}", gpu_key) for i in range(rng.choice([1, 1, 2, 3]))]}
    if rng.random() < 0.3:
        inits = []
        for i in range(rng.choice([1, 2, 3, 4])):
            init = _container(rng, f"i{i}", gpu_key if rng.random() < 0.3 else None)
            if rng.random() < 0.5:
                init["restartPolicy"] = "Always"
            inits.append(init)
        spec["initContainers"] = inits
    if rng.random() < 0.15:
        spec["overhead"] = {"cpu": rng.choice(("250m", "1")), "memory": "64Mi"}
    if rng.random() < 0.12:
        spec["resources"] = {"requests": {"cpu": rng.choice(("3", "12", "100"))}, "limits": {"cpu": "128"}}
        if contested and rng.random() < 0.5:
            del spec["resources"]["requests"]
    return spec


PROFILES = [["performance"], ["eco"], ["eco", "performance"], ["other"]]


def _expression(rng: Random, key: str) -> Obj:
    operator = rng.choice(["In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    expression: Obj = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        values = [["true"], ["true"], ["false"], ["true", "false"]] if key == DRAINING_KEY else PROFILES
        expression["values"] = rng.choice(values)
    elif operator in ("Gt", "Lt"):
        expression["values"] = ["3"]
    return expression


def _term(rng: Random, contested: bool) -> Obj:
    if contested and rng.random() < 0.1:
        return {}
    term: Obj = {
        "matchExpressions": [
            _expression(rng, rng.choice([PROFILE_KEY, PROFILE_KEY, DRAINING_KEY, "generation"]))
            for _ in range(rng.choice([1, 1, 2]))
        ]
    }
    if rng.random() < 0.1:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    return term


def _constraints(rng: Random, contested: bool) -> Obj:
    spec: Obj = {}
    if rng.random() < 0.15:
        spec["nodeSelector"] = rng.choice(
            [
                {PROFILE_KEY: "performance"},
                {PROFILE_KEY: "eco"},
                {"team": "a"},
                {PROFILE_KEY: "performance", "team": "b"},
            ]
        )
    roll = rng.random()
    if roll < 0.3:
        terms = [_term(rng, contested) for _ in range(rng.choice([1, 1, 2, 3]))]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    elif roll < 0.36:
        preference = {"matchExpressions": [{"key": PROFILE_KEY, "operator": "NotIn", "values": ["eco"]}]}
        spec["affinity"] = {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": preference}]
            }
        }
    return spec
