"""What needs a person's attention, found in the cluster's own objects, each with what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from joulie.overview.nodes import ControlView, NodeView

Severity = Literal["fault", "warning"]
Enforced = Literal["yes", "no", "silent", "unasked"]
NAMED = 3  # nodes of many that are hot


class Limits(Struct, frozen=True):
    """From when on something is worth saying."""

    twin_stale_s: float = 300.0
    agent_silent_s: float = 300.0  # SPEC 14
    hot_pct: float = 80.0
    rack_full_pct: float = 90.0


class Finding(Struct, frozen=True, rename="camel", gc=False):
    """One thing that is not as it should be. `kind` is also the section of docs/troubleshooting.md."""

    kind: str
    severity: Severity
    node: str  # "": the whole cluster
    text: str
    next_step: str


def enforced(node: NodeView, now_s: float, limits: Limits) -> Enforced:
    """Whether the node really is under the caps that are wanted of it."""
    asked = [control for wanted, control in _parts(node) if wanted]
    if not asked or not node.has_twin:
        return "unasked"
    if _silent(node, now_s, limits):
        return "silent"
    return "yes" if all(control is not None and control.result == "applied" for control in asked) else "no"


def findings(nodes: Iterable[NodeView], now_s: float, limits: Limits) -> list[Finding]:
    """Faults first, then warnings, each by node; what load does to many nodes is said once."""
    found = [finding for node in nodes for finding in node_findings(node, now_s, limits)]
    hot = [finding.node for finding in found if finding.kind == "hot"]
    if len(hot) > NAMED:
        found = [finding for finding in found if finding.kind != "hot"]
        text = (
            f"{len(hot):,} nodes have a cooling stress of {limits.hot_pct:.0f} % or more: {', '.join(hot[:NAMED])}, …"
        )
        found.append(Finding("hot", "warning", "", text, "joulie top --sort heat"))
    by_rack = {finding.text: finding for finding in reversed(found) if finding.kind == "rack-full"}
    found = [finding for finding in found if finding.kind != "rack-full" or by_rack[finding.text] is finding]
    return sorted(found, key=lambda one: (one.severity != "fault", one.kind, one.node))


def node_findings(node: NodeView, now_s: float, limits: Limits) -> Iterator[Finding]:
    if not node.managed:
        return
    if not node.has_twin:
        yield Finding(
            "twin-missing",
            "warning",
            node.name,
            "has no twin yet",
            "joulie doctor: is an operator running and leading?",
        )
        return
    yield from _twin(node, now_s, limits)
    yield from _agent(node, now_s, limits)
    if node.cooling_stress is not None and node.cooling_stress >= limits.hot_pct:
        text = f"cooling stress {node.cooling_stress:.0f} %"
        yield Finding("hot", "warning", node.name, text, f"joulie explain node {node.name}")
    if node.rack and node.rack_stress is not None and node.rack_stress >= limits.rack_full_pct:
        text = f"rack {node.rack} draws {node.rack_stress:.0f} % of its capacity"
        yield Finding("rack-full", "warning", node.name, text, "joulie status: move work, or raise RACK_CAPACITY_WATTS")


def _twin(node: NodeView, now_s: float, limits: Limits) -> Iterator[Finding]:
    if node.twin_at_s is None:
        yield Finding("twin-stale", "fault", node.name, "its twin has no readable time", "joulie doctor")
    elif now_s - node.twin_at_s > limits.twin_stale_s:
        text = f"its twin is {age(now_s - node.twin_at_s)} old"
        yield Finding("twin-stale", "fault", node.name, text, "joulie doctor: is an operator running and leading?")


def _agent(node: NodeView, now_s: float, limits: Limits) -> Iterator[Finding]:
    wanted = any(asked for asked, _ in _parts(node))
    if not wanted:
        return
    if node.agent_at_s is None:
        yield Finding("agent-silent", "fault", node.name, "no agent has reported yet", _agents_log(node))
        return
    if _silent(node, now_s, limits):
        text = f"its agent has been silent for {age(now_s - node.agent_at_s)}"
        yield Finding("agent-silent", "fault", node.name, text, _agents_log(node))
        return
    for part, (asked, control) in zip(("CPU", "GPU"), _parts(node), strict=True):
        if asked and (control is None or control.result != "applied"):
            why = "nothing reported" if control is None else control.message or control.result
            text = f"{part} cap of {cap(node, part)} is not enforced: {why}"
            yield Finding("not-enforced", "fault", node.name, text, f"joulie explain node {node.name}")


def cap(node: NodeView, part: str) -> str:
    """`240 W` or `60 %`: watts win, as they do on the node."""
    in_watts, in_pct = (node.cpu_cap_w, node.cpu_cap_pct) if part == "CPU" else (node.gpu_cap_w, node.gpu_cap_pct)
    if in_watts is not None:
        return f"{in_watts:,.0f} W"
    return "none" if in_pct is None else f"{in_pct:g} %"


def age(seconds: float) -> str:
    """`40 s`, `6 min`, `3 h`, `2 days`: as long as people remember it."""
    for unit_s, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _parts(node: NodeView) -> tuple[tuple[bool, ControlView | None], tuple[bool, ControlView | None]]:
    """For CPU and GPU: whether a cap is wanted, and what the agent says of it."""
    return (
        (node.cpu_cap_w is not None or node.cpu_cap_pct is not None, node.cpu_control),
        (node.gpu_cap_w is not None or node.gpu_cap_pct is not None, node.gpu_control),
    )


def _silent(node: NodeView, now_s: float, limits: Limits) -> bool:
    return node.agent_at_s is None or now_s - node.agent_at_s > limits.agent_silent_s


def _agents_log(node: NodeView) -> str:
    where = f"--field-selector spec.nodeName={node.name}"
    return f"kubectl get pods -A -o wide -l app.kubernetes.io/component=agent {where}"
