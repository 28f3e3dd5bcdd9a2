"""What `pin` and `unpin` do: one NodePowerProfile that speaks for the node, and words about what follows from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from joulie.cli.connection import Connection, on_connection
from joulie.cli.context import Cluster, close_to, live_cluster, near_misses
from joulie.cli.live import REASON_ANNOTATION, Live, read_live
from joulie.cli.options import Source
from joulie.cli.output import warn
from joulie.cli.plan_table import cpu_cap, gpu_cap
from joulie.cli.style import plain, plural, watts
from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS, NODES, ClusterError, ConflictError, NotFoundError
from joulie.cluster.slim import decode_pin, decode_twin
from joulie.control.pins import pins_in_force
from joulie.control.plan import PINNED, Assignment
from joulie.errors import InputError
from joulie.model.api import NodeTwin
from joulie.model.names import DRAINING
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pin
from joulie.operator.writes import spec_of
from joulie.overview.findings import age

Say = Callable[[str], Any]
ATTEMPTS = 5  # somebody else may write the same pin at the same moment
POLL_S = 0.5


class Wanted(NamedTuple):
    """What a person asked for."""

    profile: str
    for_s: float | None
    cpu_watts: float | None
    cpu_pct: float | None
    gpu_watts: float | None
    gpu_pct: float | None
    reason: str

    def spec(self, node: str, now_s: float) -> dict[str, Any]:
        """As in a NodePowerProfile; what is not set is left out."""
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


def pin_node(source: Source, node: str, wanted: Wanted, wait_s: float | None, say: Say) -> dict[str, Any]:
    """Pins it and tells what follows; the same as a document."""

    async def work(connection: Connection) -> dict[str, Any]:
        live = await read_live(connection, pods_on=node)  # no other pod matters for a node that is pinned
        _check(live, node)
        cluster = live_cluster(source, live)
        warn(cluster.warnings)
        before = in_force(live.snapshot.pins, node, source.now_s)
        name = before.name if before else node
        written = decode_pin(await _write(connection, name, wanted, node, source.now_s))
        say(_what_was_written(written, before, source.now_s))
        _warn_of_others(live, written, node, source.now_s)
        assignment = _foreseen(cluster, written)
        say(_what_follows(cluster, node, assignment))
        if limited := _limited(written, assignment):
            say(limited)
        shown = None
        if wait_s is not None and assignment is not None:
            shown = await _shown(connection, assignment, wait_s)
            say(_how_it_ended(shown, node, wait_s))
        return {
            "pin": written.name,
            "node": node,
            "profile": written.profile,
            "expiresAt": None if written.expires_at_s is None else format_time(written.expires_at_s),
            "replaced": None if before is None else before.profile,
            "state": None if assignment is None else assignment.state,
            "shown": shown,
        }

    return on_connection(source.kubeconfig, source.context, work)


def unpin_node(source: Source, node: str, every: bool, say: Say) -> dict[str, Any]:
    """Removes the pin in force, or every pin of the node; nothing to remove is no fault."""

    async def work(connection: Connection) -> dict[str, Any]:
        bodies = await connection.list_if_served(NODE_POWER_PROFILES) or ()
        pins = [pin for pin in _readable(bodies) if pin.node == node]
        chosen = in_force(pins, node, source.now_s)
        gone = pins if every or chosen is None else [chosen]
        for pin in gone:
            try:
                await connection.cluster.delete(NODE_POWER_PROFILES, pin.name)
            except NotFoundError:
                continue
        say(_what_was_removed(node, gone, source.now_s))
        if not gone:
            await _warn_of_a_typo(connection, node)
        left = [pin for pin in pins if pin not in gone]
        if (next_one := in_force(left, node, source.now_s)) is not None:
            say(f"now {_described(next_one, source.now_s)} speaks for it; to remove all: joulie unpin {node} --all")
        elif gone:
            say("the policy decides again, with the operator's next decision")
        return {"node": node, "removed": [pin.name for pin in gone], "left": [pin.name for pin in left]}

    return on_connection(source.kubeconfig, source.context, work)


def in_force(pins: Iterable[Pin], node: str, now_s: float) -> Pin | None:
    """The pin that speaks for the node, wherever the node is."""
    chosen, _ = pins_in_force([p for p in pins if p.node == node], {node: Node(node, {})}, {node}, now_s)
    return chosen.get(node)


async def _write(connection: Connection, name: str, wanted: Wanted, node: str, now_s: float) -> bytes:
    """Creates it, or replaces exactly what was seen; a pin that somebody else just wrote is looked at again."""
    metadata: dict[str, Any] = {"name": name}
    if wanted.reason:
        metadata["annotations"] = {REASON_ANNOTATION: wanted.reason}
    body = {"metadata": metadata, "spec": wanted.spec(node, now_s)}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            try:
                there = msgspec.json.decode(await connection.cluster.get(NODE_POWER_PROFILES, name))
            except NotFoundError:
                return await connection.cluster.create(NODE_POWER_PROFILES, body)
            _refuse_other_nodes(there, node)
            return await connection.cluster.replace(NODE_POWER_PROFILES, _replacing(there, body))
        except ConflictError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _replacing(there: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The new target under the old name, with the labels that others gave it; not the old reason."""
    annotations = dict(there["metadata"].get("annotations") or {})
    annotations.pop(REASON_ANNOTATION, None)
    metadata = there["metadata"] | {"annotations": annotations | body["metadata"].get("annotations", {})}
    return {"metadata": metadata, "spec": body["spec"]}


def _refuse_other_nodes(there: dict[str, Any], node: str) -> None:
    other = (there.get("spec") or {}).get("nodeName")
    if other != node:
        name = there["metadata"]["name"]
        raise InputError(f"NodePowerProfile/{name} is there already and names {other}: remove or rename it first")


def _check(live: Live, node: str) -> None:
    if "NodePowerProfile" in live.missing:
        raise InputError("the cluster does not know NodePowerProfile: joulie crds | kubectl apply -f -")
    if node not in live.snapshot.nodes:
        raise InputError(f"node {node!r} is not in the cluster{close_to(near_misses(node, list(live.snapshot.nodes)))}")


def _foreseen(cluster: Cluster, written: Pin) -> Assignment | None:
    """What the operator will make of it, by its own code; None: nothing."""
    others = tuple(pin for pin in cluster.snapshot.pins if pin.name != written.name)
    plan = cluster.decide(replace(cluster.snapshot, pins=(*others, written)))
    return next((assignment for assignment in plan.assignments if assignment.node == written.node), None)


def _what_was_written(pin: Pin, before: Pin | None, now_s: float) -> str:
    said = f"{pin.node} is pinned to {pin.profile}{_until(pin, now_s)} (NodePowerProfile/{pin.name})"
    return said if before is None else f"{said}; before: {_terms(before)}{_until(before, now_s)}"


def _what_follows(cluster: Cluster, node: str, assignment: Assignment | None) -> str:
    """When, and what then."""
    settings = cluster.settings.plan
    if assignment is None:
        labels = cluster.snapshot.nodes[node].labels
        if labels.get(settings.reserved_label_key) == "true":
            return (
                f"it has no effect while the node is reserved: kubectl label node {node} {settings.reserved_label_key}-"
            )
        if not settings.node_selector.matches(labels):
            return f"it has no effect while the node is out of scope: NODE_SELECTOR is {settings.node_selector.text!r}"
        return "it has no effect while the node is cordoned: it is left as it is until it is uncordoned"
    when = f"with the operator's next decision, within {age(settings.reconcile_interval_s)}"
    caps = f"CPU cap {cpu_cap(assignment.caps)}"
    caps += f", GPU cap {gpu_cap(assignment.caps)}" if assignment.machine.gpu_count else ""
    if assignment.state == DRAINING:
        return f"{when}: {assignment.reason.split(';')[0]}; eco caps follow when the last has left"
    same = " (as it is now)" if assignment.before == assignment.state else f" (now {assignment.before})"
    return f"{when}: {assignment.state}{same}, {caps}"


def _limited(pin: Pin, assignment: Assignment | None) -> str:
    """Where the hardware takes no such cap, so that another is set than the one that was asked for."""
    if assignment is None or assignment.state == DRAINING:
        return ""
    caps, machine = assignment.caps, assignment.machine
    asked = [("CPU", pin.cpu_cap_w, pin.cpu_cap_pct, caps.cpu_w, caps.cpu_pct)]
    if machine.gpu_count:
        asked.append(("GPU", pin.gpu_cap_w, pin.gpu_cap_pct, caps.gpu_w_each, caps.gpu_pct))
    told = []
    for device, want_w, want_pct, get_w, get_pct in asked:
        if want_w is not None and get_w is not None and abs(want_w - get_w) >= 0.5:
            told.append(f"{device} {watts(get_w)} instead of {watts(want_w)}")
        elif want_w is None and want_pct is not None and get_pct is not None and abs(want_pct - get_pct) >= 0.05:
            told.append(f"{device} {plain(get_pct)} % instead of {plain(want_pct)} %")
    return f"as near to it as the hardware takes: {', '.join(told)}" if told else ""


def _warn_of_others(live: Live, written: Pin, node: str, now_s: float) -> None:
    others = [p for p in live.snapshot.pins if p.node == node and p.name != written.name]
    alive = [p for p in others if p.expires_at_s is None or p.expires_at_s > now_s]
    if alive:
        names = ", ".join(sorted(p.name for p in alive))
        warn([f"{plural(len(alive), 'younger pin')} of {node} without effect: {names}"])


async def _shown(connection: Connection, assignment: Assignment, wait_s: float) -> bool:
    """Whether the twin says within that time what the pin asks for."""
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


def _how_it_ended(shown: bool, node: str, wait_s: float) -> str:
    if shown:
        return f"the twin of {node} shows it"
    return f"after {age(wait_s)} the twin of {node} does not show it: joulie doctor says whether an operator runs"


def _what_was_removed(node: str, gone: Sequence[Pin], now_s: float) -> str:
    if not gone:
        return f"{node} is not pinned: nothing to do"
    return f"{node} is unpinned: {', '.join(_described(pin, now_s) for pin in gone)} removed"


async def _warn_of_a_typo(connection: Connection, node: str) -> None:
    """Nothing to remove is well, but not where the name was meant to be another; who may not look is not told."""
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
