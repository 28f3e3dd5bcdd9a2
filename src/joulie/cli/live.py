"""Reads objects from the live cluster that kubectl would use, or from files; connects long-running processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import Raw

    from joulie.cli.connection import ClusterConnection
    from joulie.cli.installation.operator_lease import OperatorLease
    from joulie.cluster.api.cluster import KubernetesCluster
    from joulie.cluster.files.manifests import Loaded
    from joulie.cluster.port import Resource
    from joulie.cluster.watch.observer import ClusterObserver
    from joulie.model.api import NodeTwin, PowerBudget, TelemetryProfile
    from joulie.model.snapshot import Snapshot, Telemetry
    from joulie.overview.nodes import Written

# Finished pods neither hold nor use a node, and there may be many.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
REASON_ANNOTATION = "joulie.io/reason"
SKEW_WARNING_S = 5.0


@dataclass(frozen=True)
class LiveCluster:
    """A cluster at one moment, as listed from the API server."""

    snapshot: Snapshot
    origin: str  # which cluster, for people
    missing: tuple[str, ...] = ()  # kinds of Joulie that the API server does not serve
    undecodable: tuple[tuple[str, str, str], ...] = ()  # kind, name and why; such objects count as absent
    pin_reasons: Mapping[str, str] = field(default_factory=dict)  # by pin
    operator_settings: Mapping[str, str] = field(default_factory=dict)  # of the running operator
    leases: tuple[OperatorLease, ...] | None = ()  # None: listing them is not allowed
    written: Mapping[str, Written] = field(
        default_factory=dict
    )  # by node: when its twin was written, by the server's clock
    profiles: tuple[TelemetryProfile, ...] = ()
    budgets: tuple[PowerBudget, ...] = ()
    ahead_s: float = 0.0  # local clock minus API server's clock, if more than a few seconds

    def leader(self, now_s: float) -> str:
        """The leader's identity; empty if there is none or leases cannot be listed."""
        return next((lease.holder for lease in self.leases or () if lease.leads(now_s)), "")

    @property
    def warnings(self) -> list[str]:
        """Caveats about what was read."""
        lines = [f"{kind}/{name}: {reason}; it counts as absent" for kind, name, reason in self.undecodable]
        if self.missing:
            lines.append(
                f"{', '.join(self.missing)}: the cluster does not have these kinds; "
                "to install them: joulie crds | kubectl apply -f -"
            )
        return lines


async def read_live(connection: ClusterConnection, pods_on: str = "") -> LiveCluster:
    """Lists each kind that a decision depends on; `pods_on` limits pods to those of one node."""
    import asyncio

    from joulie.cli.installation.operator_lease import operator_leases
    from joulie.cli.installation.workloads import operator_settings
    from joulie.cluster.port import (
        NODE_HARDWARE,
        NODE_POWER_PROFILES,
        NODE_TWINS,
        NODES,
        PODS,
        POWER_BUDGETS,
        TELEMETRY_PROFILES,
    )
    from joulie.model.snapshot import Snapshot

    (nodes, pods, hardware, twins, pins), budgets, profiles, settings, leases = await asyncio.gather(
        asyncio.gather(
            connection.list_all(NODES),
            connection.list_all(PODS, fields=f"{UNFINISHED},spec.nodeName={pods_on}" if pods_on else UNFINISHED),
            connection.list_if_served(NODE_HARDWARE),
            connection.list_if_served(NODE_TWINS),
            connection.list_if_served(NODE_POWER_PROFILES),
        ),
        _listed_if_allowed(connection, POWER_BUDGETS),
        _listed_if_allowed(connection, TELEMETRY_PROFILES),
        operator_settings(connection),
        operator_leases(connection),
    )
    kinds = {NODE_HARDWARE: hardware, NODE_TWINS: twins, NODE_POWER_PROFILES: pins}
    undecodable: list[tuple[str, str, str]] = []
    decoded = {kind: _decoded(kind, bodies or (), undecodable) for kind, bodies in kinds.items()}
    routes = _decoded(TELEMETRY_PROFILES, profiles, undecodable)
    limits = _decoded(POWER_BUDGETS, budgets, undecodable)
    known_twins = {twin.node: twin for twin in decoded[NODE_TWINS]}
    snapshot = Snapshot(
        nodes={node.name: node for node in _decoded(NODES, nodes, undecodable)},
        pods=tuple(_decoded(PODS, pods, undecodable)),
        hardware={one.metadata.name: one for one in decoded[NODE_HARDWARE]},
        twins=known_twins,
        pins=tuple(decoded[NODE_POWER_PROFILES]),
        telemetry=telemetry_of(known_twins),
    )
    return LiveCluster(
        snapshot,
        connection.credentials.origin,
        tuple(kind.kind for kind, bodies in kinds.items() if bodies is None),
        tuple(undecodable),
        _pin_reasons(pins or ()),
        settings,
        leases,
        _written(twins or ()),
        tuple(routes),
        tuple(limits),
        _ahead_s(connection),
    )


async def _listed_if_allowed(connection: ClusterConnection, kind: Resource) -> Sequence[Raw]:
    """Empty if they are not served or listing them is not allowed: no plan depends on them."""
    from joulie.cluster.port import ClusterError

    try:
        return await connection.list_if_served(kind) or ()
    except ClusterError:
        return ()


def server_now_s(connection: ClusterConnection) -> float:
    """The time by the API server's clock, if it differs from the local clock by more than a few seconds."""
    import time

    return time.time() - _ahead_s(connection)


def _ahead_s(connection: ClusterConnection) -> float:
    """Taken from the Date header of the last response, which has whole seconds."""
    import time
    from email.utils import parsedate_to_datetime

    if not connection.transport.server_date:
        return 0.0
    ahead_s = time.time() - (parsedate_to_datetime(connection.transport.server_date).timestamp() + 0.5)
    return ahead_s if abs(ahead_s) > SKEW_WARNING_S else 0.0


def _written(twins: Sequence[Raw]) -> dict[str, Written]:
    """When operator and agent last wrote each twin, from the API server's own timestamps in managedFields.

    Only entries that belong to exactly one of the two, and to a field manager of Joulie, count.
    """
    import msgspec

    from joulie.model.rfc3339 import readable_time_s
    from joulie.overview.nodes import Written

    found: dict[str, Written] = {}
    for body in twins:
        metadata = _metadata(body)
        at: dict[str, float] = {}
        for entry in metadata.get("managedFields") or ():
            owned = msgspec.json.encode(entry.get("fieldsV1") or {})
            operators, agents = b'"f:lastUpdated"' in owned, b'"f:updatedAt"' in owned
            stamp_s = readable_time_s(entry.get("time"))
            if stamp_s is None or operators == agents or not str(entry.get("manager")).startswith("joulie"):
                continue
            writer = "operator_s" if operators else "agent_s"
            at[writer] = max(stamp_s, at.get(writer, stamp_s))
        if at:
            found[metadata["name"]] = Written(**at)
    return found


def telemetry_of(twins: Mapping[str, NodeTwin]) -> Telemetry:
    """The measurements that the operator wrote into the twins, so that a plan made here agrees with its own."""
    from joulie.model.rfc3339 import readable_time_s
    from joulie.model.snapshot import PowerReading, Telemetry
    from joulie.model.tiers import MEASURED

    power: dict[str, PowerReading] = {}
    trend: dict[str, float] = {}
    pue = None
    for name, twin in twins.items():
        measured = twin.status.power_measurement if twin.status else None
        written_at_s = readable_time_s(twin.status.last_updated) if twin.status else None
        if measured is None or written_at_s is None:
            continue
        if measured.source in MEASURED and measured.measured_node_power_w is not None:
            power[name] = PowerReading(measured.source, measured.measured_node_power_w, written_at_s)
        if measured.power_trend_w_per_min is not None:
            trend[name] = measured.power_trend_w_per_min
        pue = twin.status.estimated_pue if twin.status and twin.status.estimated_pue is not None else pue
    return Telemetry(power=power, trend_w_per_min=trend, estimated_pue=pue)


def _decoded(resource: Resource, bodies: Sequence[Raw], undecodable: list[tuple[str, str, str]]) -> list[Any]:
    """The objects that can be decoded; the others are added to `undecodable`."""
    from joulie.cluster.decoding.decoders import DECODERS

    decode, found = DECODERS[resource], []
    for body in bodies:
        try:
            found.append(decode(bytes(body)))
        except ValueError as error:
            undecodable.append((resource.kind, _metadata(body)["name"], str(error)))
    return found


def _pin_reasons(pins: Sequence[Raw]) -> dict[str, str]:
    reasons = {one["name"]: (one.get("annotations") or {}).get(REASON_ANNOTATION, "") for one in map(_metadata, pins)}
    return {name: reason for name, reason in reasons.items() if reason}


def _metadata(body: Raw) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.json.decode(body)["metadata"])


def on_cluster(
    kubeconfig: str,
    context: str,
    observer: ClusterObserver,
    field_manager: str,
    work: Callable[[KubernetesCluster], Awaitable[int]],
    **options: Any,
) -> int:
    """Runs the work with a cluster connection and returns its exit code."""
    import asyncio
    from pathlib import Path

    from joulie.cluster.api.cluster import KubernetesCluster
    from joulie.cluster.api.credentials import find_credentials

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())

    async def connected() -> int:
        cluster = KubernetesCluster(credentials, field_manager=field_manager, observer=observer, **options)
        try:
            return await work(cluster)
        finally:
            await cluster.close()

    return asyncio.run(connected())


def read_objects(filenames: tuple[str, ...]) -> Loaded:
    """The objects of the files; prints warnings about invalid ones to standard error."""
    from joulie.cli.output import warn
    from joulie.cluster.files import manifests

    loaded = manifests.read(filenames, sys.stdin.buffer)
    warn(loaded.warnings)
    return loaded
