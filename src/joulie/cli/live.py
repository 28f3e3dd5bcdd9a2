"""Where objects come from: a live cluster as kubectl finds it, or files; for processes and for one look."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import Raw

    from joulie.cli.connection import Connection
    from joulie.cli.operator_lease import OperatorLease
    from joulie.cluster.kubernetes import KubernetesCluster
    from joulie.cluster.observer import ClusterObserver
    from joulie.cluster.port import Resource
    from joulie.model.api import NodeTwin
    from joulie.model.snapshot import Snapshot, Telemetry

# Finished pods neither hold a node nor use it, and there may be many.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
REASON_ANNOTATION = "joulie.io/reason"


@dataclass(frozen=True)
class Live:
    """A cluster at one moment, as the API server told it."""

    snapshot: Snapshot
    origin: str  # for people: which cluster
    missing: tuple[str, ...] = ()  # kinds of Joulie's that the API server does not know
    broken: tuple[tuple[str, str, str], ...] = ()  # kind, name and why it cannot be read; it counts as absent
    pin_reasons: Mapping[str, str] = field(default_factory=dict)  # by pin
    operator_settings: Mapping[str, str] = field(default_factory=dict)  # of the operator that runs there
    leases: tuple[OperatorLease, ...] | None = ()  # None: nobody may look

    def leader(self, now_s: float) -> str:
        """Who leads; empty where nobody does or nobody may look."""
        return next((lease.holder for lease in self.leases or () if lease.leads(now_s)), "")

    @property
    def warnings(self) -> list[str]:
        """What a person should know before believing what follows."""
        told = [f"{kind}/{name}: {reason}; it counts as absent" for kind, name, reason in self.broken]
        if self.missing:
            told.append(
                f"{', '.join(self.missing)}: the cluster does not have these kinds, so there are none; "
                "to install them: joulie crds | kubectl apply -f -"
            )
        return told


async def read_live(connection: Connection, pods_on: str = "") -> Live:
    """One list of each kind that a decision depends on; of pods perhaps only those on one node."""
    import asyncio

    from joulie.cli.operator_lease import operator_leases
    from joulie.cli.operator_settings import operator_settings
    from joulie.cluster.port import NODE_HARDWARE, NODE_POWER_PROFILES, NODE_TWINS, NODES, PODS
    from joulie.model.snapshot import Snapshot

    (nodes, pods, hardware, twins, pins), settings, leases = await asyncio.gather(
        asyncio.gather(
            connection.list_all(NODES),
            connection.list_all(PODS, fields=f"{UNFINISHED},spec.nodeName={pods_on}" if pods_on else UNFINISHED),
            connection.list_if_served(NODE_HARDWARE),
            connection.list_if_served(NODE_TWINS),
            connection.list_if_served(NODE_POWER_PROFILES),
        ),
        operator_settings(connection),
        operator_leases(connection),
    )
    kinds = {NODE_HARDWARE: hardware, NODE_TWINS: twins, NODE_POWER_PROFILES: pins}
    broken: list[tuple[str, str, str]] = []
    decoded = {kind: _decoded(kind, bodies or (), broken) for kind, bodies in kinds.items()}
    known_twins = {twin.node: twin for twin in decoded[NODE_TWINS]}
    snapshot = Snapshot(
        nodes={node.name: node for node in _decoded(NODES, nodes, broken)},
        pods=tuple(_decoded(PODS, pods, broken)),
        hardware={one.metadata.name: one for one in decoded[NODE_HARDWARE]},
        twins=known_twins,
        pins=tuple(decoded[NODE_POWER_PROFILES]),
        telemetry=telemetry_of(known_twins),
    )
    return Live(
        snapshot,
        connection.credentials.origin,
        tuple(kind.kind for kind, bodies in kinds.items() if bodies is None),
        tuple(broken),
        _pin_reasons(pins or ()),
        settings,
        leases,
    )


def telemetry_of(twins: Mapping[str, NodeTwin]) -> Telemetry:
    """What sensors said, as far as the operator wrote it into the twins: so a look from outside agrees with it."""
    from joulie.model.rfc3339 import readable_time_s
    from joulie.model.snapshot import PowerReading, Telemetry

    power: dict[str, PowerReading] = {}
    trend: dict[str, float] = {}
    pue = None
    for name, twin in twins.items():
        said = twin.status.power_measurement if twin.status else None
        written_at_s = readable_time_s(twin.status.last_updated) if twin.status else None
        if said is None or written_at_s is None:
            continue
        if said.source in ("kepler", "http") and said.measured_node_power_w is not None:
            power[name] = PowerReading(said.source, said.measured_node_power_w, written_at_s)
        if said.power_trend_w_per_min is not None:
            trend[name] = said.power_trend_w_per_min
        pue = twin.status.estimated_pue if twin.status and twin.status.estimated_pue is not None else pue
    return Telemetry(power=power, trend_w_per_min=trend, estimated_pue=pue)


def _decoded(resource: Resource, bodies: Sequence[Raw], broken: list[tuple[str, str, str]]) -> list[Any]:
    """Those that can be read."""
    from joulie.cluster.slim import DECODERS

    decode, found = DECODERS[resource], []
    for body in bodies:
        try:
            found.append(decode(bytes(body)))
        except ValueError as error:
            broken.append((resource.kind, _metadata(body)["name"], str(error)))
    return found


def _pin_reasons(pins: Sequence[Raw]) -> dict[str, str]:
    told = {one["name"]: (one.get("annotations") or {}).get(REASON_ANNOTATION, "") for one in map(_metadata, pins)}
    return {name: reason for name, reason in told.items() if reason}


def _metadata(body: Raw) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.json.decode(body)["metadata"])


def on_cluster(
    kubeconfig: str,
    context: str,
    observer: ClusterObserver,
    work: Callable[[KubernetesCluster], Awaitable[int]],
    **options: Any,
) -> int:
    """The exit code of work that has a connection to the cluster for as long as it lasts."""
    import asyncio
    from pathlib import Path

    from joulie.cluster.credentials import find_credentials
    from joulie.cluster.kubernetes import KubernetesCluster

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())

    async def connected() -> int:
        cluster = KubernetesCluster(credentials, observer=observer, **options)
        try:
            return await work(cluster)
        finally:
            await cluster.close()

    return asyncio.run(connected())


def read_objects(filenames: tuple[str, ...]) -> Snapshot:
    """What the files say; what they say wrongly is warned of on standard error."""
    from joulie.cli.output import warn
    from joulie.cluster import manifests

    loaded = manifests.read(filenames, sys.stdin.buffer)
    warn(loaded.warnings)
    return loaded.snapshot
