"""Everything behind the plan's decision about one node, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from joulie.cli.context import LoadedCluster, close_to, near_misses
from joulie.cli.explain.formulas import Formula, formulas
from joulie.cli.explain.node_condition import node_condition
from joulie.cli.explain.provenance import HardwareFact, facts
from joulie.cli.style import STRONG, fixed, plain, plural, state_cell
from joulie.cli.tables import INDENT, fold
from joulie.cli.views.budget_tree import settled
from joulie.cli.views.overview import limits
from joulie.cli.views.plan_json import assignment_document
from joulie.cli.views.plan_table import cpu_cap, gpu_cap
from joulie.control.classify import is_performance_only
from joulie.control.pins import pins_in_force
from joulie.control.plan import Assignment
from joulie.errors import InputError, one_line
from joulie.model.snapshot import Node, Pin
from joulie.overview.nodes import NodeOverview, node_views
from joulie.physics.hardware import Machine, machine_of

SHOWN_PODS = 8
_NAME_WIDTH = 18


@dataclass(frozen=True)
class NodeStory:
    """One node of a cluster; rank, assignment and twin are set only if it is in scope."""

    cluster: LoadedCluster
    node: Node
    machine: Machine
    facts: list[HardwareFact]
    rank: int | None  # from 1; None: not planned
    assignment: Assignment | None
    twin_row: int | None
    pin: Pin | None
    guard_pods: list[str]
    formulas: list[Formula]
    now: list[str]  # its current condition, in sentences
    view: NodeOverview

    @property
    def left_out(self) -> str:
        """Why the plan leaves the node alone; empty if it does not."""
        settings = self.cluster.settings.plan
        if not settings.node_selector.matches(self.node.labels):
            return f"out of scope: the selector {settings.node_selector.text!r} does not match it"
        if self.twin_row is None:
            return f"out of scope: it is reserved (label {settings.reserved_label_key}=true)"
        return "cordoned: twin, label and caps stay unchanged" if self.assignment is None else ""


def story_of(cluster: LoadedCluster, name: str) -> NodeStory:
    """Looks up the node; the InputError for an unknown one suggests similar names."""
    snapshot, settings = cluster.snapshot, cluster.settings
    node = snapshot.nodes.get(name)
    if node is None:
        raise InputError(f"node {name!r} is not {cluster.place}{close_to(near_misses(name, list(snapshot.nodes)))}")
    hardware = snapshot.hardware.get(name)
    machine = machine_of(node, hardware, settings.hardware, cluster.catalogue)
    plan = cluster.plan
    rank = next((place for place, a in enumerate(plan.assignments, start=1) if a.node == name), None)
    row = plan.twins.nodes.index(name) if name in plan.twins.nodes else None
    pins, _ = pins_in_force(snapshot.pins, snapshot.nodes, set(plan.twins.nodes), cluster.now_s)
    label = settings.plan.power_profile_label
    holding = [p for p in snapshot.pods if p.node == name and not p.finished and is_performance_only(p, label)]
    guard_pods = sorted(f"{pod.namespace}/{pod.name}" for pod in holding)
    view = _view(cluster, name)
    return NodeStory(
        cluster,
        node,
        machine,
        facts(machine, node, hardware, settings.hardware, cluster.catalogue),
        rank,
        None if rank is None else plan.assignments[rank - 1],
        row,
        pins.get(name),
        guard_pods,
        [] if row is None else formulas(cluster, node, machine, row),
        _condition(cluster, view, guard_pods),
        view,
    )


def _condition(cluster: LoadedCluster, view: NodeOverview, guard_pods: list[str]) -> list[str]:
    reasons = cluster.live.pin_reasons if cluster.live else {}
    return node_condition(view, guard_pods, cluster.settings.plan, reasons, cluster.now_s, limits(cluster))


def _view(cluster: LoadedCluster, name: str) -> NodeOverview:
    """From files, under the budgets in them as they would settle."""
    snapshot = cluster.snapshot
    if cluster.live is None and cluster.budgets:
        snapshot = settled(cluster, cluster.budgets).snapshot
    return node_views(snapshot, cluster.settings.plan, cluster.now_s)[name]


def node_document(story: NodeStory) -> dict[str, Any]:
    """The same for programs; null for what does not exist."""
    plan = story.cluster.plan
    return {
        "node": story.node.name,
        "leftOut": story.left_out or None,
        "now": story.now,
        "hardware": {_key(fact.name): _named(fact.value, fact.unit, source=fact.source) for fact in story.facts},
        "policy": plan.policy,
        "rank": story.rank,
        "eligible": len(plan.assignments),
        "before": story.assignment.before if story.assignment else None,
        "assignment": assignment_document(story.assignment) if story.assignment else None,
        "pin": story.pin.name if story.pin else None,
        "budget": _budget_document(story.view),
        "guardPods": story.guard_pods,
        "twin": None if story.twin_row is None else plan.twins.status(story.twin_row),
        "formulas": {_key(f.name): _named(f.value, f.unit, formula=f.text) for f in story.formulas},
    }


def _budget_document(view: NodeOverview) -> dict[str, Any] | None:
    if view.budget_w is None:
        return None
    return {
        "groups": list(view.budget_groups),
        "watts": view.budget_w,
        "cpuWattsPerPackage": view.budget_cpu_w,
        "gpuWattsPerGpu": view.budget_gpu_w,
        "confirmed": view.budget_is_confirmed,
        "reason": view.budget_reason,
    }


def print_node(console: Console, story: NodeStory) -> None:
    """Headline, then one paragraph each about condition, hardware, decision and twin."""
    headline = Text(story.node.name, STRONG)
    if story.assignment:
        headline.append(" · ").append(*state_cell(story.assignment.state))
        caps = story.assignment.caps
        headline.append(f" · CPU cap {cpu_cap(caps)}")
        headline.append(f" · GPU cap {gpu_cap(caps)}" if story.machine.gpu_count else "")
    else:
        headline.append(f" · {story.left_out}")
    console.print(headline, soft_wrap=True)
    _now(console, story)
    _paragraph(console, "hardware", [(fact.name, _value(fact), fact.source) for fact in story.facts])
    _decision(console, story)
    if story.formulas:
        _paragraph(console, "twin", [(f.name, _value(f), f"= {f.text}") for f in story.formulas])


def _now(console: Console, story: NodeStory) -> None:
    console.print()
    console.print(Text("now", STRONG))
    for sentence in story.now:
        first, *others = fold(one_line(sentence), max(40, console.width - len(INDENT)))
        console.print(Text(f"{INDENT}{first}"), soft_wrap=True)
        for other in others:
            console.print(Text(f"{INDENT}  {other}"), soft_wrap=True)


def _decision(console: Console, story: NodeStory) -> None:
    plan, assignment = story.cluster.plan, story.assignment
    lines: list[tuple[str, str]] = []
    if assignment is not None:
        rank = f"{story.rank} of {len(plan.assignments)}, density {fixed(assignment.density, 2)}"
        lines += [("rank", f"{rank}, family {assignment.machine.family}"), ("chosen by", assignment.chosen_by)]
        lines.append(("why", assignment.reason))
        before = assignment.before
        lines.append(
            ("state", f"{before} → {assignment.state}" if before != assignment.state else f"{before}, unchanged")
        )
    if story.pin is not None:
        lines.append(("pin", f"NodePowerProfile/{story.pin.name} sets {story.pin.profile}"))
    some = ", ".join(story.guard_pods[:SHOWN_PODS]) + (" …" if len(story.guard_pods) > SHOWN_PODS else "")
    held = (
        f"{plural(len(story.guard_pods), 'performance-only pod')} here: {some}" if some else "no performance-only pod"
    )
    lines.append(("guard", held))
    console.print()
    console.print(Text("decision", STRONG))
    for name, text in lines:
        first, *others = fold(text, max(40, console.width - len(INDENT) - _NAME_WIDTH))
        console.print(Text(f"{INDENT}{name:<{_NAME_WIDTH}}{first}"), soft_wrap=True)
        for other in others:
            console.print(Text(" " * (len(INDENT) + _NAME_WIDTH) + other), soft_wrap=True)


def _paragraph(console: Console, title: str, rows: list[tuple[str, str, str]]) -> None:
    console.print()
    console.print(Text(title, STRONG))
    widest = max(len(value) for _, value, _ in rows)
    for name, value, note in rows:
        console.print(Text(f"{INDENT}{name:<{_NAME_WIDTH}}{value:<{widest}}  {note}".rstrip()), soft_wrap=True)


def _value(fact: HardwareFact | Formula) -> str:
    if fact.value is None:
        return "–"
    shown = fact.value if isinstance(fact.value, str) else plain(fact.value, 2)
    return f"{shown} {fact.unit}".strip()


def _named(value: float | str | None, unit: str, **more: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, **more}


def _key(name: str) -> str:
    """`CPU maximum` → `cpuMaximum`."""
    first, *others = name.lower().split()
    return first + "".join(word.capitalize() for word in others)
