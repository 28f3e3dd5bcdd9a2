"""Generated clusters as JSON objects: nodes of about 7 KB and pods of about 4 KB, as real ones are.

The same numbers always give the same cluster. Objects carry what the API server really writes (conditions, images,
volumes, managed fields), because skipping it is a large part of the work that is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from joulie.cluster.files.collection import Collection
from joulie.model.snapshot import Snapshot

Object = dict[str, Any]

MACHINES = (
    ("AMD EPYC 9654 96-Core Processor", 2, 192, None, 0),
    ("AMD EPYC 9965 192-Core Processor", 2, 384, None, 0),
    ("INTEL(R) XEON(R) GOLD 6530", 2, 64, "NVIDIA-L40S", 4),
    ("AMD EPYC 9534 64-Core Processor", 2, 128, "NVIDIA-H100-80GB-HBM3", 8),
    ("AMD EPYC 9375F 32-Core Processor", 2, 64, "AMD_Instinct_MI300X_OAM", 8),
)
NOW = "2026-11-01T12:00:00Z"


def cluster(node_count: int, pods_per_node: int = 10, seed: int = 1) -> Iterator[Object]:
    """Nodes, NodeHardware, NodeTwins and pods; about a tenth of the pods wait, a fifth ask for performance."""
    rng = Random(seed)
    for index in range(node_count):
        yield _node(index, rng)
        yield _hardware(index)
        yield _twin(index, rng)
    for index in range(node_count * pods_per_node):
        node = f"node-{rng.randrange(node_count):05d}" if rng.random() > 0.1 else None
        yield _pod(index, node, rng)


def cluster_json(node_count: int, pods_per_node: int = 10, seed: int = 1) -> bytes:
    """The same as `kubectl get -o json` would print it, without the line breaks."""
    items = b",".join(msgspec.json.encode(item) for item in cluster(node_count, pods_per_node, seed))
    return b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}"


def snapshot(node_count: int, pods_per_node: int = 10, seed: int = 1) -> Snapshot:
    """The same as the decision code sees it."""
    collection = Collection()
    collection.add("generated", list(cluster(node_count, pods_per_node, seed)))
    return collection.snapshot()


def _meta(name: str, rng: Random, **more: Any) -> Object:
    return {
        "name": name,
        "uid": f"{rng.getrandbits(128):032x}",
        "resourceVersion": str(rng.getrandbits(32)),
        "creationTimestamp": "2026-10-01T08:00:00Z",
        **more,
    }


def _managed_fields(fields: int) -> list[Object]:
    names: Object = {f"f:field-{number}": {".": {}, f"f:part-{number}": {}} for number in range(fields)}
    return [
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsV1": {"f:status": names}}
    ]


def _node(index: int, rng: Random) -> Object:
    model, sockets, cores, gpu, gpus = MACHINES[index % len(MACHINES)]
    name = f"node-{index:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
        "joulie.io/managed": "true",
        "joulie.io/rack": f"rack-{index // 20:03d}",
        "joulie.io/hw.cpu-model": model.replace(" ", "-").replace("(R)", ""),
        "joulie.io/hw.cpu-sockets": str(sockets),
        **{f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{number}": "true" for number in range(30)},
    }
    capacity = {"cpu": str(cores), "memory": "792000000Ki", "pods": "250", "ephemeral-storage": "1800Gi"}
    if gpu:
        key = "amd.com/gpu" if gpu.startswith("AMD") else "nvidia.com/gpu"
        labels[f"{key}.product"] = gpu
        capacity[key] = str(gpus)
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": NOW,
            "lastTransitionTime": "2026-10-01T08:00:00Z",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet has nothing to say about {kind} on this node",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example/team/app-{n}@sha256:{rng.getrandbits(256):064x}"], "sizeBytes": 123456789 + n}
        for n in range(20)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(name, rng, labels=labels, managedFields=_managed_fields(20)),
        "spec": {"podCIDR": f"10.{index // 250 % 250}.{index % 250}.0/24", "providerID": f"metal://{name}"},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": conditions, "images": images},
    }


def _hardware(index: int) -> Object:
    model, sockets, cores, gpu, gpus = MACHINES[index % len(MACHINES)]
    status: Object = {
        "cpu": {
            "rawModel": model,
            "sockets": sockets,
            "totalCores": cores,
            "capRange": {"minWattsPerSocket": 100, "maxWattsPerSocket": 400},
            "controlAvailable": True,
        },
        "quality": {"overall": "exact"},
        "updatedAt": NOW,
    }
    if gpu:
        limits = {"minWatts": 200, "maxWatts": 700, "defaultWatts": 700}
        status["gpu"] = {"present": True, "rawModel": gpu, "count": gpus, "capRangePerGpu": limits}
    return _joulie("NodeHardware", index, status=status)


def _twin(index: int, rng: Random) -> Object:
    profile = "performance" if index % 2 else "eco"
    watts = 400.0 + rng.random() * 400
    return _joulie(
        "NodeTwin",
        index,
        spec={"nodeName": f"node-{index:05d}", "profile": profile, "cpu": {"packagePowerCapPctOfMax": 60}},
        status={
            "schedulableClass": profile,
            "predictedPowerHeadroomScore": 60 + rng.random() * 20,
            "predictedCoolingStressScore": 20 + rng.random() * 20,
            "powerMeasurement": {
                "source": "kepler",
                "measuredNodePowerW": watts,
                "nodeCappedPowerW": 1400,
                "nodeTdpW": 2000,
                "powerTrendWPerMin": rng.random() * 20 - 10,
            },
            "lastUpdated": "2026-11-01T11:59:30Z",
        },
    )


def _joulie(kind: str, index: int, **parts: Any) -> Object:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": f"node-{index:05d}", "creationTimestamp": "2026-10-01T08:00:00Z"},
        **parts,
    }


def _pod(index: int, node: str | None, rng: Random) -> Object:
    requests: Object = {"cpu": rng.choice(["250m", "500m", "1", "2", "4"]), "memory": "2Gi"}
    limits: Object = {"memory": "4Gi"}
    if rng.random() < 0.15:
        requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"] = "1"
    container = {
        "name": "main",
        "image": f"registry.example/team/app-{index % 50}:1.4.{index % 9}",
        "resources": {"requests": requests, "limits": limits},
        "env": [{"name": f"SETTING_{number}", "value": f"value-of-{number}-{index}"} for number in range(12)],
        "volumeMounts": [{"name": f"volume-{number}", "mountPath": f"/var/data/{number}"} for number in range(4)],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
    }
    sidecar = {"name": "proxy", "image": "registry.example/mesh/proxy:2.1", "resources": {"requests": {"cpu": "100m"}}}
    spec: Object = {
        "containers": [container, sidecar],
        "volumes": [{"name": f"volume-{n}", "configMap": {"name": f"config-{n}"}} for n in range(4)],
        "tolerations": [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("not-ready", "slow")],
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
    }
    annotations = {"prometheus.io/scrape": "true", "checksum/config": f"{rng.getrandbits(256):064x}"}
    if rng.random() < 0.2:
        annotations["joulie.io/workload-class"] = "performance"
    status: Object = {"phase": "Pending"}
    if node:
        spec["nodeName"] = node
        status = {
            "phase": "Running",
            "podIP": "10.1.2.3",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-01T10:00:00Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": name, "ready": True, "containerID": f"containerd://{rng.getrandbits(256):064x}"}
                for name in ("main", "proxy")
            ],
        }
    meta = _meta(
        f"pod-{index:06d}",
        rng,
        namespace=f"team-{index % 40}",
        labels={"app": f"app-{index % 50}", "pod-template-hash": f"{rng.getrandbits(40):010x}"},
        annotations=annotations,
        managedFields=_managed_fields(23),
    )
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
