"""What `cleanup` finds and how it removes it: first the writers, then what they wrote.

A running operator would rewrite everything, and an agent its NodeHardware. So the operator's lease is taken first,
after which no operator writes, wherever it runs; then the workloads are stopped, and only then are objects removed.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from joulie.cli.act import node_remains
from joulie.cli.act.budget_release import release_orders
from joulie.cli.act.each_object import for_each
from joulie.cli.act.node_remains import NodeRemains, remains_of, take_off
from joulie.cli.connection import ClusterConnection
from joulie.cli.installation.leftovers import MUTATING_BINDINGS, cluster_wide, removal
from joulie.cli.installation.operator_lease import LeaseTakeover, operator_leases
from joulie.cli.installation.workloads import (
    ANY_COMPONENT,
    COMPONENT_LABEL,
    DAEMON_SETS,
    DEFINITIONS,
    WORKLOADS,
    operator_settings,
    selector_of,
)
from joulie.cli.style import plural
from joulie.cluster.api.transport import MERGE_PATCH
from joulie.cluster.crds.definitions import crds as definitions
from joulie.cluster.port import (
    LEASES,
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    POWER_BUDGETS,
    TELEMETRY_PROFILES,
    ClusterError,
    NotFoundError,
    Resource,
)
from joulie.errors import InputError
from joulie.model.names import BUDGET_LEASE, CLI_MANAGER, DRAINING_LABEL
from joulie.settings import DecisionSettings, load

COMPONENTS = selector_of("operator", "agent")
WATTS_POLICY = "joulie-watts"  # gives new pods a request for watts
CHECKS = 10  # an object without a finalizer is gone within two seconds
Say = Callable[[str], None]


@dataclass(frozen=True)
class CleanupRequest:
    """What to clean up, as given on the command line."""

    namespace: str
    crds: bool
    timeout_s: float
    say: Say

    @property
    def labels(self) -> set[str]:
        """The labels that an operator with the local settings would write; one of them can be renamed."""
        return {load(DecisionSettings, os.environ).plan.power_profile_label, DRAINING_LABEL}


@dataclass(frozen=True)
class ComponentWorkload:
    """A workload that keeps a component running."""

    resource: Resource
    name: str
    component: str

    @property
    def runs(self) -> str:
        return f"{self.resource.kind} {self.name}"


@dataclass(frozen=True)
class CleanupInventory:
    """Everything that there is to remove."""

    workloads: list[ComponentWorkload] = field(default_factory=list)
    nodes: dict[str, NodeRemains] = field(default_factory=dict)  # those with something to remove
    objects: dict[Resource, list[str]] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)
    lease: bool = False

    @property
    def empty(self) -> bool:
        return not (self.workloads or self.nodes or any(self.objects.values()) or self.definitions or self.lease)

    def lines(self) -> list[str]:
        """Each step, for people."""
        if self.empty:
            return ["nothing that Joulie wrote is left to remove"]
        steps = [f"to stop: {workload.runs} ({workload.component})" for workload in self.workloads]
        steps += node_remains.lines(self.nodes.values())
        steps += [f"to remove: {len(names):,} {kind.kind}" for kind, names in self.objects.items() if names]
        steps += ["to remove: the operator's lease"] * self.lease
        return steps + [f"to remove: the definition {name}" for name in self.definitions]


async def take_inventory(connection: ClusterConnection, request: CleanupRequest) -> CleanupInventory:
    """Everything there is now; InputError if an operator leads in another namespace, which would undo it all."""
    for lease in await operator_leases(connection) or ():
        if lease.namespace != request.namespace and lease.leads(time.time()):
            raise InputError(f"an operator leads in namespace {lease.namespace}: pass --namespace {lease.namespace}")
    await _refuse_other_namespaces(connection, request.namespace)
    return await _inventory(connection, request)


async def _inventory(connection: ClusterConnection, request: CleanupRequest) -> CleanupInventory:
    of_people = [NODE_POWER_PROFILES, POWER_BUDGETS, TELEMETRY_PROFILES] if request.crds else []
    kinds = [NODE_TWINS, NODE_HARDWARE, *of_people]
    return CleanupInventory(
        await _workloads(connection, request.namespace),
        await _nodes(connection, request),
        {kind: _names(await connection.list_if_served(kind) or ()) for kind in kinds},
        await _definitions(connection) if request.crds else [],
        await LeaseTakeover(connection.cluster, request.namespace).exists(),
    )


async def _nodes(connection: ClusterConnection, request: CleanupRequest) -> dict[str, NodeRemains]:
    labels = request.labels | await _operators_label(connection)
    nodes = [msgspec.json.decode(body) for body in await connection.list_all(NODES)]
    return {node["metadata"]["name"]: found for node in nodes if (found := remains_of(node, labels))}


async def _refuse_other_namespaces(connection: ClusterConnection, namespace: str) -> None:
    """Agents elsewhere would keep their caps and rewrite their hardware. Skipped if listing is not allowed."""
    try:
        bodies = [one for kind in WORKLOADS for one in await connection.list_all(kind, labels=COMPONENTS)]
    except ClusterError:
        return
    spaces = {str(msgspec.json.decode(body)["metadata"]["namespace"]) for body in bodies}
    if spaces and namespace not in spaces:
        other = min(spaces)
        raise InputError(f"Joulie is installed in namespace {', '.join(sorted(spaces))}: pass --namespace {other}")


async def _operators_label(connection: ClusterConnection) -> set[str]:
    """The label that the installed operator writes, if its settings are readable and valid."""
    try:
        return {load(DecisionSettings, await operator_settings(connection)).plan.power_profile_label}
    except InputError:
        return set()


async def clean(connection: ClusterConnection, request: CleanupRequest, inventory: CleanupInventory) -> bool:
    """Removes everything; returns whether it is gone."""
    lease = LeaseTakeover(connection.cluster, request.namespace)
    operators = [workload for workload in inventory.workloads if workload.component == "operator"]
    agents = [workload for workload in inventory.workloads if workload.component == "agent"]
    for workload in operators:
        await _stop(connection, request, workload)
    if previous := await lease.take():
        request.say(f"took the lease from {previous}: no operator writes any more")
    unreleased = await release_orders(connection, request.say)
    for workload in agents:
        await _stop(connection, request, workload)
    await _wait_for_pods(connection, request)
    fresh = await _inventory(connection, request)  # includes what was written until now
    await lease.renew()
    failed = unreleased + await _remove(connection, request, fresh)
    failed += await for_each(
        "Lease", [BUDGET_LEASE], lambda name: connection.cluster.delete(LEASES, name, namespace=request.namespace)
    )
    again = await lease.give_up()
    for line in failed:
        request.say(f"failed: {line}")
    if again:
        request.say(
            f"an operator outside this namespace's workloads is leading again: {again}; stop it, then run this again"
        )
    elif not failed:
        first, *others = await remaining(connection, request)
        for line in (f"done: {first}", *others):
            request.say(line)
    return not failed and not again


async def remaining(connection: ClusterConnection, request: CleanupRequest) -> list[str]:
    """What was installed rather than written remains: it came with Helm or kubectl, which also remove it.

    That includes the roles that this command itself may run under.
    """
    left, complete = await cluster_wide(connection)
    workloads = await _installed(connection, request.namespace)
    what = [*([] if request.crds else ["definitions and pins"]), *workloads, *map(str, left)]
    if not what:
        return ["nothing of Joulie is left" if complete else "nothing that Joulie wrote is left"]
    lines = [f"nothing that Joulie wrote is left; still installed: {', '.join(what)}"]
    if left or workloads:
        release = next((one.release for one in left if one.release), "joulie")
        helm = f"to remove these too: helm uninstall {release} -n {request.namespace}"
        lines.append(helm + (f"; without Helm: {removal(left)}" if left else ""))
    return lines


async def _installed(connection: ClusterConnection, namespace: str) -> list[str]:
    """Workloads that still exist, including components that write nothing."""
    found: list[str] = []
    for resource in WORKLOADS:
        try:
            bodies = await connection.list_all(resource, namespace=namespace, labels=ANY_COMPONENT)
        except ClusterError:
            continue
        found += [f"{resource.kind} {name}" for name in _names(bodies)]
    return found


async def _remove(connection: ClusterConnection, request: CleanupRequest, inventory: CleanupInventory) -> list[str]:
    """Removes what is on nodes, objects and definitions; returns what could not be removed."""
    cluster, failed = connection.cluster, []
    if any(one.watts for one in inventory.nodes.values()):  # first: a pod that asks for watts would find no node then
        bindings = [WATTS_POLICY]
        failed += await for_each(MUTATING_BINDINGS.kind, bindings, lambda name: cluster.delete(MUTATING_BINDINGS, name))
        request.say("pods that still wait for joulie.io/watts have to be created again: no node offers it any more")
    failed += await for_each("node", inventory.nodes, lambda name: take_off(connection, name, inventory.nodes[name]))
    for kind, names in inventory.objects.items():
        if kind in (NODE_TWINS, NODE_HARDWARE):  # the others are removed with their definition
            failed += await for_each(kind.kind, names, lambda name, kind=kind: cluster.delete(kind, name))  # type: ignore[misc]
    failed += await for_each("definition", inventory.definitions, lambda name: cluster.delete(DEFINITIONS, name))
    until_s = time.monotonic() + request.timeout_s
    while inventory.definitions and not failed and await _definitions(connection):
        if time.monotonic() > until_s:
            failed.append("definitions are still being removed: a finalizer of one of their objects is pending")
        await asyncio.sleep(0.2)
    return failed if inventory.definitions or failed else await _still_there(connection, request)


async def _still_there(connection: ClusterConnection, request: CleanupRequest) -> list[str]:
    """What the API server agreed to remove but still has, or what was written again."""
    lines: list[str] = []
    for _ in range(CHECKS):
        lines = []
        if nodes := await _nodes(connection, request):
            lines.append(f"{plural(len(nodes), 'node')} written again, by an operator elsewhere: {', '.join(nodes)}")
        for kind in (NODE_TWINS, NODE_HARDWARE):
            if names := _names(await connection.list_if_served(kind) or ()):
                why = "held by a finalizer, or written again by an agent"
                lines.append(f"{plural(len(names), kind.kind)} still there, {why}: {', '.join(names[:3])}")
        if not lines:
            break
        await asyncio.sleep(0.2)
    return lines


async def _stop(connection: ClusterConnection, request: CleanupRequest, workload: ComponentWorkload) -> None:
    """Scales a workload to zero. A DaemonSet cannot be scaled, so it is deleted; reinstalling brings it back."""
    cluster = connection.cluster
    try:
        if workload.resource is DAEMON_SETS:
            await cluster.delete(DAEMON_SETS, workload.name, namespace=request.namespace)
        else:
            path = f"{workload.resource.path(request.namespace, workload.name)}/scale"
            body = msgspec.json.encode({"spec": {"replicas": 0}})
            manager = {"fieldManager": CLI_MANAGER}
            await connection.transport.call("PATCH", path, query=manager, body=body, content_type=MERGE_PATCH)
    except NotFoundError:
        return
    request.say(f"stopping {workload.runs}")


async def _wait_for_pods(connection: ClusterConnection, request: CleanupRequest) -> None:
    """Agents restore devices while they stop. On a machine that is down they never do, so there is a timeout."""
    until_s = time.monotonic() + request.timeout_s
    while pods := _names(await connection.list_all(PODS, namespace=request.namespace, labels=COMPONENTS)):
        if time.monotonic() > until_s:
            some = ", ".join(pods[:5])
            request.say(
                f"warning: {plural(len(pods), 'pod')} did not stop in time, so their nodes may stay capped: {some}"
            )
            return
        await asyncio.sleep(0.5)


async def _workloads(connection: ClusterConnection, namespace: str) -> list[ComponentWorkload]:
    found = []
    for resource in WORKLOADS:
        for body in await connection.list_all(resource, namespace=namespace, labels=COMPONENTS):
            item = msgspec.json.decode(body)
            if resource is DAEMON_SETS or (item.get("spec") or {}).get("replicas", 1) != 0:
                labels = item["metadata"]["labels"]
                found.append(ComponentWorkload(resource, item["metadata"]["name"], labels[COMPONENT_LABEL]))
    return found


async def _definitions(connection: ClusterConnection) -> list[str]:
    """The names of Joulie's definitions that exist."""
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
