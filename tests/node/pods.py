"""Pods of the small image, and looking at what became of them."""

from __future__ import annotations

from typing import Any

from testbed.api import ApiError
from testbed.node.images import BUSYBOX
from testbed.node.node import Node
from tests.chart.kubelet import until

Manifest = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, *command: str, image: str = BUSYBOX, **spec: Any) -> Manifest:
    """Runs this command in a shell, or sleeps."""
    container: Manifest = {"name": "main", "image": image}
    if command:
        container["command"] = ["/bin/sh", "-c", " && ".join(command)]
    container |= spec.pop("container", {})
    metadata = {"name": name, "labels": {"app": name}, "annotations": spec.pop("annotations", {})}
    spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", **spec, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def look(node: Node, path: str) -> Manifest | None:
    """The object as it is now, None where there is none."""
    try:
        found: Manifest = node.api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return found


def phase(node: Node, name: str) -> str:
    found = look(node, f"{PODS}/{name}")
    return found["status"]["phase"] if found else "gone"


def is_ready(manifest: Manifest) -> bool:
    conditions = {one["type"]: one["status"] for one in manifest["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"


def finished(node: Node, manifest: Manifest) -> str:
    """Run it to its end; what it printed."""
    name = manifest["metadata"]["name"]
    node.api.apply([manifest])
    until(lambda: phase(node, name) in ("Succeeded", "Failed"), f"pod {name} has ended")
    said = node.api.raw("GET", f"{PODS}/{name}/log").decode()
    assert phase(node, name) == "Succeeded", said
    return said


def running(node: Node, manifest: Manifest) -> Manifest:
    """Start it; the pod once it is Ready."""
    name = manifest["metadata"]["name"]
    node.api.apply([manifest])
    until(lambda: (found := look(node, f"{PODS}/{name}")) and is_ready(found), f"pod {name} is Ready")
    found: Manifest = node.api.get(f"{PODS}/{name}")
    return found


def clear(node: Node) -> None:
    """Delete all pods of the namespace `default`, and wait until kubelet is done with them."""
    node.api.delete(PODS)
    until(lambda: not node.api.get(PODS)["items"], "all pods are gone")
