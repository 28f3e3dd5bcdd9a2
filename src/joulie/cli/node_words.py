"""What a node is right now, in the words of somebody who runs a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from joulie.model.names import DRAINING, ECO, PERFORMANCE
from joulie.model.rfc3339 import format_time
from joulie.overview.findings import Limits, age, cap, enforced
from joulie.overview.nodes import ControlView, NodeView
from joulie.settings import PlanSettings

SHOWN_PODS = 8


def in_words(
    node: NodeView,
    guard_pods: Sequence[str],
    settings: PlanSettings,
    reasons: Mapping[str, str],
    now_s: float,
    limits: Limits,
) -> list[str]:
    """One sentence each: scope, state, pin, twin, agent."""
    return [
        *_scope(node, settings),
        *_state(node, guard_pods),
        *_pin(node, reasons, now_s),
        *_twin(node, now_s, limits),
        *_agent(node, now_s, limits),
    ]


def _scope(node: NodeView, settings: PlanSettings) -> Iterator[str]:
    key = settings.reserved_label_key
    if node.scope == "reserved":
        yield f"reserved: Joulie leaves it alone (to give it back: kubectl label node {node.name} {key}-)"
    elif node.scope == "out":
        yield f"out of scope: Joulie does not touch it (the selector {settings.node_selector.text!r} does not match it)"
    elif node.scope == "cordoned":
        yield "cordoned: it keeps twin, label and caps as they are until it is uncordoned"


def _state(node: NodeView, guard_pods: Sequence[str]) -> Iterator[str]:
    if not node.managed:
        if node.has_twin:
            yield "its twin is left from before and goes with the operator's next decision"
        return
    if not node.has_twin:
        yield "no twin yet: the operator has not decided about it; pods are scored neutrally here"
    elif node.state == PERFORMANCE:
        yield f"runs at full power{_by(node)}"
    elif node.state == ECO:
        yield f"is capped to {_caps(node)}{_by(node)}; performance-only pods stay away"
    elif node.state == DRAINING:
        some = ", ".join(guard_pods[:SHOWN_PODS]) + (", …" if len(guard_pods) > SHOWN_PODS else "")
        count = len(guard_pods)
        held = f"{count} performance-only pod{'s' * (count != 1)} still here: {some}" if count else "the last has left"
        yield f"is to become eco{_by(node)}, but keeps full power until its performance-only pods have left ({held})"
        yield "no new performance-only pod comes here; nothing is evicted"
    else:
        yield "its twin says nothing about its state yet: the operator has not decided about it"


def _by(node: NodeView) -> str:
    return f" (chosen by {node.chosen_by})" if node.chosen_by and node.chosen_by != "pinned" else ""


def _caps(node: NodeView) -> str:
    gpu = cap(node, "GPU")
    return f"CPU {cap(node, 'CPU')}" + (f" and GPU {gpu}" if gpu != "none" else "")


def _pin(node: NodeView, reasons: Mapping[str, str], now_s: float) -> Iterator[str]:
    if not node.pin:
        return
    until = "until it is removed"
    if node.pin_ends_at_s is not None:
        until = f"until {format_time(node.pin_ends_at_s)}, for {age(node.pin_ends_at_s - now_s)}"
    why = f", because: {reasons[node.pin]}" if node.pin in reasons else ""
    waits = "; the operator's next decision will take it" if node.pin_waits and node.scope == "in" else ""
    yield (
        f"is pinned to {node.pin_profile} by NodePowerProfile/{node.pin} {until}{why}{waits} "
        f"(to end it: joulie unpin {node.name})"
    )


def _twin(node: NodeView, now_s: float, limits: Limits) -> Iterator[str]:
    if not node.has_twin:
        return
    effect = "pods are scored neutrally here, and the agent lets go of its caps when CAP_LEASE has passed"
    if node.twin_at_s is None:
        yield f"its twin has no readable time, so it counts as stale: {effect}"
    elif now_s - node.twin_at_s > limits.twin_stale_s:
        told = f"its twin is stale, {age(now_s - node.twin_at_s)} old: no operator refreshes it"
        yield f"{told}; {effect}"


def _agent(node: NodeView, now_s: float, limits: Limits) -> Iterator[str]:
    held = enforced(node, now_s, limits)
    if held == "yes":
        yield f"its agent says that the caps are applied{_through(node)}"
    elif held == "silent" and node.agent_at_s is None:
        yield "no agent has reported yet: nobody knows whether its caps are enforced"
    elif held == "silent" and node.agent_at_s is not None:
        silent = age(now_s - node.agent_at_s)
        yield f"its agent has been silent for {silent}: nobody knows whether its caps are still enforced"
    elif held == "no":
        for part, control in (("CPU", node.cpu_control), ("GPU", node.gpu_control)):
            if cap(node, part) != "none" and (control is None or control.result != "applied"):
                yield f"the {part} cap of {cap(node, part)} is not enforced: {_why(control)}; it counts as 100 %"


def _through(node: NodeView) -> str:
    names = [c.backend for c in (node.cpu_control, node.gpu_control) if c is not None and c.backend]
    return f" (through {', '.join(dict.fromkeys(names))})" if names else ""


def _why(control: ControlView | None) -> str:
    if control is None:
        return "the agent says nothing about it"
    return f"{control.result}, {control.message}" if control.message else control.result
