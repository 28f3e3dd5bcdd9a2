"""One measurement of the operator on a real API server: first contact, steady ticks, one changed node, refreshes.

Requests are counted by the API server's own metrics; CPU time and memory are those of the operator's whole process.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.operator.process import OperatorProcess
from testbed.processes import free_port

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane
    from testbed.requests_seen import Request

TWINS, HARDWARE, PINS = "nodetwins", "nodehardwares", "nodepowerprofiles"
JOULIE = "/apis/joulie.io/v1alpha1"
READS, WRITES = frozenset({"GET", "LIST"}), frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE"})
RESOURCES = frozenset({"nodes", "pods", "events", TWINS, HARDWARE, PINS})  # leases: the API server has one, too
FAST = {"KUBE_CLIENT_QPS": "100000", "KUBE_CLIENT_BURST": "100000"}
NEVER = "8000h"
GRACE_S = 0.4  # a tick's log line is written before the process is idle again


@dataclass(frozen=True)
class FirstContact:
    """From no twins to all twins."""

    writes: int
    rate_per_s: float


@dataclass(frozen=True)
class Steady:
    """Ticks in which nothing happens in the cluster."""

    ticks: int
    reads: int
    writes: int
    refreshes: int  # of the writes, those of a status alone
    cpu_s: float  # of the whole process from one tick to the next, median


@dataclass(frozen=True)
class OneChange:
    """What a single changed node costs."""

    writes: int
    objects: frozenset[str]  # that are not as before


class OperatorRun:
    """An operator on this cluster. `tick_s`: how often it decides."""

    def __init__(self, plane: ControlPlane, nodes: int, tick_s: float, refresh: str = NEVER) -> None:
        self._plane = plane
        self._nodes = nodes
        self._tick_s = tick_s
        settings = {"RECONCILE_INTERVAL": f"{tick_s}s", "TWIN_REFRESH_INTERVAL": refresh, **FAST}
        self._before = plane.metrics()
        self.process = OperatorProcess(plane.kubeconfig, plane.folder / "operator.log", free_port(), **settings)

    def first_contact(self) -> FirstContact:
        decisions = self.process.wait_for(lambda decisions: len(decisions) >= 3, 60 + self._nodes / 20)
        writes = _requests(self._plane.metrics() - self._before, WRITES)
        return FirstContact(sum(writes.values()), decisions[0]["written"] / decisions[0]["seconds"])

    def steady(self, ticks: int) -> Steady:
        self.process.wait_for_more(1, 60)
        time.sleep(GRACE_S)
        before, cpu_s = self._plane.metrics(), [self.process.cpu_s()]
        for _ in range(ticks):
            self.process.wait_for_more(1, 60 + 3 * self._tick_s)
            time.sleep(GRACE_S)
            cpu_s.append(self.process.cpu_s())
        seen = self._plane.metrics() - before
        each_s = statistics.median(later - earlier for earlier, later in itertools.pairwise(cpu_s))
        writes = _requests(seen, WRITES)
        refreshes = sum(number for request, number in writes.items() if request[:3] == ("APPLY", TWINS, "status"))
        reads = sum(_requests(seen, READS).values())
        return Steady(ticks, reads, sum(writes.values()), refreshes, each_s)

    def one_change(self, node: str) -> OneChange:
        """A person pins the node to the other profile, which concerns that node alone."""
        versions = self._versions()
        twin = self._plane.api.get(f"{JOULIE}/{TWINS}/{node}")
        other = "eco" if twin["spec"]["profile"] == "performance" else "performance"
        pin = {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodePowerProfile",
            "metadata": {"name": f"pin-{node}"},
            "spec": {"nodeName": node, "profile": other},
        }
        before = self._plane.metrics()
        self._plane.api.post(f"{JOULIE}/{PINS}", pin)
        self.process.wait_for_more(3, 60)
        time.sleep(GRACE_S)
        writes = _requests(self._plane.metrics() - before, WRITES)
        ours = sum(number for request, number in writes.items() if request.resource != PINS)
        after = self._versions()
        return OneChange(ours, frozenset(name for name, version in after.items() if versions.get(name) != version))

    def _versions(self) -> dict[str, str]:
        paths = {"nodes": "/api/v1/nodes", TWINS: f"{JOULIE}/{TWINS}", "events": "/api/v1/events"}
        return {
            f"{plural} {item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for plural, path in paths.items()
            for item in self._plane.api.get(path)["items"]
        }


def _requests(seen: Counter[Request], verbs: frozenset[str]) -> dict[Request, int]:
    return {
        request: number for request, number in seen.items() if request.verb in verbs and request.resource in RESOURCES
    }
