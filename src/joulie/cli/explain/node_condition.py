"""The current condition of a node, in sentences for cluster administrators. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from joulie.model.names import DRAINING, ECO, PERFORMANCE
from joulie.model.rfc3339 import format_time
from joulie.overview.findings import FindingThresholds, age, cap, enforced
from joulie.overview.nodes import ControlView, NodeOverview
from joulie.settings import PlanSettings

SHOWN_PODS = 8


def node_condition(
    node: NodeOverview,
    guard_pods: Sequence[str],
    settings: PlanSettings,
    reasons: Mapping[str, str],
    now_s: float,
    limits: FindingThresholds,
) -> list[str]:
    """Sentences about scope, state, pin, twin and agent."""
    return [
        *_scope(node, settings),
        *_state(node, guard_pods),
        *_pin(node, reasons, now_s),
        *_budget(node),
        *_twin(node, now_s, limits),
        *_agent(node, now_s, limits),
    ]


def _scope(node: NodeOverview, settings: PlanSettings) -> Iterator[str]:
    key = settings.reserved_label_key
    if node.scope == "reserved":
        yield f"reserved: Joulie leaves it alone (to release it: kubectl label node {node.name} {key}-)"
    elif node.scope == "out":
        yield f"out of scope: Joulie does not touch it (the selector {settings.node_selector.text!r} does not match it)"
    elif node.scope == "cordoned":
        yield "cordoned: twin, label and caps stay unchanged until it is uncordoned"


def _state(node: NodeOverview, guard_pods: Sequence[str]) -> Iterator[str]:
    if not node.managed:
        if node.has_twin:
            yield "its twin is left over and will be removed with the operator's next decision"
        return
    if not node.has_twin:
        yield "no twin yet: the operator has not decided about it; its score is neutral"
    elif node.state == PERFORMANCE:
        within = ", as far as power budgets allow" if node.budget_w is not None else ""
        yield f"runs at full power{within}{_by(node)}"
    elif node.state == ECO:
        yield f"is capped to {_caps(node)}{_by(node)}; performance-only pods stay away"
    elif node.state == DRAINING:
        some = ", ".join(guard_pods[:SHOWN_PODS]) + (", …" if len(guard_pods) > SHOWN_PODS else "")
        count = len(guard_pods)
        held = (
            f"{count} performance-only pod{'s' * (count != 1)} still here: {some}" if count else "the last one has left"
        )
        yield f"will become eco{_by(node)}, but keeps full power until its performance-only pods have left ({held})"
        yield "no new performance-only pods are placed here; nothing is evicted"
    else:
        yield "its twin has no state yet: the operator has not decided about it"


def _by(node: NodeOverview) -> str:
    return f" (chosen by {node.chosen_by})" if node.chosen_by and node.chosen_by != "pinned" else ""


def _caps(node: NodeOverview) -> str:
    gpu = cap(node, "GPU")
    return f"CPU {cap(node, 'CPU')}" + (f" and GPU {gpu}" if gpu != "none" else "")


def _pin(node: NodeOverview, reasons: Mapping[str, str], now_s: float) -> Iterator[str]:
    if not node.pin:
        return
    until = "until it is removed"
    if node.pin_ends_at_s is not None:
        until = f"until {format_time(node.pin_ends_at_s)}, for {age(node.pin_ends_at_s - now_s)}"
    why = f", because: {reasons[node.pin]}" if node.pin in reasons else ""
    waits = "; it takes effect with the operator's next decision" if node.pin_waits and node.scope == "in" else ""
    yield (
        f"is pinned to {node.pin_profile} by NodePowerProfile/{node.pin} {until}{why}{waits} "
        f"(to end it: joulie unpin {node.name})"
    )


def _budget(node: NodeOverview) -> Iterator[str]:
    """The reason of an order begins with the watts that the node counts, and names the group that gave no more."""
    if node.budget_w is None:
        return
    gpu = f" and GPU {node.budget_gpu_w:,.0f} W each" if node.budget_gpu_w is not None else ""
    cpu = f"CPU {node.budget_cpu_w:,.0f} W each" if node.budget_cpu_w is not None else "no CPU cap"
    why = f", because: {node.budget_reason}" if node.budget_reason else ""
    yield f"power budgets leave its devices {node.budget_w:,.0f} W ({cpu}{gpu}){why}"
    if node.budget_groups:
        yield f"counts in {', '.join(node.budget_groups)} (joulie budget --nodes --group {node.budget_groups[0]})"
    if not node.budget_is_confirmed:
        yield "its agent has not confirmed these caps yet, so it counts the most that it may still hold"


def _twin(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Iterator[str]:
    if not node.has_twin:
        return
    effect = "its score is neutral, and the agent releases its caps after CAP_LEASE"
    if node.twin_at_s is None:
        yield f"its twin has no valid timestamp, so it counts as stale: {effect}"
    elif now_s - node.twin_at_s > limits.twin_stale_s:
        stale = f"its twin is stale, {age(now_s - node.twin_at_s)} old: no operator refreshes it"
        yield f"{stale}; {effect}"


def _agent(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Iterator[str]:
    held = enforced(node, now_s, limits)
    if held == "yes":
        yield f"its agent reports that the caps are applied{_through(node)}"
    elif held == "silent" and node.agent_at_s is None:
        yield "no agent has reported yet: whether its caps are enforced is unknown"
    elif held == "silent" and node.agent_at_s is not None:
        silent = age(now_s - node.agent_at_s)
        yield f"its agent has been silent for {silent}: whether its caps are still enforced is unknown"
    elif held == "no":
        for part, control in (("CPU", node.cpu_control), ("GPU", node.gpu_control)):
            if cap(node, part) != "none" and (control is None or control.result != "applied"):
                yield f"the {part} cap of {cap(node, part)} is not enforced: {_why(control)}; it counts as 100 %"


def _through(node: NodeOverview) -> str:
    names = [c.backend for c in (node.cpu_control, node.gpu_control) if c is not None and c.backend]
    return f" (via {', '.join(dict.fromkeys(names))})" if names else ""


def _why(control: ControlView | None) -> str:
    if control is None:
        return "the agent does not report on it"
    return f"{control.result}, {control.message}" if control.message else control.result
