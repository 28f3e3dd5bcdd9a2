"""What needs a person's attention, found in the cluster's own objects, each with what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from joulie.overview.nodes import ControlView, NodeOverview

# A hint is worth knowing and needs no repair: a healthy cluster may have some.
Severity = Literal["fault", "warning", "hint"]
Enforced = Literal["yes", "no", "silent", "dry run", "unasked"]
SEVERITIES: tuple[Severity, ...] = ("fault", "warning", "hint")
NAMED = 3  # nodes of many that are hot
SKEW_S = 120.0  # reports are written up to a reconcile interval after their time stamp
FUTURE_S = 5.0
SIMULATED = "SIMULATE_ONLY"  # how an agent in a dry run begins its message
EARLIER_ROUTE = "a cap of an earlier route"  # how it begins the one about a device that it is not routed to any more


class FindingThresholds(Struct, frozen=True):
    """From when on something is worth saying."""

    twin_stale_s: float = 300.0
    agent_silent_s: float = 300.0
    hot_pct: float = 80.0
    rack_full_pct: float = 90.0


class Finding(Struct, frozen=True, rename="camel", gc=False):
    """One thing that is not as it should be. `kind` is also the section of docs/troubleshooting.md."""

    kind: str
    severity: Severity
    node: str  # "": the whole cluster
    text: str
    next_step: str


def enforced(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Enforced:
    """Whether the node really is under the caps that are wanted of it.

    A cap of 100 % asks nothing of a device that cannot be capped.
    """
    if not node.has_twin or not any(part.wanted for part in _parts(node)):
        return "unasked"
    if _silent(node, now_s, limits):
        return "silent"
    asked = [part for part in _parts(node) if part.wanted and not part.idle]
    if not asked:
        return "unasked"
    if any(part.simulated for part in asked):
        return "dry run"
    return "yes" if all(part.applied for part in asked) else "no"


def findings(nodes: Iterable[NodeOverview], now_s: float, limits: FindingThresholds) -> list[Finding]:
    """Faults first, then warnings, each by node; what load does to many nodes is said once."""
    everything = list(nodes)
    found = [
        *operator_clock(everything, now_s),
        *(one for node in everything for one in node_findings(node, now_s, limits) if one.severity != "hint"),
    ]
    hot = [finding.node for finding in found if finding.kind == "hot"]
    if len(hot) > NAMED:
        found = [finding for finding in found if finding.kind != "hot"]
        text = (
            f"{len(hot):,} nodes have a cooling stress of {limits.hot_pct:.0f} % or more: {', '.join(hot[:NAMED])}, …"
        )
        found.append(Finding("hot", "warning", "", text, "joulie top --sort heat"))
    by_rack = {finding.text: finding for finding in reversed(found) if finding.kind == "rack-full"}
    found = [finding for finding in found if finding.kind != "rack-full" or by_rack[finding.text] is finding]
    return sorted(found, key=order)


def order(finding: Finding) -> tuple[int, bool, str, str]:
    """Faults first; what concerns the whole installation before what concerns nodes, because it may be the cause."""
    return SEVERITIES.index(finding.severity), bool(finding.node), finding.kind, finding.node


def node_findings(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Iterator[Finding]:
    if not node.managed:
        return
    if node.doubt:
        step = f"kubectl get nodehardware {node.name} -o yaml: correct what its agent or its labels state"
        yield Finding("hardware-implausible", "warning", node.name, node.doubt, step)
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


def operator_clock(nodes: Iterable[NodeOverview], now_s: float) -> Iterator[Finding]:
    """One clock writes all twins."""
    wrong = {
        node.name: word
        for node in nodes
        if node.managed
        and node.twin_at_s is not None
        and (word := _wrong_clock(node.twin_at_s, node.twin_written_at_s, now_s))
    }
    if wrong:
        name, word = min(wrong.items())
        many = f" and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        text = f"the operator's clock is {word}, by the time in the twin of {name}{many}"
        yield Finding("clock-skew", "warning", "", text, "timedatectl status, on the operator's machine")


def _twin(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Iterator[Finding]:
    said_s, written_s = node.twin_at_s, node.twin_written_at_s
    if said_s is None:
        yield Finding("twin-stale", "fault", node.name, "its twin has no readable time", "joulie doctor")
        return
    last_s = said_s if written_s is None else written_s
    if now_s - last_s > limits.twin_stale_s:
        text = f"its twin is {age(now_s - last_s)} old"
        yield Finding("twin-stale", "fault", node.name, text, "joulie doctor: is an operator running and leading?")


def _agent(node: NodeOverview, now_s: float, limits: FindingThresholds) -> Iterator[Finding]:
    if not any(part.wanted for part in _parts(node)):
        return
    if node.agent_at_s is None:
        yield Finding("agent-silent", "fault", node.name, "no agent has reported yet", _agents_log(node))
        return
    if word := _wrong_clock(node.agent_at_s, node.agent_written_at_s, now_s):
        text = f"its agent reported by a clock that is {word}: the node's"
        yield Finding("clock-skew", "warning", node.name, text, f"timedatectl status, on {node.name}")
    if _silent(node, now_s, limits):
        text = f"its agent has been silent for {age(now_s - _reported_s(node))}"
        yield Finding("agent-silent", "fault", node.name, text, _agents_log(node))
        return
    yield from _control(node)


def _control(node: NodeOverview) -> Iterator[Finding]:
    """One finding of a kind for CPU and GPU together, so that findings count as nodes."""
    failed = [part for part in _parts(node) if part.wanted and not part.applied]
    if simulated := [part for part in failed if part.simulated]:
        text = f"dry run: {_joined(f'{part.name} cap of {part.cap} is only simulated' for part in simulated)}"
        step = "to enforce: set SIMULATE_ONLY=false for the agents (helm: dryRun=false)"
        yield Finding("dry-run", "hint", node.name, text, step)
    step = f"joulie explain node {node.name}"
    # At full power nothing is asked of a device, so one that cannot be capped is no fault before a cap is wanted.
    if idle := [part for part in failed if part.idle and not part.simulated]:
        text = _joined(f"its {part.name} cannot be capped: {part.why}" for part in idle)
        yield Finding("cannot-cap", "hint", node.name, f"{text} (at full power now, so nothing is missing)", step)
    rest = [part for part in failed if not part.idle and not part.simulated]
    if rest:
        text = _joined(f"{part.name} cap of {part.cap} is not enforced: {part.why}" for part in rest)
        contested = any("contested" in part.why for part in rest)
        yield Finding("cap-contested" if contested else "not-enforced", "fault", node.name, text, step)


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _wrong_clock(said_s: float, written_s: float | None, now_s: float) -> str:
    """`6 min behind`: a time stamp against the API server's clock when it was written; empty where they agree.

    Without that, an old time stamp tells nothing: its writer may just be gone.
    """
    if written_s is not None and said_s < written_s - SKEW_S:
        return f"{age(written_s - said_s)} behind"
    ahead_s = said_s - (now_s if written_s is None else written_s)
    return f"{age(ahead_s)} ahead" if ahead_s > FUTURE_S else ""


def cap(node: NodeOverview, part: str) -> str:
    """`240 W each` (package or board) or `60 %`: watts win, as they do on the node."""
    in_watts, in_pct = (node.cpu_cap_w, node.cpu_cap_pct) if part == "CPU" else (node.gpu_cap_w, node.gpu_cap_pct)
    if in_watts is not None:
        return f"{in_watts:,.0f} W each"
    return "none" if in_pct is None else f"{in_pct:g} %"


def age(seconds: float) -> str:
    """`40 s`, `6 min`, `3 h`, `2 days`: as long as people remember it."""
    for unit_s, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


class _Part(NamedTuple):
    """The cap of one kind of device, and what the agent says of it."""

    name: str
    cap: str
    wanted: bool
    full: bool  # at 100 %: nothing is taken from the device
    control: ControlView | None

    @property
    def applied(self) -> bool:
        return self.control is not None and self.control.result == "applied"

    @property
    def simulated(self) -> bool:
        return self.control is not None and self.control.message.startswith(SIMULATED)

    @property
    def idle(self) -> bool:
        """Not applied, and nothing lost by it: an error, a lost route or a contest is a fault at any cap."""
        said = self.control
        if not self.full or self.applied:
            return False
        return said is None or (said.result != "error" and said.backend != "http" and "contested" not in said.message)

    @property
    def why(self) -> str:
        return "nothing reported" if self.control is None else self.control.message or self.control.result


def _parts(node: NodeOverview) -> tuple[_Part, _Part]:
    cpu_wanted = node.cpu_cap_w is not None or node.cpu_cap_pct is not None
    gpu_wanted = node.gpu_cap_w is not None or node.gpu_cap_pct is not None
    return (
        _Part("CPU", cap(node, "CPU"), cpu_wanted, node.cpu_at_full, node.cpu_control),
        _Part("GPU", cap(node, "GPU"), gpu_wanted, node.gpu_at_full, node.gpu_control),
    )


def _reported_s(node: NodeOverview) -> float:
    """When its agent last spoke: by the API server's clock where that is known, whatever the node's own says."""
    return node.agent_written_at_s or node.agent_at_s or 0.0


def _silent(node: NodeOverview, now_s: float, limits: FindingThresholds) -> bool:
    return node.agent_at_s is None or now_s - _reported_s(node) > limits.agent_silent_s


def _agents_log(node: NodeOverview) -> str:
    where = f"--field-selector spec.nodeName={node.name}"
    return f"kubectl get pods -A -o wide -l app.kubernetes.io/component=agent {where}"
