"""Nodes, pods, pins and routes as a person or a controller would write them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from bench.clusters import cluster

Manifest = dict[str, Any]

JOULIE = "/apis/joulie.io/v1alpha1"
NAMESPACE = "team"
POOL_LABEL = "soak/pool"
HALF_LABEL = "soak/half"
MANAGED = "joulie.io/managed"


def pool_nodes(count: int) -> list[Manifest]:
    """Machines of several kinds, behind a simulator."""
    nodes = [item for item in islice(cluster(count, 0), count * 3) if item["kind"] == "Node"]
    for index, node in enumerate(nodes):
        node["metadata"]["labels"] |= {POOL_LABEL: "true", HALF_LABEL: str(index % 2)}
    return nodes


def host_node(name: str) -> Manifest:
    """A machine whose agent runs on it."""
    (node,) = pool_nodes(1)
    node["metadata"] |= {
        "name": name,
        "labels": {MANAGED: "true", HALF_LABEL: "0", "kubernetes.io/hostname": name},
    }
    return node


def pod(name: str, workload_class: str, cores: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"joulie.io/workload-class": workload_class},
        },
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": str(cores)}}}],
            "terminationGracePeriodSeconds": 0,
        },
    }


def pin(node: str, profile: str) -> Manifest:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodePowerProfile",
        "metadata": {"name": f"soak-{node}"},
        "spec": {"nodeName": node, "profile": profile},
    }


def route(control: str | None) -> Manifest:
    """Where the caps of the pool's nodes go; None: nowhere."""
    way = {"type": "none"} if control is None else {"type": "http", "http": {"endpoint": control}}
    selector = {"matchLabels": {POOL_LABEL: "true"}}
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "TelemetryProfile",
        "metadata": {"name": "soak-route"},
        "spec": {"target": {"scope": "cluster", "nodeSelector": selector}, "controls": {"cpu": way, "gpu": way}},
    }
