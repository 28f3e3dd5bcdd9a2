"""Statuses of pins and TelemetryProfiles: whether they are in effect, and with what result. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from joulie.cluster.port import NODE_POWER_PROFILES, TELEMETRY_PROFILES, Resource
from joulie.control.conditions import Statement, by_type, is_news, written
from joulie.control.pins import PIN_ACCEPTED, PinVerdict, pin_verdicts
from joulie.control.plan import Assignment, Plan
from joulie.control.telemetry_rank import RankedProfiles, selects
from joulie.model.api import NodeTwin, TelemetryProfile
from joulie.model.api.profile import NodePowerProfileStatus
from joulie.model.api.results import ACCEPTED, ENFORCED, WORKING, ControlState, ControlStatus
from joulie.model.api.telemetry import RoutedNodes, TelemetryProfileStatus
from joulie.model.snapshot import Node, Pin
from joulie.operator.writes import Job, Write, wanted_spec

_WORST_FIRST = ("error", "blocked", "unknown", "applied", "none")


def pin_jobs(
    plan: Plan, pins: Iterable[Pin], nodes: Mapping[str, Node], twins: Mapping[str, NodeTwin], now_s: float
) -> list[Job]:
    """Status writes for pins whose status does not match this plan."""
    in_scope = frozenset(plan.twins.nodes)
    verdicts = pin_verdicts(pins, nodes, in_scope, now_s)
    assigned = {each.node: each for each in plan.assignments} if verdicts else {}
    jobs: list[Job] = []
    for verdict in verdicts:
        pin = verdict.pin
        there = pin.status or NodePowerProfileStatus()
        statements, control = _of_pin(verdict, assigned.get(pin.node), twins.get(pin.node))
        if is_news(statements, by_type(there.conditions)) or there.control != control:
            body = {} if control is None else {"control": msgspec.to_builtins(control)}
            body["conditions"] = written(statements, by_type(there.conditions), now_s)
            jobs.append(_job(NODE_POWER_PROFILES, pin.name, body, "control"))
    return jobs


def _of_pin(
    verdict: PinVerdict, assignment: Assignment | None, twin: NodeTwin | None
) -> tuple[list[Statement], ControlStatus | None]:
    pin, reason, message = verdict
    accepted = reason == PIN_ACCEPTED
    said = Statement(ACCEPTED, "True" if accepted else "False", reason, message, pin.generation)
    if not accepted or assignment is None:
        return [said, Statement(ENFORCED, "False", reason, message, pin.generation)], None
    if assignment.draining:
        waits = "performance pods still run on the node"
        return [said, Statement(ENFORCED, "False", "Draining", waits, pin.generation)], None
    enforced = by_type(twin.status.conditions if twin and twin.status else None).get(ENFORCED)
    current = twin is not None and twin.spec == wanted_spec(assignment, twin)
    if twin is None or twin.status is None or enforced is None or not current or _is_old(enforced, twin):
        waits = "the agent has not reported on the pinned target"
        return [said, Statement(ENFORCED, "Unknown", "NotReported", waits, pin.generation)], None
    result = Statement(ENFORCED, enforced.status, enforced.reason or "", enforced.message or "", pin.generation)
    return [said, result], _untimed(twin.status.control_status)


def _is_old(enforced: Any, twin: NodeTwin) -> bool:
    return (enforced.observed_generation or 0) < (twin.metadata.generation or 0)


def _untimed(control: ControlStatus | None) -> ControlStatus | None:
    """Without the times, which change every two minutes."""
    if control is None:
        return None
    return ControlStatus(*(part and replace(part, updated_at=None) for part in (control.cpu, control.gpu)))


def telemetry_jobs(
    plan: Plan,
    profiles: Collection[TelemetryProfile],
    nodes: Mapping[str, Node],
    twins: Mapping[str, NodeTwin],
    now_s: float,
) -> list[Job]:
    """Status writes for TelemetryProfiles whose counts or conditions are out of date."""
    if not profiles:
        return []
    ranked = RankedProfiles(profiles)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in plan.twins.nodes:
        for routing, states in _routed(ranked, nodes[name], twins.get(name)).items():
            counts[routing]["routed"] += 1
            if states:
                counts[routing][min(states, key=_WORST_FIRST.index)] += 1
    in_scope = frozenset(plan.twins.nodes)
    jobs: list[Job] = []
    for profile in profiles:
        name = profile.metadata.name
        count = counts[name]
        routed = RoutedNodes(
            count["routed"], *(count[key] for key in ("applied", "blocked", "error", "none", "unknown"))
        )
        there = profile.status or TelemetryProfileStatus()
        statements = [_accepted(profile, routed, nodes, in_scope), _working(profile, routed)]
        if is_news(statements, by_type(there.conditions)) or there.nodes != routed:
            conditions = written(statements, by_type(there.conditions), now_s)
            body = {"nodes": msgspec.to_builtins(routed), "conditions": conditions}
            jobs.append(_job(TELEMETRY_PROFILES, name, body, "nodes"))
    return jobs


def _routed(ranked: RankedProfiles, node: Node, twin: NodeTwin | None) -> dict[str, list[str]]:
    """The profiles that determine a route of this node, each with the results of the caps that it routes."""
    control = twin.status.control_status if twin and twin.status else None
    results: dict[str, list[str]] = {}
    decided: set[str] = set()
    for profile in ranked.speaking(node.name, node.labels):
        for kind, parts in (("source", profile.spec.sources), ("control", profile.spec.controls)):
            for device in ("cpu", "gpu"):
                if parts is None or getattr(parts, device) is None or f"{kind} {device}" in decided:
                    continue
                decided.add(f"{kind} {device}")
                states = results.setdefault(profile.metadata.name, [])
                state: ControlState | None = getattr(control, device) if control else None
                if kind == "control" and (state is not None or device == "cpu"):  # no report on GPUs: there are none
                    states.append((state and state.result) or "unknown")
    return results


def _accepted(
    profile: TelemetryProfile, routed: RoutedNodes, nodes: Mapping[str, Node], in_scope: Collection[str]
) -> Statement:
    generation, target = profile.metadata.generation, profile.spec.target
    if routed.routed:
        return Statement(ACCEPTED, "True", "Routing", "", generation)
    if target.scope == "node" and target.node_name not in nodes:
        return Statement(ACCEPTED, "False", "NodeUnknown", f"{target.node_name} is not in the cluster", generation)
    if target.scope == "node" and target.node_name not in in_scope:
        return Statement(ACCEPTED, "False", "OutOfScope", f"{target.node_name} is out of scope", generation)
    if target.scope != "node" and not any(selects(profile, nodes[name].labels) for name in in_scope):
        return Statement(ACCEPTED, "False", "NoNodes", "no node in scope has the labels that it selects", generation)
    if profile.spec.sources is None and profile.spec.controls is None:
        return Statement(ACCEPTED, "False", "Empty", "it has neither sources nor controls", generation)
    return Statement(ACCEPTED, "False", "Shadowed", "closer or older profiles route all of its nodes", generation)


def _working(profile: TelemetryProfile, nodes: RoutedNodes) -> Statement:
    generation = profile.metadata.generation
    if nodes.error or nodes.blocked:
        message = f"of {nodes.routed:g} nodes {nodes.blocked:g} are blocked and {nodes.error:g} have errors"
        return Statement(WORKING, "False", "Error" if nodes.error else "Blocked", message, generation)
    if nodes.unknown:
        message = f"of {nodes.routed:g} nodes {nodes.unknown:g} have not reported"
        return Statement(WORKING, "Unknown", "NotReported", message, generation)
    if nodes.applied:
        return Statement(WORKING, "True", "Applied", "", generation)
    return Statement(WORKING, "Unknown", "NoCaps", "no cap goes this way", generation)


def _job(resource: Resource, name: str, status: dict[str, Any], owned: str) -> Job:
    write = Write("patch", resource, name, {"status": status}, status=True, owned=(owned,))
    return Job(f"{resource.kind}/{name}", (write,))
