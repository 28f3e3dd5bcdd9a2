"""Nodes, pods and pins as an API server takes them."""

from __future__ import annotations

from typing import Any

from joulie.model.rfc3339 import format_time
from tests.operator.clusters import Body


def node(name: str, gpus: int = 0, **labels: str) -> Body:
    """A managed node with two EPYC 9654, and H100s if told so."""
    shown = {"managed": "true", "hw.cpu-model": "EPYC-9654", "hw.cpu-sockets": "2"}
    if gpus:
        shown |= {"hw.gpu-model": "H100-SXM", "hw.gpu-count": str(gpus)}
    named = {f"joulie.io/{key}": value for key, value in (shown | labels).items()}
    return {"metadata": {"name": name, "labels": named}, "status": {"capacity": {"cpu": "192"}}}


def pod(name: str, on: str = "", *, performance: bool = False, cpu: str = "8", **spec: Any) -> Body:
    """A running pod where it is bound, a pending one elsewhere."""
    annotations = {"joulie.io/workload-class": "performance"} if performance else {}
    container = {"name": "work", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }


def pin(name: str, on: str, profile: str, expires_at_s: float | None = None, **spec: Any) -> Body:
    end = {} if expires_at_s is None else {"expiresAt": format_time(expires_at_s)}
    return {"metadata": {"name": name}, "spec": {"nodeName": on, "profile": profile, **end, **spec}}
