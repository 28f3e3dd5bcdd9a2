"""Compares a plan with the cluster and returns the missing writes, one job per changed node. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from joulie.cluster.patches import merge_patch
from joulie.cluster.port import NODE_TWINS, NODES, Resource
from joulie.control.plan import Assignment, Plan
from joulie.control.transitions import Transition
from joulie.model.api import NodeTwin, NodeTwinSpec
from joulie.model.api.profile import CpuCap, GpuCap, GpuPowerCap, PolicyRef
from joulie.model.api.twin import Scheduling
from joulie.model.names import API_VERSION, DRAINING_LABEL, PERFORMANCE
from joulie.model.snapshot import Node
from joulie.operator.deadband import OWN_FIELDS, applied_status, needs_status_write
from joulie.operator.twin_conditions import twin_statements
from joulie.settings import OperatorSettings

LEFT_SCOPE = "left scope"


class Write(NamedTuple):
    """One call to the API server."""

    verb: Literal["create", "patch", "delete"]
    resource: Resource
    name: str
    body: dict[str, Any]
    status: bool = False  # server-side apply instead of a merge patch
    owned: tuple[str, ...] = ()  # of a status: the operator's fields, besides its conditions
    uid: str | None = None
    namespace: str = ""


class Job(NamedTuple):
    """The writes of one node, in a safe order, and the transition that they complete."""

    node: str
    writes: tuple[Write, ...]
    refresh_only: bool = False  # nothing changed: only keeps the twin from becoming stale
    transition: Transition | None = None
    reason: str = ""


def all_jobs(
    plan: Plan,
    nodes: Mapping[str, Node],
    twins: Mapping[str, NodeTwin],
    settings: OperatorSettings,
    now_s: float,
    silent: Container[str] = (),
) -> list[Job]:
    """The missing writes for this plan, removals first."""
    gone = removals(nodes, twins, plan.twins.nodes, settings.decision.plan.power_profile_label)
    return gone + jobs(plan, nodes, twins, settings, now_s, silent)


def jobs(
    plan: Plan,
    nodes: Mapping[str, Node],
    twins: Mapping[str, NodeTwin],
    settings: OperatorSettings,
    now_s: float,
    silent: Container[str] = (),  # nodes whose agent no longer reports
) -> list[Job]:
    """The writes that make the cluster's objects match the plan."""
    label = settings.decision.plan.power_profile_label
    assigned = {assignment.node: assignment for assignment in plan.assignments}
    result: list[Job] = []
    for row, name in enumerate(plan.twins.nodes):
        twin = twins.get(name)
        assignment = assigned.get(name)
        spec = None if assignment is None else _spec_write(assignment, twin)
        if assignment is None and twin is None:  # new and cordoned: a twin without a target
            spec = _create(NodeTwinSpec(node_name=name))
        labels = None if assignment is None else _label_write(assignment, nodes[name], label)
        status = plan.twins.status(row)
        there = twin.status if twin else None
        statements = twin_statements(status, twin, spec_changes=spec is not None, silent=name in silent)
        due = needs_status_write(status, there, statements, name, settings, now_s)
        status_write = None
        if due:
            body = {"status": applied_status(status, there, statements, now_s)}
            status_write = Write("patch", NODE_TWINS, name, body, status=True, owned=OWN_FIELDS)
        job = _job(name, assignment, twin, spec, status_write, labels)
        if job is not None:
            result.append(job._replace(refresh_only=due == "refresh" and len(job.writes) == 1))
    return result


def removals(
    nodes: Mapping[str, Node], twins: Mapping[str, NodeTwin], in_scope: Iterable[str], label: str
) -> list[Job]:
    """Removes the twins of nodes that left the scope, after the labels that came with them."""
    kept = set(in_scope)
    result: list[Job] = []
    for name, twin in sorted(twins.items()):
        if name in kept:
            continue
        writes: list[Write] = []
        node = nodes.get(name)
        if node is not None:
            left = {key: None for key in (label, DRAINING_LABEL) if key in node.labels}
            if left:
                writes.append(Write("patch", NODES, name, {"metadata": {"labels": left}}))
        writes.append(Write("delete", NODE_TWINS, name, {}, uid=twin.metadata.uid))
        result.append(Job(name, tuple(writes), reason=LEFT_SCOPE))
    return result


def spec_of(assignment: Assignment) -> NodeTwinSpec:
    """The desired state for the agent."""
    caps = assignment.caps
    gpu = None
    if assignment.machine.gpu_count:
        gpu = GpuCap(GpuPowerCap("perGpu", caps.gpu_w_each, caps.gpu_pct))
    return NodeTwinSpec(
        node_name=assignment.node,
        profile=assignment.profile,
        cpu=CpuCap(caps.cpu_w_each, caps.cpu_pct),
        gpu=gpu,
        policy=PolicyRef(assignment.chosen_by),
        scheduling=Scheduling(draining=assignment.draining),
    )


def _job(
    name: str,
    assignment: Assignment | None,
    twin: NodeTwin | None,
    spec: Write | None,
    status: Write | None,
    labels: Write | None,
) -> Job | None:
    """The order matters: a node is labelled before it is capped, and uncapped before its label changes back."""
    if twin is None or (assignment is not None and assignment.state == PERFORMANCE):
        ordered = (spec, status, labels)
    else:
        ordered = (labels, status, spec)
    writes = tuple(write for write in ordered if write is not None)
    if not writes:
        return None
    if assignment is None or twin is None:  # the first twin of a node is not a transition
        return Job(name, writes)
    return Job(name, writes, transition=assignment.transition, reason=assignment.reason)


def _create(spec: NodeTwinSpec) -> Write:
    name = spec.node_name or ""
    body = {
        "apiVersion": API_VERSION,
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": msgspec.to_builtins(spec),
    }
    return Write("create", NODE_TWINS, name, body)


def wanted_spec(assignment: Assignment, twin: NodeTwin) -> NodeTwinSpec:
    """The plan's part of the twin; what budgets order is the budget loop's."""
    there = twin.spec or NodeTwinSpec()
    return replace(spec_of(assignment), budget=there.budget, failsafe=there.failsafe)


def _spec_write(assignment: Assignment, twin: NodeTwin | None) -> Write | None:
    if twin is None:
        return _create(spec_of(assignment))
    wanted = wanted_spec(assignment, twin)
    if twin.spec == wanted:
        return None
    return Write("patch", NODE_TWINS, assignment.node, {"spec": merge_patch(twin.spec or NodeTwinSpec(), wanted)})


def _label_write(assignment: Assignment, node: Node, label: str) -> Write | None:
    wanted = {label: assignment.profile, DRAINING_LABEL: "true" if assignment.draining else "false"}
    changed = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    return Write("patch", NODES, node.name, {"metadata": {"labels": changed}}) if changed else None
