"""The leases of operators, as anybody may see them: who leads, where, and since when it is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from joulie.cluster.lease import LeaseTimes
from joulie.cluster.port import LEASES, ClusterError
from joulie.model.rfc3339 import readable_time_s
from joulie.operator.process import LEASE_NAME

if TYPE_CHECKING:
    from joulie.cli.connection import Connection

SLACK_S = 5.0  # clocks differ by seconds


class OperatorLease(NamedTuple):
    """One lease of an operator; there is one in each namespace where one ran."""

    namespace: str
    holder: str  # "": nobody's
    renewed_at_s: float | None
    lasts_s: float

    def leads(self, now_s: float) -> bool:
        """Whether its holder is alive, as far as a clock elsewhere can tell."""
        return bool(self.holder) and self.renewed_at_s is not None and self.silent_s(now_s) <= self.lasts_s + SLACK_S

    def silent_s(self, now_s: float) -> float:
        return now_s - (self.renewed_at_s or 0.0)


async def operator_leases(connection: Connection) -> tuple[OperatorLease, ...] | None:
    """In all namespaces; None where they may not be listed."""
    try:
        bodies = await connection.list_all(LEASES, fields=f"metadata.name={LEASE_NAME}")
    except ClusterError:
        return None
    return tuple(_lease(msgspec.json.decode(body)) for body in bodies)


def _lease(body: dict[str, object]) -> OperatorLease:
    metadata, spec = body["metadata"], body.get("spec") or {}
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    lasts_s = float(spec.get("leaseDurationSeconds") or LeaseTimes().lease_s)
    return OperatorLease(
        metadata["namespace"], spec.get("holderIdentity") or "", readable_time_s(spec.get("renewTime")), lasts_s
    )
