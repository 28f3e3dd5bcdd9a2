"""The Lease object: its holder, its times, and what a holder writes into it. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import json

Body = dict[str, Any]


class LeaseRecord:
    """One version of a Lease as the server returned it."""

    def __init__(self, data: bytes) -> None:
        body = json.decode(data)
        self.body: Body = body if isinstance(body, dict) else {}
        spec = self.body.get("spec")
        self._spec: Body = spec if isinstance(spec, dict) else {}

    @property
    def version(self) -> str:
        return str((self.body.get("metadata") or {}).get("resourceVersion") or "")

    @property
    def holder(self) -> str:
        holder = self._spec.get("holderIdentity")
        return holder if isinstance(holder, str) else ""

    def duration_s(self, default_s: float) -> float:
        """The lease duration that the holder wrote."""
        seconds = self._spec.get("leaseDurationSeconds")
        return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else default_s

    def taken(self, holder: str, lease_s: float, now_s: float) -> Body:
        """The Lease acquired or renewed; other fields are kept."""
        changes: Body = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(lease_s),
            "renewTime": self._later(now_s),
        }
        if holder != self.holder:
            transitions = self._spec.get("leaseTransitions")
            changes["acquireTime"] = changes["renewTime"]
            changes["leaseTransitions"] = (transitions if isinstance(transitions, int) else 0) + 1
        return self.body | {"spec": self._spec | changes}

    def released(self, now_s: float) -> Body:
        """The Lease without a holder, so that the next candidate need not wait."""
        changes = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._later(now_s)}
        return self.body | {"spec": self._spec | changes}

    def _later(self, now_s: float) -> str:
        """The current time, but never the same text twice: a write without a change would not renew the Lease."""
        now = micro_time(now_s)
        return now if now != self._spec.get("renewTime") else micro_time(now_s + 1e-6)


def new_lease(name: str, namespace: str, holder: str, lease_s: float, now_s: float) -> Body:
    now = micro_time(now_s)
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(lease_s),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    }


def micro_time(time_s: float) -> str:
    """`2026-11-01T12:00:00.000000Z`: the format of times in Leases."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(time_s * 1e6))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
