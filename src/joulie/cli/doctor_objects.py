"""What is wrong with nodes, twins, labels, hardware, telemetry and pins. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from joulie.cli.context import Cluster
from joulie.cli.doctor_look import Look
from joulie.cli.pinning import in_force
from joulie.cli.status_view import Seen, limits, seen
from joulie.cli.style import plural
from joulie.control.classify import is_performance_only
from joulie.model.names import DRAINING, DRAINING_LABEL
from joulie.model.snapshot import Pin, Pod
from joulie.overview.findings import Finding, age, node_findings
from joulie.overview.nodes import NodeView
from joulie.physics.hardware import machine_of

FUTURE_S = 5.0
STUCK_S = 3600.0
OPERATOR = "deployment/joulie-operator"
NOT_THE_INSTALLATION = ("hot", "rack-full")  # the load's doing: status and the page show them
CATALOGUE_STEP = "joulie catalogue; HARDWARE_CATALOG_PATH adds a model, labels joulie.io/hw.* name one"


def object_findings(found: Look, cluster: Cluster) -> Iterator[Finding]:
    view = seen(cluster)
    holding = _performance_pods(cluster)
    for node in view.nodes.values():
        for finding in _node(node, cluster):
            # `status` sends people here; here they are sent on.
            here = finding.next_step.startswith("joulie doctor")
            yield replace(finding, next_step=f"kubectl -n {found.namespace} logs {OPERATOR}") if here else finding
        yield from _drain(node, holding.get(node.name, ()), cluster.now_s)
    yield from _hardware(view, cluster)
    yield from _scope(view, cluster)
    yield from _telemetry(view)
    yield from _pins(view, cluster)
    yield from _orphans(cluster)
    for kind, name, reason in found.live.broken:
        step = f"kubectl get {kind.lower()} {name} -o yaml"
        yield Finding(
            "broken-object", "warning", "", f"{kind}/{name} cannot be read, it counts as absent: {reason}", step
        )


def _node(node: NodeView, cluster: Cluster) -> Iterator[Finding]:
    for finding in node_findings(node, cluster.now_s, limits(cluster)):
        if finding.kind == "not-enforced" and "SIMULATE_ONLY" in finding.text:
            step = "to enforce: set SIMULATE_ONLY=false for the agents (helm: dryRun=false)"
            yield Finding("dry-run", "warning", node.name, "its agent runs with SIMULATE_ONLY: nothing is capped", step)
        elif finding.kind not in NOT_THE_INSTALLATION:
            yield finding
    if node.twin_at_s is not None and node.twin_at_s > cluster.now_s + FUTURE_S:
        text = (
            f"its twin was written {age(node.twin_at_s - cluster.now_s)} in the future: the operator's clock is ahead"
        )
        yield Finding("clock-skew", "warning", node.name, text, "timedatectl status, on the operator's machine")
    if node.agent_at_s is not None and node.agent_at_s > cluster.now_s + FUTURE_S:
        text = f"its agent reported {age(node.agent_at_s - cluster.now_s)} in the future: the node's clock is ahead"
        yield Finding("clock-skew", "warning", node.name, text, f"timedatectl status, on {node.name}")
    yield from _labels(node, cluster)


def _labels(node: NodeView, cluster: Cluster) -> Iterator[Finding]:
    """The labels are what kube-scheduler itself reads, so they must say what the twin says."""
    key = cluster.settings.plan.power_profile_label
    labels = cluster.snapshot.nodes[node.name].labels
    if node.scope in ("out", "reserved") and not node.has_twin and (key in labels or DRAINING_LABEL in labels):
        text = "is not managed, but still has Joulie's labels"
        yield Finding("labels-out-of-step", "warning", node.name, text, _unlabel(node.name, key))
    if node.scope != "in" or not node.has_twin or not node.profile:
        return
    twin = cluster.snapshot.twins[node.name]
    scheduling = twin.spec.scheduling if twin.spec else None
    draining = "true" if scheduling is not None and scheduling.draining else "false"
    wrong = [
        f"{label}={labels.get(label, '(none)')} instead of {wanted}"
        for label, wanted in ((key, node.profile), (DRAINING_LABEL, draining))
        if labels.get(label, "false" if label == DRAINING_LABEL else None) != wanted
    ]
    if wrong:
        step = "the operator repairs it with its next decision; if not: who else writes this label?"
        yield Finding("labels-out-of-step", "warning", node.name, f"its label says {', '.join(wrong)}", step)


def _unlabel(node: str, key: str) -> str:
    return f"kubectl label node {node} {key}- {DRAINING_LABEL}-"


def _performance_pods(cluster: Cluster) -> dict[str, list[Pod]]:
    """By node; gathered once, because there are many pods."""
    label = cluster.settings.plan.power_profile_label
    found: dict[str, list[Pod]] = {}
    for pod in cluster.snapshot.pods:
        if pod.node and not pod.finished and is_performance_only(pod, label):
            found.setdefault(pod.node, []).append(pod)
    return found


def _drain(node: NodeView, holding: Sequence[Pod], now_s: float) -> Iterator[Finding]:
    newest_s = max((pod.scheduled_at_s or 0.0 for pod in holding), default=0.0)
    if node.state == DRAINING and newest_s and now_s - newest_s > STUCK_S:
        named = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in holding)[:3])
        text = f"drains, held by {plural(len(holding), 'performance pod')} for {age(now_s - newest_s)}: {named}"
        yield Finding("drain-stuck", "warning", node.name, text, f"joulie explain node {node.name}")


def _hardware(view: Seen, cluster: Cluster) -> Iterator[Finding]:
    snapshot, settings = cluster.snapshot, cluster.settings.hardware
    for node in view.nodes.values():
        if not node.managed:
            continue
        hardware = snapshot.hardware.get(node.name)
        machine = machine_of(snapshot.nodes[node.name], hardware, settings, cluster.catalogue)
        quality = hardware.status.quality if hardware and hardware.status else None
        if machine.family.startswith("unknown/"):
            text = "its hardware is unknown, so its power is a guess from the number of cores"
            yield Finding("hardware-unknown", "warning", node.name, text, CATALOGUE_STEP)
        elif quality is not None and quality.overall in ("heuristic", "unavailable"):
            why = "; ".join(quality.warnings or ()) or "not all of it could be discovered"
            text = f"its hardware is known by {quality.overall} means only: {why}"
            yield Finding("hardware-heuristic", "warning", node.name, text, CATALOGUE_STEP)


def _scope(view: Seen, cluster: Cluster) -> Iterator[Finding]:
    if not view.cluster.nodes and view.nodes:
        selector = cluster.settings.plan.node_selector.text
        text = f"no node is managed: {selector!r} matches none of {plural(len(view.nodes), 'node')}"
        yield Finding("scope-empty", "warning", "", text, "kubectl label node NAME joulie.io/managed=true")


def _telemetry(view: Seen) -> Iterator[Finding]:
    sources = view.cluster.sources
    static, known = sources.get("static", 0), sum(n for name, n in sources.items() if name != "none")
    if not static:
        return
    how = "of all nodes" if static == known else f"of {static} of {known} nodes"
    text = f"power {how} is estimated from caps and requests, not measured"
    step = "set OPERATOR_NODE_POWER_SOURCE=prometheus (Kepler) or http"
    yield Finding("telemetry-static", "warning", "", text, step)


def _pins(view: Seen, cluster: Cluster) -> Iterator[Finding]:
    alive: dict[str, list[Pin]] = {}
    for pin in sorted(cluster.snapshot.pins, key=lambda pin: pin.name):
        if pin.expires_at_s is not None and pin.expires_at_s <= cluster.now_s:
            text = f"NodePowerProfile/{pin.name} expired {age(cluster.now_s - pin.expires_at_s)} ago and does nothing"
            yield Finding("pin-expired", "warning", pin.node, text, f"kubectl delete nodepowerprofile {pin.name}")
        else:
            alive.setdefault(pin.node, []).append(pin)
    for node, pins in alive.items():
        scope = view.nodes[node].scope if node in view.nodes else "gone"
        if scope in ("out", "reserved", "gone"):
            place = {"out": "out of scope", "reserved": "reserved", "gone": "not in the cluster"}[scope]
            text = f"NodePowerProfile/{pins[0].name} has no effect: its node is {place}"
            yield Finding("pin-without-effect", "warning", node, text, f"joulie unpin {node} --all")
        elif len(pins) > 1:
            chosen = in_force(pins, node, cluster.now_s)
            others = ", ".join(pin.name for pin in pins if pin is not chosen)
            text = f"has {len(pins)} pins; the oldest, {chosen.name if chosen else ''}, counts, and not {others}"
            yield Finding("pin-conflict", "warning", node, text, f"joulie unpin {node}, or --all")


def _orphans(cluster: Cluster) -> Iterator[Finding]:
    for name in sorted(set(cluster.snapshot.twins) - set(cluster.snapshot.nodes)):
        text = "has a twin, but is no node of the cluster any more"
        yield Finding("twin-orphan", "warning", name, text, f"kubectl delete nodetwin {name}")
