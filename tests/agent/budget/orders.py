"""Orders of power budgets as twins carry them, and the operator's Lease."""

from __future__ import annotations

from typing import Any

import msgspec

from joulie.cluster.decoding import decoders
from joulie.cluster.memory.cluster import MemoryServer
from joulie.cluster.port import LEASES
from joulie.model.api import NodeTwin
from joulie.model.names import BUDGET_LEASE

NAMESPACE = "joulie-system"


def caps(cpu_w: float, gpu_w: float | None = None) -> dict[str, float]:
    return {"cpuWattsPerPackage": cpu_w} | ({} if gpu_w is None else {"gpuWattsPerGpu": gpu_w})


def order(number: int, cpu_w: float, failsafe_w: float | None = None, gpu_w: float | None = None) -> dict[str, Any]:
    """`spec.budget` and `spec.failsafe`; by default the failsafe is far above."""
    safe = caps(10_000.0 if failsafe_w is None else failsafe_w, None if gpu_w is None else gpu_w)
    return {"budget": {"order": number, "caps": caps(cpu_w, gpu_w)}, "failsafe": safe}


def release(number: int) -> dict[str, Any]:
    return {"budget": {"order": number, "caps": caps(1000.0), "released": True}}


def twin(
    spec: dict[str, Any] | None = None, uid: str = "uid-1", created: str = "2026-01-01T00:00:00Z", **status: Any
) -> NodeTwin:
    metadata = {"name": "a", "uid": uid, "creationTimestamp": created}
    whole = {"metadata": metadata, "spec": {"nodeName": "a", **(spec or {})}, "status": status}
    return decoders.decode_twin(msgspec.json.encode(whole))


class BudgetLoop:
    """The sign of life of an operator."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self._renewals = 0
        self.renew()

    def renew(self) -> None:
        self._renewals += 1
        spec = {"holderIdentity": "operator-1", "renewTime": f"2026-11-18T08:00:00.{self._renewals:06d}Z"}
        self._server.put(LEASES, {"metadata": {"name": BUDGET_LEASE, "namespace": NAMESPACE}, "spec": spec}, NAMESPACE)
