"""Nodes beside the real one that exist only in name, played by KWOK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.clusters import cluster

ANNOTATION = "kwok.x-k8s.io/node"
LEASE_S = 40

# What becomes of the status; KWOK fills in the templates.
NODE_IS_READY = """conditions:
- type: Ready
  status: "True"
  reason: KubeletReady
  lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
"""
POD_RUNS = """phase: Running
startTime: {{ Now | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ Now | Quote }}}}
{{ end }}
"""


def kwok(binary: Path, kubeconfig: Path, folder: Path) -> list[str]:
    """Plays kubelet for nodes that say by an annotation that they do not exist."""
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    ending = ".metadata.deletionTimestamp"
    stages = [
        _stage("node", {"statusTemplate": NODE_IS_READY}, (ready, "NotIn", ["True"])),
        _stage("pod", {"statusTemplate": POD_RUNS}, (ending, "DoesNotExist", []), (".status.phase", "In", ["Pending"])),
        _stage("pod", {"delete": True, "finalizers": {"empty": True}}, (ending, "Exists", [])),
    ]
    file = folder / "kwok.yaml"
    file.write_text("\n---\n".join(json.dumps(stage) for stage in stages))
    return [
        *(str(binary), f"--config={file}", f"--kubeconfig={kubeconfig}", f"--node-lease-duration-seconds={LEASE_S}"),
        *("--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake"),
    ]


def _stage(kind: str, following: dict[str, Any], *conditions: tuple[str, str, list[str]]) -> dict[str, Any]:
    matching = [
        {"key": key, "operator": operator, **({"values": values} if values else {})}
        for key, operator, values in conditions
    ]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"{kind}-{'-'.join(following).lower()}"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind.capitalize()},
            "selector": {"matchExpressions": matching},
            "next": following,
        },
    }


def kwok_nodes(count: int) -> Iterator[dict[str, Any]]:
    """In scope of Joulie, in racks, of several kinds; with a taint that keeps pods off unless they tolerate it."""
    for node in cluster(count, 0):
        if node["kind"] == "Node":
            node["metadata"]["annotations"] = {ANNOTATION: "fake"}
            node["metadata"]["labels"]["type"] = "kwok"
            node["spec"]["taints"] = [{"key": ANNOTATION, "value": "fake", "effect": "NoSchedule"}]
            node["status"]["conditions"] = []  # KWOK's to write
            yield node
