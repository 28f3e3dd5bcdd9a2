"""What is wrong, from everything that was looked at: the installation here, its objects in `doctor_objects`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from joulie import __version__
from joulie.cli.context import live_cluster
from joulie.cli.doctor_look import Look, Running
from joulie.cli.doctor_objects import object_findings
from joulie.cli.lease_taking import CLEANUP
from joulie.cli.options import Source
from joulie.cli.style import plural
from joulie.cluster.crds import crds
from joulie.overview.findings import Finding, Severity, age

SUPPORTED = ((1, 34), (1, 36))  # the three newest minors
SKEW_WARNING_S, SKEW_FAULT_S = 5.0, 60.0
SETTLED_S = 10.0  # a pod bound so soon after the extender's start may have been scored before it
NAME = "joulie-operator"
ONE_ONLY = "helm list -A: keep one installation of Joulie"
APPLY_DEFINITIONS = "joulie crds | kubectl apply -f -"


def examine(found: Look, source: Source) -> list[Finding]:
    """Faults first, then warnings, those of one kind together; ages by the server's clock where ours is wrong."""
    if found.server_s is not None and abs(skew_s := found.here_s - found.server_s) > SKEW_WARNING_S:
        source = replace(source, now_s=source.now_s - skew_s)
    cluster = live_cluster(source, found.live)
    everything = [
        *_definitions(found),
        *_server(found),
        *_refused(found),
        *_leadership(found, source.now_s),
        *_components(found),
        *_operator_settings(found, cluster.unusable, source.now_s),
        *_scheduler(found),
        *_service(found),
        *_admission(found, cluster.settings.plan.power_profile_label),
        *object_findings(found, cluster),
    ]
    if any(one.kind == "dry-run" for one in everything):  # then nothing is promised to pods either
        everything = [one for one in everything if one.kind != "admission-policy"]
    return sorted(everything, key=lambda one: (one.severity != "fault", one.kind, one.node))


def whole(kind: str, severity: Severity, text: str, next_step: str) -> Finding:
    """A finding about the installation, not about a node."""
    return Finding(kind, severity, "", text, next_step)


def _install(found: Look, namespace: str = "") -> str:
    where = namespace or found.namespace
    return f"helm upgrade --install joulie deploy/chart/joulie -n {where} --reset-then-reuse-values"


def _definitions(found: Look) -> Iterator[Finding]:
    there = found.definitions or {}
    missing = [name for name, body in there.items() if body is None]
    if missing:
        yield whole("crd-missing", "fault", f"the cluster does not know {', '.join(missing)}", APPLY_DEFINITIONS)
    for definition in crds():
        name, body = definition["metadata"]["name"], there.get(definition["metadata"]["name"])
        if body is None:
            continue
        version, theirs = _version(definition), _version(body, _version(definition)["name"])
        if not theirs.get("served"):
            text = (
                f"{name} is another version than joulie {__version__}: the API server does not serve {version['name']}"
            )
            yield whole("crd-outdated", "fault", text, APPLY_DEFINITIONS)
            continue
        wanted, served = _fields(_schema(version)), _fields(_schema(theirs))
        if "status" in (version.get("subresources") or {}):
            wanted["a status of its own"] = ("subresource",)
        if "status" in (theirs.get("subresources") or {}):
            served["a status of its own"] = ("subresource",)
        lacks = sorted(path for path, kind in wanted.items() if served.get(path) != kind)
        if lacks:
            some = ", ".join(lacks[:3]) + (f" and {len(lacks) - 3} more" if len(lacks) > 3 else "")
            text = f"{name} is another version than joulie {__version__}: it lacks {some}, or has it otherwise"
            yield whole("crd-outdated", "fault", text, APPLY_DEFINITIONS)


def _version(definition: dict[str, Any], name: str = "") -> dict[str, Any]:
    """The one of that name, else the one that is stored; empty: there is none."""
    versions: list[dict[str, Any]] = definition["spec"]["versions"]
    return next((v for v in versions if (v["name"] == name if name else v.get("storage"))), {})


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return dict((version.get("schema") or {}).get("openAPIV3Schema") or {})


def _fields(schema: dict[str, Any], path: str = "") -> dict[str, tuple[Any, ...]]:
    """Every field by its path, with its type and what it may be: what two versions differ in."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, part in (schema.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        here = f"{path}.{name}".lstrip(".")
        found[here] = (part.get("type"), *part.get("enum", ()))
        found |= _fields(part, here)
        found |= _fields(part.get("items") or {}, f"{here}[]")
    return found


def _server(found: Look) -> Iterator[Finding]:
    oldest, newest = SUPPORTED
    if found.version is not None and not oldest <= found.version <= newest:
        ours = " to ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        text = f"Kubernetes {found.version[0]}.{found.version[1]}; Joulie {__version__} is tested with {ours}"
        yield whole("kubernetes-version", "warning", text, "kubectl version")
    if found.server_s is not None and abs(skew_s := found.here_s - found.server_s) > SKEW_WARNING_S:
        word = "ahead of" if skew_s > 0 else "behind"
        text = f"this machine's clock is {age(abs(skew_s))} {word} the API server's, so ages shown here are wrong"
        severity: Severity = "fault" if abs(skew_s) > SKEW_FAULT_S else "warning"
        yield whole("clock-skew", severity, text, "timedatectl status")


def _refused(found: Look) -> Iterator[Finding]:
    for line in found.refused:
        yield whole("forbidden", "warning", line, "kubectl auth can-i --list")


def _leadership(found: Look, now_s: float) -> Iterator[Finding]:
    if found.live.leases is None:
        return
    leading = [lease for lease in found.live.leases if lease.leads(now_s)]
    ahead = [lease for lease in leading if lease.silent_s(now_s) < -SKEW_WARNING_S]
    for lease in ahead:
        text = (
            f"the lease of {lease.holder} in {lease.namespace} is from {age(-lease.silent_s(now_s))} in the future: "
            "its clock is ahead, or it is gone and nobody can see that"
        )
        step = f"timedatectl status, where it runs; where it does not: kubectl -n {lease.namespace} delete lease {NAME}"
        yield whole("clock-skew", "fault", text, step)
    surely = [lease for lease in leading if lease not in ahead]
    if len(surely) > 1:
        named = ", ".join(f"{lease.holder} in {lease.namespace}" for lease in surely)
        text = f"{len(surely)} operators lead at once and undo each other's writes: {named}"
        yield whole("several-operators", "fault", text, ONE_ONLY)
    elif len(installed := [one for one in found.workloads or () if one.component == "operator" and one.wanted]) > 1:
        named = ", ".join(f"{one.namespace}/{one.name}" for one in installed)
        text = f"{len(installed)} operators are installed, and there can be one: {named}"
        yield whole("several-operators", "fault", text, ONE_ONLY)
    if any(not lease.holder.startswith(CLEANUP) for lease in leading):
        return
    if leading:
        text = f"no operator leads: {leading[0].holder} keeps the lease, and lets go of it when the cleanup is complete"
        step = f"joulie cleanup --namespace {leading[0].namespace} to finish it, or {_install(found)} afterwards"
        yield whole("no-leader", "fault", text, step)
        return
    step = f"kubectl -n {found.namespace} get pods -l app.kubernetes.io/component=operator"
    held = [lease for lease in found.live.leases if lease.holder and lease.renewed_at_s is not None]
    if not found.live.leases and found.workloads is not None and not found.workloads:
        text, step = "no operator leads: Joulie is not installed here", f"{_install(found)} --create-namespace"
    elif not found.live.leases:
        text = f"no operator leads: there is no lease {NAME}, so none has ever run"
    elif held:
        last = max(held, key=lambda lease: lease.renewed_at_s or 0.0)
        text = f"no operator leads: {last.holder} has been silent for {age(last.silent_s(now_s))}"
    else:
        text = "no operator leads: the last one ended in good order and none took over"
    yield whole("no-leader", "fault", text, step)


def _components(found: Look) -> Iterator[Finding]:
    # There is a DaemonSet for each kind of node, and there may be no node of a kind.
    busy = {one.component for one in found.workloads or () if one.wanted}
    idle = {"operator", "agent"} - busy
    for one in found.workloads or ():
        place = f"kubectl -n {one.namespace} describe {one.kind.lower()} {one.name}"
        if one.ready < one.wanted:
            text = (
                f"{one.kind} {one.namespace}/{one.name} ({one.component}): {one.ready} of {one.wanted} pods are ready"
            )
            yield whole("component-not-ready", "fault", text, place)
        elif one.wanted == 0 and one.component in idle:
            text = f"{one.kind} {one.namespace}/{one.name} ({one.component}) wants no pod at all"
            yield whole("component-not-ready", "fault", text, place)
    lacking: dict[tuple[str, str], list[str]] = {}
    for workload, right in found.missing_rights or ():
        lacking.setdefault((workload.namespace, workload.account), []).append(str(right))
    for (namespace, account), rights in lacking.items():
        some = ", ".join(rights[:4]) + (f" and {len(rights) - 4} more" if len(rights) > 4 else "")
        text = f"{namespace}/{account} is not allowed to {some}"
        yield whole("component-rights", "fault", text, _install(found, namespace))
    yield from _versions(found, [*(found.workloads or ()), *(found.pods or ())])


def _versions(found: Look, running: list[Running]) -> Iterator[Finding]:
    known = {one.version for one in running if one.version}
    if len(known) > 1 or known - {__version__}:
        text = f"versions differ: {', '.join(sorted(known))} in the cluster, {__version__} here"
        yield whole("mixed-versions", "warning", text, f"{_install(found)}; pip install joulie=={max(known)}")


def _scheduler(found: Look) -> Iterator[Finding]:
    """Pods that were bound since the extender runs, while nobody asked it."""
    if found.extender_requests != 0:
        return
    starts = [pod.started_at_s for pod in found.pods or () if pod.component == "extender" and pod.ready]
    since_s = max((start for start in starts if start is not None), default=None)
    if since_s is None:
        return
    bound = [p for p in found.live.snapshot.pods if (p.scheduled_at_s or 0.0) > since_s + SETTLED_S]
    if bound:
        text = f"{plural(len(bound), 'pod')} placed since the extender runs, and no scheduler has ever asked it"
        step = (
            "compare the scheduler's --config with deploy/scheduler: is the extender's urlPrefix there and reachable?"
        )
        yield whole("scheduler-not-asking", "fault", text, step)


def _operator_settings(found: Look, unusable: str, now_s: float) -> Iterator[Finding]:
    """The operator ends at once with them; or it knows a plug-in that this machine does not, and leads."""
    severity: Severity = "warning" if found.live.leader(now_s) else "fault"
    if unusable:
        text = f"the operator's settings cannot be used here: {unusable}"
        step = f"kubectl -n {found.namespace} logs deployment/joulie-operator; a plug-in has to be installed here too"
        yield whole("operator-settings", severity, text, step)


def _service(found: Look) -> Iterator[Finding]:
    """A scheduler reaches the extender by its Service, which has to lead to a pod that is ready."""
    ready = [pod for pod in found.pods or () if pod.component == "extender" and pod.ready]
    for namespace, name, selector in (found.extender_services or ()) if ready else ():
        if not any(pod.namespace == namespace and selector.items() <= pod.labels.items() for pod in ready):
            text = f"Service {namespace}/{name} leads to no extender that is ready: its selector matches none of them"
            step = f"kubectl -n {namespace} describe service {name}; {_install(found, namespace)}"
            yield whole("extender-unreachable", "fault", text, step)


def _admission(found: Look, label: str) -> Iterator[Finding]:
    """The promise to performance pods, where the API server can keep it."""
    if found.policies is None:
        return
    step = f"{_install(found)} --set performanceAffinity.enabled=true"
    if not found.policies:
        text = "no admission policy: performance pods can land on eco nodes while the extender is away"
        yield whole("admission-policy", "warning", text, step)
        return
    bound = {(binding.get("spec") or {}).get("policyName") for binding in found.bindings}
    for policy in found.policies:
        name = policy["metadata"]["name"]
        if name not in bound:
            yield whole("admission-policy", "warning", f"the admission policy {name} is bound to nothing", step)
        elif label not in str(policy.get("spec")):
            text = f"the admission policy {name} speaks of another label than POWER_PROFILE_LABEL={label}"
            yield whole("admission-policy", "fault", text, step)
