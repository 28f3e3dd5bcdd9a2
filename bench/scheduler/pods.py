"""Pods that wait for a scheduler, and the moments at which they are bound."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Sequence
from http.client import HTTPSConnection
from itertools import pairwise
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NAMESPACE = "default"
PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
SMALL = ("100m", "250m", "500m", "1")
PERFORMANCE_PART = 0.2
PATIENCE_S = 60.0
WATTS, POD_W = "joulie.io/watts", "10"


def waiting_pods(
    scheduler: str, count: int, cpu: Sequence[str] = SMALL, *, watts: bool = False
) -> list[dict[str, Any]]:
    """A fifth of them of class performance; the same for each scheduler but for the name, and for their watts."""
    rng = Random(1)
    pods = [_pod(f"{scheduler}-{number:05d}", scheduler, cpu, rng) for number in range(count)]
    for pod in pods if watts else ():
        (container,) = pod["spec"]["containers"]
        asked = container["resources"]["requests"]
        container["resources"] = {"requests": {**asked, WATTS: POD_W}, "limits": {WATTS: POD_W}}
    return pods


def _pod(name: str, scheduler: str, cpu: Sequence[str], rng: Random) -> dict[str, Any]:
    performance = rng.random() < PERFORMANCE_PART
    requests = {"cpu": rng.choice(cpu), "memory": "256Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": scheduler},
            "annotations": {"joulie.io/workload-class": "performance"} if performance else {},
            "creationTimestamp": "2026-11-01T10:00:00Z",
        },
        "spec": {
            "containers": [{"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}],
            "schedulerName": scheduler,
        },
        "status": {"phase": "Pending"},
    }


class Bindings:
    """A watch of one scheduler's pods, from now on, and the time of each binding.

    A thread of its own reads it, and goes on where a watch ended: the API server ends those that cannot keep up.
    """

    def __init__(self, plane: ControlPlane, scheduler: str, count: int) -> None:
        self._version = plane.api.get(f"{PATH}?limit=1")["metadata"]["resourceVersion"]
        tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._connection = HTTPSConnection(plane.api.host, plane.api.port, context=tls, timeout=PATIENCE_S)
        self._path = f"{PATH}?watch=1&fieldSelector=spec.schedulerName%3D{scheduler}&resourceVersion="
        self._headers = {"Authorization": f"Bearer {plane.admin_token}"}
        self._count = count
        self._moment_s: dict[str, float] = {}  # by pod
        self.nodes: dict[str, str] = {}  # by pod, in the order of the bindings
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def wait(self) -> None:
        """Until all pods are bound."""
        self._reader.join()
        if len(self._moment_s) < self._count:
            raise TimeoutError(f"{len(self._moment_s)} of {self._count} pods were bound")

    def _read(self) -> None:
        while len(self._moment_s) < self._count:
            self._connection.request("GET", self._path + self._version, headers=self._headers)
            for line in self._connection.getresponse():
                now_s = time.monotonic()
                pod = json.loads(line)["object"]
                self._version = pod["metadata"]["resourceVersion"]
                name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
                if node and name not in self.nodes:
                    self.nodes[name], self._moment_s[name] = node, now_s
                if len(self._moment_s) == self._count:
                    return

    @property
    def pods_per_s(self) -> float:
        """From the first to the last."""
        moments_s = list(self._moment_s.values())
        return (len(moments_s) - 1) / (moments_s[-1] - moments_s[0])

    @property
    def longest_pause_s(self) -> float:
        return max(later - earlier for earlier, later in pairwise(self._moment_s.values()))
