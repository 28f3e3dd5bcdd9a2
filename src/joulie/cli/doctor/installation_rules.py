"""Rules about the installation itself, and how findings are put together. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from joulie import __version__
from joulie.cli.context import live_cluster
from joulie.cli.doctor.object_rules import object_findings
from joulie.cli.doctor.survey import InstallationSurvey, RunningComponent
from joulie.cli.installation.leftovers import removal
from joulie.cli.installation.operator_lease import CLEANUP
from joulie.cli.live import SKEW_WARNING_S
from joulie.cli.options import ObjectSource
from joulie.cli.style import plural
from joulie.cluster.crds.definitions import crds
from joulie.model.names import DRAINING_LABEL
from joulie.overview.findings import Finding, Severity, age, order

SUPPORTED = ((1, 34), (1, 36))  # the three newest minors
SKEW_FAULT_S = 60.0
LEASE_SKEW_S = 30.0  # a renewal is written within seconds of its time stamp
SETTLED_S = 10.0  # pods bound this soon after the extender's start may have been scored before it
NAME = "joulie-operator"
ONE_ONLY = "helm list -A; keep only one installation of Joulie"
APPLY_DEFINITIONS = "joulie crds | kubectl apply -f -"


def examine(found: InstallationSurvey, source: ObjectSource) -> list[Finding]:
    """All findings: faults first, then warnings, then hints. Consequences of another finding are left out.

    Ages are computed with the server's clock if the local clock is wrong.
    """
    if found.server_s is not None and abs(skew_s := found.here_s - found.server_s) > SKEW_WARNING_S:
        found.live = live = replace(found.live, ahead_s=skew_s)
    else:
        live = replace(found.live, ahead_s=0.0)
    cluster = live_cluster(source, live)
    now_s = cluster.now_s
    everything = [
        *_definitions(found),
        *_server(found),
        *_forbidden(found),
        *_leadership(found, now_s),
        *_components(found),
        *_operator_settings(found, cluster.unusable, now_s),
        *_scheduler(found),
        *_extender(found),
        *_admission(found, cluster.settings.plan.power_profile_label),
        *object_findings(found, cluster),
        *_leftovers(found, cluster.settings.plan.power_profile_label),
    ]
    kinds = {one.kind for one in everything}
    hidden = {kind for cause, effects in _CONSEQUENCES.items() if cause in kinds for kind in effects}
    return sorted((one for one in everything if one.kind not in hidden), key=order)


# Consequences that disappear once the cause is fixed, and that have no fix of their own.
_CONSEQUENCES: dict[str, tuple[str, ...]] = {
    "namespace-deleted": (
        "no-leader",
        "component-not-ready",
        "component-rights",
        "extender-down",
        "twin-stale",
        "twin-missing",
        "agent-silent",
        "labels-out-of-step",
        "left-behind",
        "admission-policy",
    ),
    "no-leader": ("budget-lease", "budget-unanswered"),
    "left-behind": ("labels-out-of-step", "twin-stale", "twin-missing", "agent-silent", "admission-policy"),
    "dry-run": ("admission-policy",),  # nothing is enforced, so pods need no protection
}


def cluster_finding(kind: str, severity: Severity, text: str, next_step: str) -> Finding:
    """A finding about the installation rather than a node."""
    return Finding(kind, severity, "", text, next_step)


def _install(found: InstallationSurvey, namespace: str = "") -> str:
    where = namespace or found.namespace
    return f"helm upgrade --install joulie deploy/chart/joulie -n {where} --reset-then-reuse-values"


def _definitions(found: InstallationSurvey) -> Iterator[Finding]:
    installed = found.definitions or {}
    missing = [name for name, body in installed.items() if body is None]
    if missing:
        yield cluster_finding("crd-missing", "fault", f"the cluster lacks {', '.join(missing)}", APPLY_DEFINITIONS)
    for definition in crds():
        name, body = definition["metadata"]["name"], installed.get(definition["metadata"]["name"])
        if body is None:
            continue
        version, theirs = _version(definition), _version(body, _version(definition)["name"])
        if not theirs.get("served"):
            text = f"{name} does not match joulie {__version__}: the API server does not serve {version['name']}"
            yield cluster_finding("crd-outdated", "fault", text, APPLY_DEFINITIONS)
            continue
        wanted, served = _fields(_schema(version)), _fields(_schema(theirs))
        if "status" in (version.get("subresources") or {}):
            wanted["the status subresource"] = ("subresource",)
        if "status" in (theirs.get("subresources") or {}):
            served["the status subresource"] = ("subresource",)
        lacks = sorted(path for path, kind in wanted.items() if served.get(path) != kind)
        if lacks:
            some = ", ".join(lacks[:3]) + (f" and {len(lacks) - 3} more" if len(lacks) > 3 else "")
            text = f"{name} does not match joulie {__version__}: missing or different: {some}"
            yield cluster_finding("crd-outdated", "fault", text, APPLY_DEFINITIONS)


def _version(definition: dict[str, Any], name: str = "") -> dict[str, Any]:
    """The version of that name, or else the storage version; empty if there is none."""
    versions: list[dict[str, Any]] = definition["spec"]["versions"]
    return next((v for v in versions if (v["name"] == name if name else v.get("storage"))), {})


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return dict((version.get("schema") or {}).get("openAPIV3Schema") or {})


def _fields(schema: dict[str, Any], path: str = "") -> dict[str, tuple[Any, ...]]:
    """Every field by its path, with its type and enum values."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, part in (schema.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        here = f"{path}.{name}".lstrip(".")
        found[here] = (part.get("type"), *part.get("enum", ()))
        found |= _fields(part, here)
        found |= _fields(part.get("items") or {}, f"{here}[]")
    return found


def _server(found: InstallationSurvey) -> Iterator[Finding]:
    oldest, newest = SUPPORTED
    if found.version is not None and not oldest <= found.version <= newest:
        ours = " to ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        text = f"Kubernetes {found.version[0]}.{found.version[1]}; Joulie {__version__} is tested with {ours}"
        yield cluster_finding("kubernetes-version", "warning", text, "kubectl version")
    if found.server_s is not None and abs(skew_s := found.here_s - found.server_s) > SKEW_WARNING_S:
        word = "ahead of" if skew_s > 0 else "behind"
        text = f"this machine's clock is {age(abs(skew_s))} {word} the API server's, so ages shown here would be wrong"
        severity: Severity = "fault" if abs(skew_s) > SKEW_FAULT_S else "warning"
        yield cluster_finding("clock-skew", severity, text, "timedatectl status")


def _forbidden(found: InstallationSurvey) -> Iterator[Finding]:
    for line in found.refused:
        yield cluster_finding("forbidden", "warning", line, "kubectl auth can-i --list")


def _leadership(found: InstallationSurvey, now_s: float) -> Iterator[Finding]:
    if found.live.leases is None:
        return
    leading = [lease for lease in found.live.leases if lease.leads(now_s)]
    ahead = [lease for lease in leading if lease.silent_s(now_s) < -SKEW_WARNING_S]
    for lease in ahead:
        text = (
            f"the lease of {lease.holder} in {lease.namespace} is from {age(-lease.silent_s(now_s))} in the future: "
            "its clock is ahead, or it is gone without being noticed"
        )
        step = (
            f"timedatectl status on its machine; if it no longer runs: kubectl -n {lease.namespace} delete lease {NAME}"
        )
        yield cluster_finding("clock-skew", "fault", text, step)
    for lease in leading:
        if abs(lease.ahead_s) > LEASE_SKEW_S:
            word = "ahead of" if lease.ahead_s > 0 else "behind"
            text = f"the clock of the leader {lease.holder} is {age(abs(lease.ahead_s))} {word} the API server's"
            yield cluster_finding("clock-skew", "warning", text, "timedatectl status on the operator's machine")
    certain = [lease for lease in leading if lease not in ahead]
    if len(certain) > 1:
        named = ", ".join(f"{lease.holder} in {lease.namespace}" for lease in certain)
        text = f"{len(certain)} operators lead at once and undo each other's writes: {named}"
        yield cluster_finding("several-operators", "fault", text, ONE_ONLY)
    elif len(installed := [one for one in found.workloads or () if one.component == "operator" and one.wanted]) > 1:
        named = ", ".join(f"{one.namespace}/{one.name}" for one in installed)
        text = f"{len(installed)} operators are installed, but there can be only one: {named}"
        yield cluster_finding("several-operators", "fault", text, ONE_ONLY)
    if any(not lease.holder.startswith(CLEANUP) for lease in leading):
        return
    if leading:
        text = f"no operator leads: {leading[0].holder} holds the lease until the cleanup is complete"
        step = f"joulie cleanup --namespace {leading[0].namespace} to finish it, then {_install(found)}"
        yield cluster_finding("no-leader", "fault", text, step)
        return
    step = f"kubectl -n {found.namespace} get pods -l app.kubernetes.io/component=operator"
    held = [lease for lease in found.live.leases if lease.holder and lease.renewed_at_s is not None]
    if not found.live.leases and found.workloads is not None and not found.workloads:
        text, step = "no operator leads: Joulie is not installed", f"{_install(found)} --create-namespace"
    elif not found.live.leases:
        text = f"no operator leads: there is no lease {NAME}, so none has ever run"
    elif held:
        last = max(held, key=lambda lease: lease.renewed_at_s or 0.0)
        text = f"no operator leads: {last.holder} has been silent for {age(last.silent_s(now_s))}"
    else:
        text = "no operator leads: the last one shut down cleanly and none took over"
    yield cluster_finding("no-leader", "fault", text, step)


def _components(found: InstallationSurvey) -> Iterator[Finding]:
    # There is one DaemonSet per kind of node, and some kinds may have no nodes.
    busy = {one.component for one in found.workloads or () if one.wanted}
    idle = {"operator", "agent"} - busy
    for one in found.workloads or ():
        if one.component == "extender" and not one.ready:
            continue  # reported by `_extender`
        place = f"kubectl -n {one.namespace} describe {one.kind.lower()} {one.name}"
        if one.ready < one.wanted:
            text = (
                f"{one.kind} {one.namespace}/{one.name} ({one.component}): {one.ready} of {one.wanted} pods are ready"
            )
            yield cluster_finding("component-not-ready", "fault", text, place)
        elif one.wanted == 0 and one.component in idle:
            text = f"{one.kind} {one.namespace}/{one.name} ({one.component}) is scaled to zero"
            yield cluster_finding("component-not-ready", "fault", text, place)
    missing: dict[tuple[str, str], list[str]] = {}
    for workload, permission in found.missing_permissions or ():
        missing.setdefault((workload.namespace, workload.account), []).append(str(permission))
    for (namespace, account), permissions in missing.items():
        some = ", ".join(permissions[:4]) + (f" and {len(permissions) - 4} more" if len(permissions) > 4 else "")
        text = f"{namespace}/{account} is not allowed to {some}"
        yield cluster_finding("component-rights", "fault", text, _install(found, namespace))
    yield from _versions(found, [*(found.workloads or ()), *(found.pods or ())])


def _versions(found: InstallationSurvey, running: list[RunningComponent]) -> Iterator[Finding]:
    known = {one.version for one in running if one.version}
    if len(known) > 1 or known - {__version__}:
        text = f"versions differ: {', '.join(sorted(known))} in the cluster, {__version__} here"
        newest = max(known, key=_numbers)
        is_older_here = _numbers(__version__) < _numbers(newest)
        steps = [f"pip install joulie=={newest}"] if is_older_here else []
        steps += [] if known == {newest} and is_older_here else [_install(found)]
        step = "; ".join(steps)
        yield cluster_finding("mixed-versions", "warning", text, step)


def _numbers(version: str) -> tuple[tuple[int, ...], str]:
    """0.10.0 is newer than 0.9.0."""
    return tuple(int(number) for number in re.findall(r"\d+", version)), version


def _scheduler(found: InstallationSurvey) -> Iterator[Finding]:
    """Pods were bound since the extender started, but no scheduler called it.

    Right after an installation that is normal: a scheduler has to be configured to call it. The chart's own one is.
    """
    if found.extender_requests != 0:
        return
    starts = [pod.started_at_s for pod in found.pods or () if pod.component == "extender" and pod.ready]
    since_s = max((start for start in starts if start is not None), default=None)
    if since_s is None:
        return
    bound = [p for p in found.live.snapshot.pods if (p.scheduled_at_s or 0.0) > since_s + SETTLED_S]
    if not bound:
        return
    text = f"{plural(len(bound), 'pod')} bound since the extender started, but no scheduler has ever called it"
    if any(one.component == "scheduler" and one.ready for one in found.workloads or ()):
        step = "set schedulerName: joulie-scheduler in the pods that should use it"
        yield cluster_finding("scheduler-not-asking", "warning", text, step)
        return
    step = (
        "to steer pods: run kube-scheduler with the --config of deploy/scheduler, and check that it reaches urlPrefix"
    )
    yield cluster_finding("scheduler-not-asking", "hint", text, step)


def _operator_settings(found: InstallationSurvey, unusable: str, now_s: float) -> Iterator[Finding]:
    """A fault if the operator cannot start with them; a warning if it leads, with a plug-in that is missing here."""
    severity: Severity = "warning" if found.live.leader(now_s) else "fault"
    if unusable:
        text = f"the operator's settings are invalid here: {unusable}"
        step = f"kubectl -n {found.namespace} logs deployment/joulie-operator; plug-ins have to be installed here too"
        yield cluster_finding("operator-settings", severity, text, step)


def _extender(found: InstallationSurvey) -> Iterator[Finding]:
    """A scheduler reaches the extender through its Service, which needs a ready pod."""
    services = found.extender_services or ()
    pods = [pod for pod in found.pods or () if pod.component == "extender"]
    workloads = [one for one in found.workloads or () if one.component == "extender"]
    ready = [pod for pod in pods if pod.ready and f"{pod.namespace}/{pod.name}" not in found.dead_extenders]
    # A Deployment's status is outdated if its controller is dead, so pods are preferred.
    up = bool(ready) if found.pods is not None else any(one.ready for one in workloads)
    if not up and (services or workloads) and found.installed:
        text, namespace = "no extender is up", next((one.namespace for one in workloads), found.namespace)
        if found.dead_extenders:
            text += f": {', '.join(found.dead_extenders)} refuses connections"
        elif not workloads:
            text += f": {', '.join(f'Service {space}/{name}' for space, name, _ in services)} exists, but no Deployment"
        else:
            text += f": {workloads[0].name} wants {plural(workloads[0].wanted, 'pod')}, but none is ready"
        text += "; pods stay pending, or with `ignorable: true` are scheduled without Joulie"
        step = f"kubectl -n {namespace} get pods -l app.kubernetes.io/component=extender; {_install(found, namespace)}"
        yield cluster_finding("extender-down", "fault", text, step)
    for namespace, name, selector in services if ready else ():
        if not any(pod.namespace == namespace and selector.items() <= pod.labels.items() for pod in ready):
            text = f"Service {namespace}/{name} selects no ready extender pod"
            step = f"kubectl -n {namespace} describe service {name}; {_install(found, namespace)}"
            yield cluster_finding("extender-unreachable", "fault", text, step)


def _admission(found: InstallationSurvey, label: str) -> Iterator[Finding]:
    """The admission policy that keeps performance pods off eco nodes, if the API server supports it."""
    if found.policies is None or not found.installed:
        return
    step = f"{_install(found)} --set performanceAffinity.enabled=true"
    if not found.policies:
        risk = "a performance pod can land on an eco node when an `ignorable` extender times out"
        if not found.policies_are_served:
            text = f"the API server does not serve MutatingAdmissionPolicy v1 (needs Kubernetes 1.36): {risk}"
            step = "add the affinity of docs/how-to/scheduler.md to performance pods"
            yield cluster_finding("admission-policy", "hint", text, step)
        else:
            yield cluster_finding("admission-policy", "hint", f"the admission policy is not installed: {risk}", step)
        return
    bound = {(binding.get("spec") or {}).get("policyName") for binding in found.bindings}
    active = True
    for policy in found.policies:
        name, spec = policy["metadata"]["name"], str(policy.get("spec"))
        if name not in bound:
            active = False
            yield cluster_finding("admission-policy", "warning", f"the admission policy {name} has no binding", step)
        elif label not in spec:
            text = f"the admission policy {name} uses another label than POWER_PROFILE_LABEL={label}"
            yield cluster_finding("admission-policy", "fault", text, step)
        elif DRAINING_LABEL not in spec:
            text = (
                f"the admission policy {name} is outdated and ignores draining nodes: "
                "a kubelet that restarts there evicts running performance pods"
            )
            yield cluster_finding("admission-policy-outdated", "fault", text, step)
            active = False
    if found.admission is not None and found.admission.refused:
        text = f"the API server rejects performance pods: {found.admission.refused}"
        yield cluster_finding("admission-policy-failing", "fault", text, step)
    elif found.admission is not None and active and label not in str(found.admission.terms):
        text = "the admission policy has no effect: a performance pod would get no affinity"
        yield cluster_finding("admission-policy-failing", "fault", text, step)


def _leftovers(found: InstallationSurvey, label: str) -> Iterator[Finding]:
    """Remains of an installation that no longer exists."""
    labelled = [name for name, node in found.live.snapshot.nodes.items() if {label, DRAINING_LABEL} & set(node.labels)]
    parts = [plural(len(found.live.snapshot.twins), "NodeTwin")] if found.live.snapshot.twins else []
    parts += [f"labels of {plural(len(labelled), 'node')}"] if labelled else []
    parts += [str(one) for one in found.cluster_wide]
    if not parts:
        return
    some = ", ".join(parts[:6]) + (f" and {len(parts) - 6} more" if len(parts) > 6 else "")
    remove = "joulie cleanup --yes" + (f"; {removal(found.cluster_wide)}" if found.cluster_wide else "")
    if found.namespace_state in ("deleted", "terminating"):
        was = "has been deleted" if found.namespace_state == "deleted" else "is being deleted"
        text = f"the namespace {found.namespace} {was}, including operator, agents and extender; left behind: {some}"
        step = f"to install it again: {_install(found)} --create-namespace; to remove the rest: {remove}"
        yield cluster_finding("namespace-deleted", "fault", text, step)
    elif not found.installed:
        yield cluster_finding("left-behind", "warning", f"Joulie is not installed but left behind: {some}", remove)
