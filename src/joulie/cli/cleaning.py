"""What `cleanup` finds and how it takes it away: first whoever writes, then what was written.

An operator would write everything anew, an agent its NodeHardware. So the operator's lease is taken first, after which
no operator may write, wherever it runs; then the workloads are ended, and only then are objects removed.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from joulie.cli.connection import Connection
from joulie.cli.lease_taking import LeaseTaker
from joulie.cli.operator_lease import operator_leases
from joulie.cli.operator_settings import operator_settings
from joulie.cli.style import plural
from joulie.cli.workloads import COMPONENT_LABEL, DAEMON_SETS, DEFINITIONS, WORKLOADS, selecting
from joulie.cluster.backoff import Backoff
from joulie.cluster.crds import crds as definitions
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    TELEMETRY_PROFILES,
    ClusterError,
    NotFoundError,
    Resource,
)
from joulie.errors import InputError
from joulie.model.names import DRAINING_LABEL
from joulie.settings import DecisionSettings, load

COMPONENTS = selecting("operator", "agent")
AT_ONCE = 32
ATTEMPTS = 8  # of what may pass: about half a minute
LOOKS = 10  # within two seconds an object is gone that nothing holds
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cleaning:
    """What a person asked for."""

    namespace: str
    crds: bool
    timeout_s: float
    say: Say

    @property
    def labels(self) -> set[str]:
        """That the operator writes, as far as our own environment tells; one of them can be renamed."""
        return {load(DecisionSettings, os.environ).plan.power_profile_label, DRAINING_LABEL}


@dataclass(frozen=True)
class Workload:
    """Something that keeps a component running."""

    resource: Resource
    name: str
    component: str

    @property
    def runs(self) -> str:
        return f"{self.resource.kind} {self.name}"


@dataclass(frozen=True)
class There:
    """What there is to take away."""

    workloads: list[Workload] = field(default_factory=list)
    labelled: dict[str, dict[str, None]] = field(default_factory=dict)  # node: labels to remove
    objects: dict[Resource, list[str]] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)
    lease: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.workloads or self.labelled or any(self.objects.values()) or self.definitions or self.lease)

    def lines(self) -> list[str]:
        """Each thing that would be done."""
        if self.nothing:
            return ["there is nothing of Joulie's to remove"]
        told = [f"to end: {workload.runs} ({workload.component})" for workload in self.workloads]
        if self.labelled:
            told.append(f"to remove: Joulie's labels of {plural(len(self.labelled), 'node')}")
        told += [f"to remove: {len(names):,} {kind.kind}" for kind, names in self.objects.items() if names]
        told += ["to remove: the operator's lease"] * self.lease
        return told + [f"to remove: the definition {name}" for name in self.definitions]


async def look(connection: Connection, cleaning: Cleaning) -> There:
    """Everything that is there now; InputError where an operator leads elsewhere, which would undo it all."""
    for lease in await operator_leases(connection) or ():
        if lease.namespace != cleaning.namespace and lease.leads(time.time()):
            raise InputError(f"an operator leads in the namespace {lease.namespace}: --namespace {lease.namespace}")
    await _refuse_other_namespaces(connection, cleaning.namespace)
    return await _there(connection, cleaning)


async def _there(connection: Connection, cleaning: Cleaning) -> There:
    labels = sorted(cleaning.labels | await _operators_label(connection))
    kinds = [NODE_TWINS, NODE_HARDWARE, *([NODE_POWER_PROFILES, TELEMETRY_PROFILES] if cleaning.crds else [])]
    nodes = [msgspec.json.decode(body)["metadata"] for body in await connection.list_all(NODES)]
    wanted = {node["name"]: [key for key in labels if key in (node.get("labels") or {})] for node in nodes}
    return There(
        await _workloads(connection, cleaning.namespace),
        {name: dict.fromkeys(keys) for name, keys in wanted.items() if keys},
        {kind: _names(await connection.list_if_served(kind) or ()) for kind in kinds},
        await _definitions(connection) if cleaning.crds else [],
        await LeaseTaker(connection.cluster, cleaning.namespace).exists(),
    )


async def _refuse_other_namespaces(connection: Connection, namespace: str) -> None:
    """Agents elsewhere would keep their caps, and write their hardware anew; who may look here alone does not know."""
    try:
        bodies = [one for kind in WORKLOADS for one in await connection.list_all(kind, labels=COMPONENTS)]
    except ClusterError:
        return
    spaces = {str(msgspec.json.decode(body)["metadata"]["namespace"]) for body in bodies}
    if spaces and namespace not in spaces:
        other = min(spaces)
        raise InputError(f"Joulie is installed in the namespace {', '.join(sorted(spaces))}: --namespace {other}")


async def _operators_label(connection: Connection) -> set[str]:
    """The label of the operator that is installed, where its settings can be seen and used."""
    try:
        return {load(DecisionSettings, await operator_settings(connection)).plan.power_profile_label}
    except InputError:
        return set()


async def clean(connection: Connection, cleaning: Cleaning, there: There) -> bool:
    """Takes it away; whether everything is gone."""
    lease = LeaseTaker(connection.cluster, cleaning.namespace)
    operators = [workload for workload in there.workloads if workload.component == "operator"]
    agents = [workload for workload in there.workloads if workload.component == "agent"]
    for workload in operators:
        await _end(connection, cleaning, workload)
    if previous := await lease.take():
        cleaning.say(f"the lease was {previous}'s: no operator writes any more")
    for workload in agents:
        await _end(connection, cleaning, workload)
    await _wait_for_pods(connection, cleaning)
    fresh = await _there(connection, cleaning)  # what was written until now
    await lease.renew()
    failed = await _remove(connection, cleaning, fresh)
    again = await lease.give_up()
    for line in failed:
        cleaning.say(f"failed: {line}")
    if again:
        cleaning.say(
            f"an operator still runs outside this namespace's workloads and leads again: {again}; "
            "end it, then run this once more"
        )
    elif not failed:
        cleaning.say("done: nothing of Joulie's is left" + ("" if cleaning.crds else " but definitions and pins"))
    return not failed and not again


async def _remove(connection: Connection, cleaning: Cleaning, there: There) -> list[str]:
    """Labels, objects, definitions; what could not be removed."""
    cluster = connection.cluster
    failed = await _each(
        "labels of", there.labelled, lambda n: cluster.patch(NODES, n, {"metadata": {"labels": there.labelled[n]}})
    )
    for kind, names in there.objects.items():
        if kind in (NODE_TWINS, NODE_HARDWARE):  # the others go with their definition
            failed += await _each(kind.kind, names, lambda name, kind=kind: cluster.delete(kind, name))  # type: ignore[misc]
    failed += await _each("definition", there.definitions, lambda name: cluster.delete(DEFINITIONS, name))
    until_s = time.monotonic() + cleaning.timeout_s
    while there.definitions and not failed and await _definitions(connection):
        if time.monotonic() > until_s:
            failed.append("definitions are still being removed: an object's finalizer holds them")
        await asyncio.sleep(0.2)
    return failed if there.definitions or failed else await _still_there(connection)


async def _still_there(connection: Connection) -> list[str]:
    """Objects that the API server agreed to remove and did not, or that somebody wrote again."""
    told: list[str] = []
    for _ in range(LOOKS):
        told = []
        for kind in (NODE_TWINS, NODE_HARDWARE):
            if names := _names(await connection.list_if_served(kind) or ()):
                why = "held by a finalizer, or written again by an agent"
                told.append(f"{plural(len(names), kind.kind)} still there, {why}: {', '.join(names[:3])}")
        if not told:
            break
        await asyncio.sleep(0.2)
    return told


async def _each(what: str, names: Iterable[str], work: Callable[[str], Awaitable[Any]]) -> list[str]:
    """Some at a time, again where it may pass; the faults of those that did not."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> str:
        backoff = Backoff(0.5, 10.0)
        async with slots:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    await work(name)
                except NotFoundError:
                    break
                except ClusterError as error:
                    if attempt == ATTEMPTS or not error.may_pass:
                        return f"{what} {name}: {error}"
                    await asyncio.sleep(backoff.next_s(error.retry_after_s))
                else:
                    break
        return ""

    return [fault for fault in await asyncio.gather(*map(one, names)) if fault]


async def _end(connection: Connection, cleaning: Cleaning, workload: Workload) -> None:
    """A DaemonSet cannot be scaled, so it is removed; installing again brings it back."""
    cluster = connection.cluster
    try:
        if workload.resource is DAEMON_SETS:
            await cluster.delete(DAEMON_SETS, workload.name, namespace=cleaning.namespace)
        else:
            path = f"{workload.resource.path(cleaning.namespace, workload.name)}/scale"
            body = msgspec.json.encode({"spec": {"replicas": 0}})
            await connection.transport.call("PATCH", path, body=body, content_type="application/merge-patch+json")
    except NotFoundError:
        return
    cleaning.say(f"{workload.runs} is ending")


async def _wait_for_pods(connection: Connection, cleaning: Cleaning) -> None:
    """Agents restore devices while they end. Those of a machine that is down never do, so there is a limit."""
    until_s = time.monotonic() + cleaning.timeout_s
    while pods := _names(await connection.list_all(PODS, namespace=cleaning.namespace, labels=COMPONENTS)):
        if time.monotonic() > until_s:
            some = ", ".join(pods[:5])
            cleaning.say(
                f"warning: {plural(len(pods), 'pod')} did not end in time, their nodes may stay capped: {some}"
            )
            return
        await asyncio.sleep(0.5)


async def _workloads(connection: Connection, namespace: str) -> list[Workload]:
    found = []
    for resource in WORKLOADS:
        for body in await connection.list_all(resource, namespace=namespace, labels=COMPONENTS):
            item = msgspec.json.decode(body)
            if resource is DAEMON_SETS or (item.get("spec") or {}).get("replicas", 1) != 0:
                labels = item["metadata"]["labels"]
                found.append(Workload(resource, item["metadata"]["name"], labels[COMPONENT_LABEL]))
    return found


async def _definitions(connection: Connection) -> list[str]:
    """Joulie's, as far as they are there."""
    found = []
    for definition in definitions():
        name = definition["metadata"]["name"]
        try:
            await connection.cluster.get(DEFINITIONS, name)
        except NotFoundError:
            continue
        found.append(name)
    return found


def _names(bodies: Sequence[Any]) -> list[str]:
    return [msgspec.json.decode(body)["metadata"]["name"] for body in bodies]
