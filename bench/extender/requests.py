"""What kube-scheduler asks an extender, written as it writes it: names, or whole nodes of about 3 KB."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from bench.clusters import Object, cluster

VERBS = ("prioritize", "filter")
CLASSES = ("standard", "performance")
IMAGES, FEATURES = 6, 10  # of the images and features of a generated node; managed fields the scheduler drops itself


def names_body(nodes: int, workload_class: str) -> bytes:
    """With `nodeCacheCapable: true`."""
    names = [f"node-{index:05d}" for index in range(nodes)]
    return _body(workload_class, {"Nodes": None, "NodeNames": names})


def one_unknown_body(nodes: int, workload_class: str) -> bytes:
    """The same, with a node that has just come."""
    body = names_body(nodes, workload_class)
    return body.replace(f"node-{nodes - 1:05d}".encode(), b"newcomer-1")


def nodes_body(nodes: int, workload_class: str) -> bytes:
    """With `nodeCacheCapable: false`."""
    return _body(workload_class, {"Nodes": {"metadata": {}, "items": _whole_nodes(nodes)}, "NodeNames": None})


def message(verb: str, body: bytes) -> bytes:
    """The request as it goes over the connection."""
    head = f"POST /{verb} HTTP/1.1\r\nHost: extender\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def _body(workload_class: str, candidates: Object) -> bytes:
    return msgspec.json.encode({"Pod": _pod(workload_class), **candidates})


def _pod(workload_class: str) -> Object:
    """One that waits, and asks for cores and a GPU."""
    *_, bound = cluster(1, 1)
    pod = {**_trimmed(bound), "status": {"phase": "Pending"}}
    del pod["spec"]["nodeName"]
    pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    if workload_class == "performance":
        pod["metadata"]["annotations"]["joulie.io/workload-class"] = "performance"
    return pod


@cache
def _whole_nodes(nodes: int) -> Sequence[Object]:
    return [_smaller(item) for item in cluster(nodes, 0) if item["kind"] == "Node"]


def _smaller(node: Object) -> Object:
    trimmed = _trimmed(node)
    labels: dict[str, Any] = trimmed["metadata"]["labels"]
    features = [name for name in labels if name.startswith("feature.")][FEATURES:]
    metadata = {**trimmed["metadata"], "labels": {name: labels[name] for name in labels if name not in features}}
    status = {**trimmed["status"], "images": trimmed["status"]["images"][:IMAGES]}
    return {"metadata": metadata, "spec": trimmed["spec"], "status": status}


def _trimmed(item: Object) -> Object:
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "managedFields"}}
