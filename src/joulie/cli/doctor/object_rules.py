"""Rules about nodes, twins, labels, hardware, telemetry and pins. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from joulie.cli.context import LoadedCluster
from joulie.cli.doctor.budget_rules import budget_rules
from joulie.cli.doctor.survey import InstallationSurvey
from joulie.cli.doctor.telemetry_rules import power_findings, profile_findings, unmeasured
from joulie.cli.style import kilowatts, plural
from joulie.cli.views.overview import Overview, limits, overview_of
from joulie.control.classify import is_performance_only
from joulie.control.pins import pin_in_force
from joulie.model.names import DRAINING, DRAINING_LABEL, ECO
from joulie.model.snapshot import Pin, Pod
from joulie.overview.findings import EARLIER_ROUTE, Finding, age, node_findings, operator_clock
from joulie.overview.nodes import NodeOverview
from joulie.physics.hardware import machine_of
from joulie.settings import PlanSettings

STUCK_S = 3600.0
OPERATOR = "deployment/joulie-operator"
CAUSED_BY_LOAD = ("hot", "rack-full")  # caused by load: status and the dashboard show them
CATALOGUE_STEP = "joulie catalogue; add a model with HARDWARE_CATALOG_PATH, or name one with labels joulie.io/hw.*"


def object_findings(found: InstallationSurvey, cluster: LoadedCluster) -> Iterator[Finding]:
    view = overview_of(cluster)
    holding = _performance_pods(cluster)
    log = f"kubectl -n {found.namespace} logs {OPERATOR}"
    yield from operator_clock(view.nodes.values(), cluster.now_s)
    for node in view.nodes.values():
        for finding in _node(node, cluster):
            # `status` refers people to `doctor`; here the next step is the log.
            here = finding.next_step.startswith("joulie doctor")
            finding = _simulated(finding) if found.dry_run else finding  # noqa: PLW2901
            yield replace(finding, next_step=log) if here else finding
        yield from _drain(node, holding.get(node.name, ()), cluster.now_s)
        yield from _performance_on_eco(node, holding.get(node.name, ()), found)
    yield from _hardware(view, cluster)
    yield from _scope(view, cluster)
    yield from _budget(view)
    yield from budget_rules(found, cluster, view, log)
    missing = unmeasured(view.nodes.values())
    measured = sum(number for name, number in view.cluster.sources.items() if name != "none")
    yield from power_findings(found.power, missing, measured, log)
    yield from profile_findings(found.live.profiles, cluster.snapshot.nodes)
    yield from _restores(view, found)
    yield from _pins(view, cluster)
    yield from _orphans(cluster)
    for kind, name, reason in found.live.undecodable:
        step = f"kubectl get {kind.lower()} {name} -o yaml"
        yield Finding(
            "broken-object", "warning", "", f"{kind}/{name} cannot be decoded and counts as absent: {reason}", step
        )


def _node(node: NodeOverview, cluster: LoadedCluster) -> Iterator[Finding]:
    for finding in node_findings(node, cluster.now_s, limits(cluster)):
        if finding.kind not in CAUSED_BY_LOAD:
            yield finding
    yield from _labels(node, cluster)


def _simulated(finding: Finding) -> Finding:
    """In a dry run nothing is enforced, so what would fail later is only a hint."""
    if finding.kind not in ("not-enforced", "cap-contested", "cannot-cap"):
        return finding
    return replace(finding, kind="dry-run", severity="hint", text=f"dry run; otherwise: {finding.text}")


def _performance_on_eco(node: NodeOverview, pods: Sequence[Pod], found: InstallationSurvey) -> Iterator[Finding]:
    """Pods bound past the extender: by another scheduler, by hand, or while the extender timed out."""
    if not node.managed or node.state != ECO or not pods:
        return
    named = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in pods)[:3])
    text = f"is eco but runs {plural(len(pods), 'performance pod')} that the extender did not admit: {named}"
    step = "the operator lifts the cap with its next decision"
    if found.policies is not None and not found.policies:
        step += "; to prevent it: the admission policy of docs/how-to/scheduler.md"
    yield Finding("performance-on-eco", "fault", node.name, text, step)


def _budget(view: Overview) -> Iterator[Finding]:
    budget_w, power_w = view.cluster.facts.budget_w, view.cluster.power_w
    if budget_w and power_w > budget_w:
        text = f"the nodes draw {kilowatts(power_w)}, more than POWER_BUDGET_WATTS allows ({kilowatts(budget_w)})"
        yield Finding(
            "budget-exceeded", "warning", "", text, "joulie top --sort power; docs/runbooks/budget-exceeded.md"
        )


def _restores(view: Overview, found: InstallationSurvey) -> Iterator[Finding]:
    """Devices that an agent could not restore, according to its latest Event about the node."""
    for name, (event_s, message) in sorted(found.unrestored.items()):
        node = view.nodes.get(name)
        controls = [] if node is None else [one for one in (node.cpu_control, node.gpu_control) if one is not None]
        held_again = controls and all(one.result == "applied" and (one.said_at_s or 0.0) > event_s for one in controls)
        if held_again and not message.startswith(EARLIER_ROUTE):
            continue  # caps were applied since, so the agent controls these devices again
        step = f"joulie agent restore, on {name}; kubectl describe node {name}"
        # A node that has left the cluster is no fault of this installation, and no test of it should fail for that.
        yield Finding("restore-pending", "warning" if node is None else "fault", name, message, step)


def _labels(node: NodeOverview, cluster: LoadedCluster) -> Iterator[Finding]:
    """kube-scheduler reads the labels, so they must agree with the twin."""
    key = cluster.settings.plan.power_profile_label
    labels = cluster.snapshot.nodes[node.name].labels
    if node.scope in ("out", "reserved") and not node.has_twin and (key in labels or DRAINING_LABEL in labels):
        text = "is not managed but still has Joulie's labels"
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
        step = "the operator repairs it with its next decision; if not, something else writes this label"
        yield Finding("labels-out-of-step", "warning", node.name, f"has label {', '.join(wrong)}", step)


def _unlabel(node: str, key: str) -> str:
    return f"kubectl label node {node} {key}- {DRAINING_LABEL}-"


def _performance_pods(cluster: LoadedCluster) -> dict[str, list[Pod]]:
    """Performance-only pods by node, collected in one pass because there may be many pods."""
    label = cluster.settings.plan.power_profile_label
    found: dict[str, list[Pod]] = {}
    for pod in cluster.snapshot.pods:
        if pod.node and not pod.finished and is_performance_only(pod, label):
            found.setdefault(pod.node, []).append(pod)
    return found


def _drain(node: NodeOverview, holding: Sequence[Pod], now_s: float) -> Iterator[Finding]:
    newest_s = max((pod.scheduled_at_s or 0.0 for pod in holding), default=0.0)
    if node.state == DRAINING and newest_s and now_s - newest_s > STUCK_S:
        named = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in holding)[:3])
        text = f"is draining, held for {age(now_s - newest_s)} by {plural(len(holding), 'performance pod')}: {named}"
        yield Finding("drain-stuck", "warning", node.name, text, f"joulie explain node {node.name}")


def _hardware(view: Overview, cluster: LoadedCluster) -> Iterator[Finding]:
    snapshot, settings = cluster.snapshot, cluster.settings.hardware
    for node in view.nodes.values():
        if not node.managed or node.doubt:  # doubtful hardware is a finding of its own
            continue
        hardware = snapshot.hardware.get(node.name)
        machine = machine_of(snapshot.nodes[node.name], hardware, settings, cluster.catalogue)
        quality = hardware.status.quality if hardware and hardware.status else None
        if machine.family.startswith("unknown/"):
            text = "has unknown hardware, so its power is estimated from the number of cores"
            yield Finding("hardware-unknown", "warning", node.name, text, CATALOGUE_STEP)
        elif quality is not None and quality.overall in ("heuristic", "unavailable"):
            why = "; ".join(quality.warnings or ()) or "discovery was incomplete"
            text = f"has hardware data of quality {quality.overall} only: {why}"
            yield Finding("hardware-heuristic", "hint", node.name, text, CATALOGUE_STEP)


def _scope(view: Overview, cluster: LoadedCluster) -> Iterator[Finding]:
    if view.cluster.nodes or not view.nodes:
        return
    settings = cluster.settings.plan
    selector, twins = settings.node_selector, set(cluster.snapshot.twins) & set(view.nodes)
    matching = [name for name in view.nodes if selector.matches(cluster.snapshot.nodes[name].labels)]
    if matching:
        text = f"no node is managed: all {len(matching):,} nodes that {selector.text!r} matches are reserved"
        step = f"kubectl label node NAME {settings.reserved_label_key}-"
    else:
        text = f"no node is managed: {selector.text!r} matches none of {plural(len(view.nodes), 'node')}"
        step = f"kubectl label node NAME {selector.text}"
        if selector.text != PlanSettings().node_selector.text:
            step = f"kubectl get nodes --show-labels; fix NODE_SELECTOR (helm: managedNodes), or {step}"
    if twins:
        text += f"; {plural(len(twins), 'twin')} and their caps will be removed after the operator's grace period"
    wrong = bool(twins) or (not matching and selector.text != PlanSettings().node_selector.text)
    yield Finding("scope-empty", "fault" if wrong else "warning", "", text, step)


def _pins(view: Overview, cluster: LoadedCluster) -> Iterator[Finding]:
    alive: dict[str, list[Pin]] = {}
    for pin in sorted(cluster.snapshot.pins, key=lambda pin: pin.name):
        if pin.expires_at_s is not None and pin.expires_at_s <= cluster.now_s:
            text = f"NodePowerProfile/{pin.name} expired {age(cluster.now_s - pin.expires_at_s)} ago and has no effect"
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
            chosen = pin_in_force(pins, node, cluster.now_s)
            others = ", ".join(pin.name for pin in pins if pin is not chosen)
            text = f"has {len(pins)} pins; the oldest, {chosen.name if chosen else ''}, is in force, not {others}"
            yield Finding("pin-conflict", "warning", node, text, f"joulie unpin {node}, or --all")


def _orphans(cluster: LoadedCluster) -> Iterator[Finding]:
    for name in sorted(set(cluster.snapshot.twins) - set(cluster.snapshot.nodes)):
        text = "has a twin but is no longer a node of the cluster"
        yield Finding("twin-orphan", "warning", name, text, f"kubectl delete nodetwin {name}")
