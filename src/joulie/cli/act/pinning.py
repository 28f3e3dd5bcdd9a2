"""What `pin` and `unpin` do: write or remove a node's NodePowerProfile, and say what will happen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from joulie.cli.connection import ClusterConnection, on_connection
from joulie.cli.context import LoadedCluster, close_to, live_cluster, near_misses
from joulie.cli.installation.operator_lease import operator_leases
from joulie.cli.live import REASON_ANNOTATION, LiveCluster, read_live, server_now_s
from joulie.cli.options import ObjectSource
from joulie.cli.output import warn
from joulie.cli.style import plain, plural, watts
from joulie.cli.views.plan_table import cpu_cap, gpu_cap
from joulie.cluster.decoding.decoders import decode_pin, decode_twin
from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS, NODES, ClusterError, ConflictError, NotFoundError
from joulie.control.pins import pin_in_force
from joulie.control.plan import PINNED, Assignment
from joulie.errors import InputError
from joulie.model.api import NodeTwin
from joulie.model.names import DRAINING
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Pin
from joulie.operator.writes import spec_of
from joulie.overview.findings import age

Say = Callable[[str], Any]
ATTEMPTS = 5  # another client may write the same pin at the same moment
POLL_S = 0.5


class PinRequest(NamedTuple):
    """The pin that was asked for on the command line."""

    profile: str
    for_s: float | None
    cpu_watts: float | None
    cpu_pct: float | None
    gpu_watts: float | None
    gpu_pct: float | None
    reason: str

    def spec(self, node: str, now_s: float) -> dict[str, Any]:
        """The spec of the NodePowerProfile, without unset fields."""
        cpu = {"packagePowerCapWatts": self.cpu_watts, "packagePowerCapPctOfMax": self.cpu_pct}
        gpu = {"capWattsPerGpu": self.gpu_watts, "capPctOfMax": self.gpu_pct}
        spec: dict[str, Any] = {"nodeName": node, "profile": self.profile}
        if any(value is not None for value in cpu.values()):
            spec["cpu"] = _set(cpu)
        if any(value is not None for value in gpu.values()):
            spec["gpu"] = {"powerCap": {"scope": "perGpu", **_set(gpu)}}
        if self.for_s is not None:
            spec["expiresAt"] = format_time(now_s + self.for_s)
        return spec


def pin_node(source: ObjectSource, node: str, wanted: PinRequest, wait_s: float | None, say: Say) -> dict[str, Any]:
    """Pins the node, reports what will happen through `say`, and returns the same as a document."""

    async def work(connection: ClusterConnection) -> dict[str, Any]:
        live = await read_live(connection, pods_on=node)  # other pods do not matter for a pinned node
        _check(live, node)
        cluster = live_cluster(source, live)
        warn(cluster.warnings)
        before = pin_in_force(live.snapshot.pins, node, source.now_s)
        name = before.name if before else node
        written = decode_pin(await _write(connection, name, wanted, node, source.now_s))
        say(_written_text(written, before, source.now_s))
        _warn_of_others(live, written, node, source.now_s)
        assignment = _expected_assignment(cluster, written)
        led = _leadership(live, node, cluster.now_s)
        say(_effect_text(cluster, node, assignment, led))
        if clamped := _clamped_text(written, assignment):
            say(clamped)
        shown = None
        if wait_s is not None and assignment is not None:
            shown = await _appears(connection, assignment, wait_s)
            say(_wait_text(shown, node, wait_s))
        return {
            "pin": written.name,
            "node": node,
            "profile": written.profile,
            "expiresAt": None if written.expires_at_s is None else format_time(written.expires_at_s),
            "replaced": None if before is None else before.profile,
            "state": None if assignment is None else assignment.state,
            "shown": shown,
            "led": led.known,
            "takesEffect": led.works and assignment is not None,
        }

    return on_connection(source.kubeconfig, source.context, work)


def unpin_node(source: ObjectSource, node: str, every: bool, say: Say) -> dict[str, Any]:
    """Removes the pin in force, or every pin of the node; having nothing to remove is not an error."""

    async def work(connection: ClusterConnection) -> dict[str, Any]:
        bodies = await connection.list_if_served(NODE_POWER_PROFILES) or ()
        pins = [pin for pin in _readable(bodies) if pin.node == node]
        chosen = pin_in_force(pins, node, source.now_s)
        gone = pins if every or chosen is None else [chosen]
        for pin in gone:
            try:
                await connection.cluster.delete(NODE_POWER_PROFILES, pin.name)
            except NotFoundError:
                continue
        say(_removed_text(node, gone, source.now_s))
        if not gone:
            await _warn_if_unknown_node(connection, node)
        left = [pin for pin in pins if pin not in gone]
        if (next_one := pin_in_force(left, node, source.now_s)) is not None:
            say(f"now {_described(next_one, source.now_s)} is in force; to remove all: joulie unpin {node} --all")
        elif gone:
            leases = await operator_leases(connection)
            leaderless = leases is not None and not any(lease.leads(server_now_s(connection)) for lease in leases)
            say(
                "there is no leading operator, so the node keeps its state until there is one: joulie doctor"
                if leaderless
                else "the policy takes over again with the operator's next decision"
            )
        return {"node": node, "removed": [pin.name for pin in gone], "left": [pin.name for pin in left]}

    return on_connection(source.kubeconfig, source.context, work)


async def _write(connection: ClusterConnection, name: str, wanted: PinRequest, node: str, now_s: float) -> bytes:
    """Creates the pin, or replaces exactly the version that was read; retries if it changed meanwhile."""
    metadata: dict[str, Any] = {"name": name}
    if wanted.reason:
        metadata["annotations"] = {REASON_ANNOTATION: wanted.reason}
    body = {"metadata": metadata, "spec": wanted.spec(node, now_s)}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            try:
                existing = msgspec.json.decode(await connection.cluster.get(NODE_POWER_PROFILES, name))
            except NotFoundError:
                return await connection.cluster.create(NODE_POWER_PROFILES, body)
            _refuse_other_nodes(existing, node)
            return await connection.cluster.replace(NODE_POWER_PROFILES, _replacing(existing, body))
        except ConflictError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _replacing(existing: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The new spec under the old name, keeping foreign labels but not the old reason."""
    annotations = dict(existing["metadata"].get("annotations") or {})
    annotations.pop(REASON_ANNOTATION, None)
    metadata = existing["metadata"] | {"annotations": annotations | body["metadata"].get("annotations", {})}
    return {"metadata": metadata, "spec": body["spec"]}


def _refuse_other_nodes(existing: dict[str, Any], node: str) -> None:
    other = (existing.get("spec") or {}).get("nodeName")
    if other != node:
        name = existing["metadata"]["name"]
        raise InputError(f"NodePowerProfile/{name} already exists for {other}: delete or rename it first")


def _check(live: LiveCluster, node: str) -> None:
    if "NodePowerProfile" in live.missing:
        raise InputError("the cluster does not serve NodePowerProfile: joulie crds | kubectl apply -f -")
    if node not in live.snapshot.nodes:
        raise InputError(f"node {node!r} is not in the cluster{close_to(near_misses(node, list(live.snapshot.nodes)))}")


def _expected_assignment(cluster: LoadedCluster, written: Pin) -> Assignment | None:
    """What the operator will decide about the node, by its own code; None if it leaves the node alone."""
    others = tuple(pin for pin in cluster.snapshot.pins if pin.name != written.name)
    plan = cluster.decide(replace(cluster.snapshot, pins=(*others, written)))
    return next((assignment for assignment in plan.assignments if assignment.node == written.node), None)


def _written_text(pin: Pin, before: Pin | None, now_s: float) -> str:
    text = f"{pin.node} is pinned to {pin.profile}{_until(pin, now_s)} (NodePowerProfile/{pin.name})"
    return text if before is None else f"{text}; before: {_terms(before)}{_until(before, now_s)}"


class _Leadership(NamedTuple):
    """Whether anything will act on the pin."""

    known: bool | None  # whether an operator leads; None: leases cannot be listed
    directly: bool  # without twin and operator, the node's agent applies the pin itself
    missing: tuple[str, ...]  # kinds that the operator writes but the cluster does not serve

    @property
    def works(self) -> bool:
        return not self.missing and (self.known is not False or self.directly)


def _leadership(live: LiveCluster, node: str, now_s: float) -> _Leadership:
    known = None if live.leases is None else bool(live.leader(now_s))
    missing = tuple(kind for kind in live.missing if kind == "NodeTwin")
    return _Leadership(known, known is False and node not in live.snapshot.twins, missing)


def _effect_text(cluster: LoadedCluster, node: str, assignment: Assignment | None, led: _Leadership) -> str:
    """When the pin takes effect, and how; promises no time that depends on a missing operator."""
    settings = cluster.settings.plan
    if assignment is None:
        labels = cluster.snapshot.nodes[node].labels
        if labels.get(settings.reserved_label_key) == "true":
            return (
                f"it has no effect while the node is reserved: kubectl label node {node} {settings.reserved_label_key}-"
            )
        if not settings.node_selector.matches(labels):
            return f"it has no effect while the node is out of scope: NODE_SELECTOR is {settings.node_selector.text!r}"
        return "it has no effect while the node is cordoned: cordoned nodes keep their state"
    if led.missing:
        return f"it has no effect: the cluster does not serve {led.missing[0]}: joulie crds | kubectl apply -f -"
    if led.directly:
        return (
            "there is no leading operator and the node has no twin: the node's agent, if any, enforces the pin itself"
        )
    if led.known is False:
        return "it has no effect until an operator leads: joulie doctor"
    when = f"with the operator's next decision, within {age(settings.reconcile_interval_s)}"
    when += " (if an operator leads: you are not allowed to list leases)" if led.known is None else ""
    caps = f"CPU cap {cpu_cap(assignment.caps)}"
    caps += f", GPU cap {gpu_cap(assignment.caps)}" if assignment.machine.gpu_count else ""
    if assignment.state == DRAINING:
        return f"{when}: {assignment.reason.split(';')[0]}; eco caps follow once the last one has left"
    same = " (unchanged)" if assignment.before == assignment.state else f" (now {assignment.before})"
    return f"{when}: {assignment.state}{same}, {caps}"


def _clamped_text(pin: Pin, assignment: Assignment | None) -> str:
    """Reports caps that the hardware cannot apply as requested."""
    if assignment is None or assignment.state == DRAINING:
        return ""
    caps, machine = assignment.caps, assignment.machine
    asked = [("CPU", pin.cpu_cap_w, pin.cpu_cap_pct, caps.cpu_w_each, caps.cpu_pct)]
    if machine.gpu_count:
        asked.append(("GPU", pin.gpu_cap_w, pin.gpu_cap_pct, caps.gpu_w_each, caps.gpu_pct))
    clamped = []
    for device, want_w, want_pct, get_w, get_pct in asked:
        if want_w is not None and get_w is not None and abs(want_w - get_w) >= 0.5:
            clamped.append(f"{device} {watts(get_w)} instead of {watts(want_w)}")
        elif want_w is None and want_pct is not None and get_pct is not None and abs(want_pct - get_pct) >= 0.05:
            clamped.append(f"{device} {plain(get_pct)} % instead of {plain(want_pct)} %")
    return f"limited by the hardware: {', '.join(clamped)}" if clamped else ""


def _warn_of_others(live: LiveCluster, written: Pin, node: str, now_s: float) -> None:
    others = [p for p in live.snapshot.pins if p.node == node and p.name != written.name]
    alive = [p for p in others if p.expires_at_s is None or p.expires_at_s > now_s]
    if alive:
        names = ", ".join(sorted(p.name for p in alive))
        warn([f"{plural(len(alive), 'newer pin')} of {node} without effect: {names}"])


async def _appears(connection: ClusterConnection, assignment: Assignment, wait_s: float) -> bool:
    """Whether the twin shows the pinned target within that time."""
    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s:
        try:
            if _shows(decode_twin(await connection.cluster.get(NODE_TWINS, assignment.node)), assignment):
                return True
        except (NotFoundError, ValueError):
            pass
        await asyncio.sleep(POLL_S)
    return False


def _shows(twin: NodeTwin, assignment: Assignment) -> bool:
    wanted, status = spec_of(assignment), twin.status
    spec = twin.spec
    return (
        spec is not None
        and spec.policy is not None
        and spec.policy.name == PINNED
        and (spec.profile, spec.cpu, spec.gpu) == (wanted.profile, wanted.cpu, wanted.gpu)
        and status is not None
        and status.schedulable_class == assignment.state
    )


def _wait_text(shown: bool, node: str, wait_s: float) -> str:
    if shown:
        return f"the twin of {node} shows it"
    return f"after {age(wait_s)} the twin of {node} does not show it; check with joulie doctor whether an operator runs"


def _removed_text(node: str, gone: Sequence[Pin], now_s: float) -> str:
    if not gone:
        return f"{node} is not pinned: nothing to do"
    return f"{node} is unpinned: {', '.join(_described(pin, now_s) for pin in gone)} removed"


async def _warn_if_unknown_node(connection: ClusterConnection, node: str) -> None:
    """Warns if there is no such node, which suggests a typo; silent if listing nodes is not allowed."""
    try:
        names = [str(msgspec.json.decode(body)["metadata"]["name"]) for body in await connection.list_all(NODES)]
    except ClusterError:
        return
    if node not in names:
        warn([f"node {node!r} is not in the cluster{close_to(near_misses(node, names))}"])


def _described(pin: Pin, now_s: float) -> str:
    return f"NodePowerProfile/{pin.name} ({_terms(pin)}{_until(pin, now_s)})"


def _terms(pin: Pin) -> str:
    """`eco, CPU 240 W, GPU 70 %`."""
    parts: list[str] = [pin.profile]
    for device, in_watts, in_pct in (("CPU", pin.cpu_cap_w, pin.cpu_cap_pct), ("GPU", pin.gpu_cap_w, pin.gpu_cap_pct)):
        if in_watts is not None:
            parts.append(f"{device} {watts(in_watts)}")
        elif in_pct is not None:
            parts.append(f"{device} {plain(in_pct)} %")
    return ", ".join(parts)


def _until(pin: Pin, now_s: float) -> str:
    if pin.expires_at_s is None:
        return ""
    left_s = pin.expires_at_s - now_s
    return f" until {format_time(pin.expires_at_s)}, for {age(left_s)}" if left_s > 0 else ", expired"


def _readable(bodies: Sequence[Any]) -> list[Pin]:
    pins = []
    for body in bodies:
        try:
            pins.append(decode_pin(bytes(body)))
        except ValueError:
            continue
    return pins


def _set(values: dict[str, float | None]) -> dict[str, float]:
    return {key: value for key, value in values.items() if value is not None}
