"""TelemetryProfiles and twins as the API server would tell of them."""

from __future__ import annotations

from typing import Any

import msgspec

from joulie.cluster.decoding import decoders
from joulie.model.api import NodeTwin, TelemetryProfile
from joulie.model.snapshot import Pin


def profile(name: str, target: dict[str, Any], created: str = "2026-01-01T00:00:00Z", **spec: Any) -> TelemetryProfile:
    metadata = {"name": name, "creationTimestamp": created}
    return decoders.decode_telemetry(msgspec.json.encode({"metadata": metadata, "spec": {"target": target, **spec}}))


def http_control(endpoint: str, **more: Any) -> dict[str, Any]:
    return {"type": "http", "http": {"endpoint": endpoint, **more}}


def twin(name: str, spec: dict[str, Any] | None = None, **status: Any) -> NodeTwin:
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    whole = {"metadata": metadata, "spec": {"nodeName": name, **(spec or {})}, "status": status}
    return decoders.decode_twin(msgspec.json.encode(whole))


def pin(name: str, node: str, profile_name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Pin:
    metadata = {"name": name, "creationTimestamp": created}
    whole = {"metadata": metadata, "spec": {"nodeName": node, "profile": profile_name, **spec}}
    return decoders.decode_pin(msgspec.json.encode(whole))
