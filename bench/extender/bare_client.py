"""The operator's yardsticks: how fast a client writes that does nothing else, and how long json.loads takes."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import aiohttp

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

CONCURRENCY = 64
JOULIE = "/apis/joulie.io/v1alpha1"
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
SPEC = {"policy": {"name": "static_partition"}, "scheduling": {"draining": False}}
STATUS = {
    "schedulableClass": "eco",
    "predictedPowerHeadroomScore": 52.4,
    "predictedCoolingStressScore": 12.6,
    "predictedPsuStressScore": 88.25,
    "effectiveCapState": {"cpuPct": 60.0},
    "hardwareDensityScore": 100.0,
    "powerMeasurement": {
        "source": "static",
        "measuredNodePowerW": 204.25,
        "cpuCappedPowerW": 480.0,
        "gpuCappedPowerW": 0.0,
        "nodeCappedPowerW": 480.0,
        "cpuTdpW": 800.0,
        "gpuTdpW": 0.0,
        "nodeTdpW": 800.0,
        "powerTrendWPerMin": 0.0,
    },
    "lastUpdated": "2026-11-01T12:00:00Z",
    "conditions": [
        {
            "type": "Draining",
            "status": "False",
            "reason": "NotDraining",
            "message": "",
            "lastTransitionTime": "2026-11-01T12:00:00Z",
            "observedGeneration": 1,
        }
    ],
}
APPLIED_BY = "fieldManager=bench&force=true"


def write_rate_per_s(plane: ControlPlane, nodes: int) -> float:
    """Writes a second, 64 nodes at once, of what first contact writes: create a twin, its status, a label of the node.

    There must be no twins; those that it makes are removed, not in that time. There are no watches, which spares the
    API server a fifth of its work.
    """
    waiting = deque(_requests(f"node-{index:05d}", time.monotonic_ns()) for index in range(nodes))
    rate_per_s = asyncio.run(_write(plane, waiting))
    plane.api.delete(f"{JOULIE}/nodetwins")
    return rate_per_s


class _Request(NamedTuple):
    method: str
    path: str
    body: bytes
    content_type: str


def _requests(node: str, nonce: int) -> tuple[_Request, ...]:
    spec = {"nodeName": node, "profile": "eco", "cpu": {"packagePowerCapPctOfMax": 60.0}, **SPEC}
    twin = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin", "metadata": {"name": node}, "spec": spec}
    status = {**{key: twin[key] for key in ("apiVersion", "kind", "metadata")}, "status": STATUS}
    label = {"metadata": {"labels": {"bench.example/power-profile": f"eco-{nonce}"}}}
    return (
        _Request("POST", f"{JOULIE}/nodetwins", json.dumps(twin).encode(), JSON),
        _Request("PATCH", f"{JOULIE}/nodetwins/{node}/status?{APPLIED_BY}", json.dumps(status).encode(), APPLY),
        _Request("PATCH", f"/api/v1/nodes/{node}", json.dumps(label).encode(), MERGE),
    )


async def _write(plane: ControlPlane, waiting: deque[tuple[_Request, ...]]) -> float:
    number = sum(map(len, waiting))
    connector = aiohttp.TCPConnector(limit=CONCURRENCY, ssl=ssl.create_default_context(cafile=str(plane.ca_file)))
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    async with aiohttp.ClientSession(plane.url, connector=connector, headers=headers) as session:

        async def work() -> None:
            while waiting:
                for method, path, body, content_type in waiting.popleft():
                    told = {"Content-Type": content_type}
                    async with session.request(method, path, data=body, headers=told) as answer:
                        await answer.read()
                        answer.raise_for_status()

        began_s = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        return number / (time.perf_counter() - began_s)


class Loaded(NamedTuple):
    """What reading all objects with the standard library takes."""

    cpu_s: float
    megabytes: float


def json_loads(plane: ControlPlane) -> Loaded:
    """CPU time of `json.loads` on every list that the operator reads, page by page, with the collector off."""
    cpu_s, size = 0.0, 0
    paths = ("/api/v1/nodes", "/api/v1/pods", f"{JOULIE}/nodehardwares", f"{JOULIE}/nodetwins")
    for path in paths:
        token = ""
        while True:
            data = plane.api.raw("GET", f"{path}?limit=500&continue={quote(token)}")
            size += len(data)
            gc.collect()
            gc.disable()
            began_s = time.process_time()
            page = json.loads(data)
            cpu_s += time.process_time() - began_s
            gc.enable()
            token = page["metadata"].get("continue", "")
            if not token:
                break
    return Loaded(cpu_s, size / 1e6)
