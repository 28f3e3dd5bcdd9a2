"""Everything that `doctor` checks, read once. What cannot be read is recorded and never stops the rest."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from joulie.cli.connection import FORBIDDEN, ClusterConnection, forbidden
from joulie.cli.doctor.permissions import Permission, needed
from joulie.cli.doctor.telemetry_rules import PowerSourceProbe, probe
from joulie.cli.installation.leftovers import ClusterWideObject, cluster_wide, namespace_state
from joulie.cli.installation.operator_lease import OperatorLease, operator_leases
from joulie.cli.installation.workloads import (
    ANY_COMPONENT,
    COMPONENT_LABEL,
    DEFINITIONS,
    SERVICES,
    VERSION_LABEL,
    WORKLOADS,
    selector_of,
)
from joulie.cli.live import LiveCluster, read_live
from joulie.cluster.crds.definitions import crds
from joulie.cluster.port import EVENTS, PODS, ClusterError, NotFoundError, Resource
from joulie.errors import InputError
from joulie.model.names import BUDGET_LEASE, WATTS_RESOURCE
from joulie.model.rfc3339 import readable_time_s
from joulie.model.tiers import MEASURED
from joulie.overview.findings import SIMULATED
from joulie.settings import OperatorSettings, load

T = TypeVar("T")

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy")
BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"
)
DEFAULT_NAMESPACE = "joulie-system"
DRY_RUN_ATTEMPTS, DRY_RUN_INTERVAL_S = 6, 2.0
METRICS_PORT = {"extender": 9877, "operator": 8081}
SERVICE_PORT = {"extender": 9876}
_REQUESTS = re.compile(rb"^joulie_scheduler_(?:filter|prioritize)_requests_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class RunningComponent:
    """A workload or a pod of one of Joulie's components."""

    kind: str
    namespace: str
    name: str
    component: str
    wanted: int
    ready: int
    account: str = ""
    version: str = ""
    started_at_s: float | None = None
    metrics_port: int = 0
    service_port: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False  # its pod template sets SIMULATE_ONLY


@dataclass(frozen=True)
class AdmissionDryRun:
    """How the API server would admit a performance pod, from a dry-run request."""

    terms: Sequence[Any] | None = None  # of its required node affinity
    refused: str = ""


@dataclass
class InstallationSurvey:
    """A cluster and its installation of Joulie; None where something could not be read."""

    live: LiveCluster
    here_s: float  # local clock when the server's clock was read
    server_s: float | None = None
    version: tuple[int, int] | None = None
    definitions: dict[str, dict[str, Any] | None] | None = None  # by name; a None value: not installed
    workloads: list[RunningComponent] | None = None
    pods: list[RunningComponent] | None = None
    missing_permissions: list[tuple[RunningComponent, Permission]] | None = None
    policies: list[dict[str, Any]] | None = None  # admission policies; see also `bindings`
    policies_are_served: bool = True
    bindings: list[dict[str, Any]] = field(default_factory=list)
    extender_services: list[tuple[str, str, dict[str, str]]] | None = None  # namespace, name, selector
    extender_requests: float | None = None  # requests to all extenders since they started
    dead_extenders: list[str] = field(default_factory=list)  # pods that are ready but refuse connections
    admission: AdmissionDryRun | None = None
    namespace_state: str = ""  # of `namespace`: present, terminating or deleted
    cluster_wide: Sequence[ClusterWideObject] = ()
    unrestored: dict[str, tuple[float, str]] = field(
        default_factory=dict
    )  # by node: time and text of the agent's event
    power: PowerSourceProbe | None = None  # the power source's answer, if nodes lack measurements
    budget_leases: tuple[OperatorLease, ...] | None = None  # `joulie-budget`, if there are budgets
    refused: list[str] = field(default_factory=list)  # permissions that the user lacks
    unseen: list[str] = field(default_factory=list)  # what else could not be checked

    @property
    def namespace(self) -> str:
        """The namespace Joulie is installed in, or would be."""
        named = [one.namespace for one in self.workloads or () if one.component == "operator"]
        named += [lease.namespace for lease in self.live.leases or ()]
        named += [space for left in self.cluster_wide for space in left.namespaces]
        return next(iter(named), DEFAULT_NAMESPACE)

    @property
    def installed(self) -> bool:
        """Whether a component exists or an operator has ever led; True if that cannot be determined."""
        return bool(self.workloads is None or self.workloads or self.live.leases is None or self.live.leases)

    @property
    def dry_run(self) -> bool:
        """Whether all agents run in dry-run mode."""
        agents = [one for one in self.workloads or () if one.component == "agent"]
        return bool(agents) and all(one.dry_run for one in agents)


async def survey(connection: ClusterConnection) -> InstallationSurvey:
    live = await read_live(connection)
    found = InstallationSurvey(live, time.time())
    if live.leases is None:
        found.refused.append("not allowed to list leases: the leader is unknown")
    if live.budgets:
        found.budget_leases = await operator_leases(connection, BUDGET_LEASE)
    surveyor = _Surveyor(connection, found)
    await surveyor.server()
    found.definitions = await surveyor.attempt("definitions", surveyor.definitions)
    found.workloads = await surveyor.attempt("workloads", surveyor.workloads)
    found.pods = await surveyor.attempt("pods of Joulie", surveyor.pods)
    found.missing_permissions = await surveyor.attempt("permissions of components", surveyor.missing_permissions)
    found.policies = await surveyor.attempt("admission policies", surveyor.policies)
    if found.policies and found.bindings:
        found.admission = await surveyor.attempt("effect of admission policies", surveyor.admission)
    found.cluster_wide = (await cluster_wide(connection)).items
    found.namespace_state = await namespace_state(connection, found.namespace)
    found.extender_services = await surveyor.attempt("services", surveyor.extender_services)
    found.extender_requests = await surveyor.attempt("metrics of the extender", surveyor.extender_requests)
    found.unrestored = await surveyor.attempt("events", surveyor.unrestored) or {}
    found.power = await surveyor.attempt("power source", surveyor.power)
    return found


class _Surveyor:
    def __init__(self, connection: ClusterConnection, found: InstallationSurvey) -> None:
        self._connection = connection
        self._found = found

    async def attempt(self, what: str, read: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await read()
        except ClusterError as error:
            text = forbidden(str(error)) if error.status == FORBIDDEN else str(error)
            (self._found.refused if error.status == FORBIDDEN else self._found.unseen).append(f"{what}: {text}")
            return None

    async def server(self) -> None:
        """Reads version and clock. Errors propagate: without the API server there is nothing to check."""
        before_s = time.time()
        version = msgspec.json.decode(await self._connection.call("/version"))
        self._found.here_s = (before_s + time.time()) / 2
        numbers = [re.sub(r"\D.*", "", str(version.get(key, ""))) for key in ("major", "minor")]
        if all(numbers):
            self._found.version = int(numbers[0]), int(numbers[1])
        date = self._connection.transport.server_date
        self._found.server_s = (
            parsedate_to_datetime(date).timestamp() + 0.5 if date else None
        )  # the header has whole seconds

    async def definitions(self) -> dict[str, dict[str, Any] | None]:
        found: dict[str, dict[str, Any] | None] = {}
        for definition in crds():
            name = definition["metadata"]["name"]
            try:
                found[name] = msgspec.json.decode(await self._connection.cluster.get(DEFINITIONS, name))
            except NotFoundError:
                found[name] = None
        return found

    async def workloads(self) -> list[RunningComponent]:
        lists = [await self._connection.list_all(kind, labels=ANY_COMPONENT) for kind in WORKLOADS]
        return [
            _workload(kind.kind, body) for kind, bodies in zip(WORKLOADS, lists, strict=True) for body in _plain(bodies)
        ]

    async def pods(self) -> list[RunningComponent]:
        bodies = _plain(await self._connection.list_all(PODS, labels=ANY_COMPONENT))
        return [_pod(body) for body in bodies if body.get("status", {}).get("phase") not in ("Succeeded", "Failed")]

    async def missing_permissions(self) -> list[tuple[RunningComponent, Permission]]:
        """Permissions that the components' service accounts lack, by SubjectAccessReviews."""
        asked = [
            (workload, permission)
            for workload in self._found.workloads or ()
            if workload.account
            for permission in needed(workload.component, workload.namespace)
        ]
        answers = await asyncio.gather(*(self._allowed(workload, permission) for workload, permission in asked))
        return [one for one, allowed in zip(asked, answers, strict=True) if not allowed]

    async def policies(self) -> list[dict[str, Any]]:
        """Joulie's policies for performance pods, not that of watts; empty if the API server is too old for any."""
        served = msgspec.json.decode(await self._connection.call(ADMISSION))
        if POLICIES.plural not in {resource["name"] for resource in served["resources"]}:
            self._found.policies_are_served = False
            return []
        self._found.bindings = _plain(await self._connection.list_all(BINDINGS))
        return [
            body
            for body in _plain(await self._connection.list_all(POLICIES))
            if "joulie" in body["metadata"]["name"] and WATTS_RESOURCE not in str(body.get("spec"))
        ]

    async def extender_services(self) -> list[tuple[str, str, dict[str, str]]]:
        bodies = _plain(await self._connection.list_all(SERVICES, labels=selector_of("extender")))
        named = [(body["metadata"], (body.get("spec") or {}).get("selector") or {}) for body in bodies]
        return [(metadata["namespace"], metadata["name"], selector) for metadata, selector in named]

    async def extender_requests(self) -> float | None:
        """Sums the request counters, through the API server's proxy, which reaches pods that this machine cannot."""
        extenders = [pod for pod in self._found.pods or () if pod.component == "extender" and pod.ready]
        if not extenders:
            return None
        pages: list[bytes] = []
        for pod in extenders:
            try:
                path = f"{PODS.path(pod.namespace, pod.name)}:{pod.metrics_port}/proxy/metrics"
                pages.append(await self._connection.call(path))
            except ClusterError as error:
                # Refused on both ports means a dead process; a timeout may be a network policy.
                if "connection refused" not in str(error) or await self._answers(pod):
                    raise
                self._found.dead_extenders.append(f"{pod.namespace}/{pod.name}")
        if not pages:
            return None
        return sum(float(number) for page in pages for number in _REQUESTS.findall(page))

    async def _answers(self, pod: RunningComponent) -> bool:
        """Whether something listens on the port that schedulers call, whatever it answers."""
        try:
            await self._connection.call(f"{PODS.path(pod.namespace, pod.name)}:{pod.service_port}/proxy/healthz")
        except ClusterError as error:
            return "connection refused" not in str(error)
        return True

    async def admission(self) -> AdmissionDryRun | None:
        """Submits a performance pod as a dry run; None if it was denied for unrelated reasons."""
        body = {
            "metadata": {
                "generateName": "joulie-doctor-",
                "annotations": {"joulie.io/workload-class": "performance"},
            },
            "spec": {"containers": [{"name": "none", "image": "none"}]},
        }
        names = [policy["metadata"]["name"] for policy in self._found.policies or ()]
        path, encoded = f"{PODS.path('default')}?dryRun=All", msgspec.json.encode(body)
        terms: Sequence[Any] | None = None
        for attempt in range(DRY_RUN_ATTEMPTS):
            await asyncio.sleep(attempt and DRY_RUN_INTERVAL_S)  # a new policy takes effect after some seconds
            try:
                answer = await self._connection.transport.call("POST", path, body=encoded)
            except ClusterError as error:
                ours = any(name in str(error) for name in names) and "cannot create resource" not in str(error)
                return AdmissionDryRun(refused=str(error)) if ours else None
            spec = msgspec.json.decode(answer)["spec"]
            affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
            terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
            if terms:
                break
        return AdmissionDryRun(terms)

    async def unrestored(self) -> dict[str, tuple[float, str]]:
        """The latest Event per node about a device that could not be restored, unless a later one takes it back."""
        pending, done = [
            _latest(_plain(await self._connection.list_all(EVENTS, fields=f"reason={reason}")))
            for reason in ("RestoreIncomplete", "CapsRestored")
        ]
        return {node: said for node, said in pending.items() if said[0] > done.get(node, (0.0, ""))[0]}

    async def power(self) -> PowerSourceProbe | None:
        live = self._found.live
        measured = {name: twin.status.power_measurement for name, twin in live.snapshot.twins.items() if twin.status}
        missing = [name for name, one in measured.items() if one and one.source and one.source not in MEASURED]
        try:
            settings = load(OperatorSettings, {**live.operator_settings, **os.environ})
        except InputError:  # reported as a finding of its own
            return None
        return await probe(self._connection, settings, missing)

    async def _allowed(self, workload: RunningComponent, permission: Permission) -> bool:
        user = f"system:serviceaccount:{workload.namespace}:{workload.account}"
        body = {
            "metadata": {},
            "spec": {
                "user": user,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{workload.namespace}"],
                "resourceAttributes": permission.attributes(),
            },
        }
        answer = msgspec.json.decode(await self._connection.cluster.create(REVIEWS, body))
        return bool(answer["status"]["allowed"])


def _latest(events: Sequence[dict[str, Any]]) -> dict[str, tuple[float, str]]:
    """Time and text of the last Event about each node."""
    found: dict[str, tuple[float, str]] = {}
    for body in events:
        node, at_s = body["involvedObject"].get("name", ""), readable_time_s(body.get("lastTimestamp")) or 0.0
        found[node] = max(found.get(node, (0.0, "")), (at_s, str(body.get("message", ""))))
    return found


def _plain(bodies: Sequence[Raw]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body) for body in bodies]


def _workload(kind: str, body: dict[str, Any]) -> RunningComponent:
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    daemon = kind == "DaemonSet"
    wanted = status.get("desiredNumberScheduled", 0) if daemon else spec.get("replicas", 1)
    ready = status.get("numberReady" if daemon else "readyReplicas") or 0
    template = (spec.get("template") or {}).get("spec") or {}
    labels = metadata["labels"]
    return RunningComponent(
        kind,
        metadata["namespace"],
        metadata["name"],
        labels[COMPONENT_LABEL],
        int(wanted or 0),
        int(ready),
        template.get("serviceAccountName") or "",
        labels.get(VERSION_LABEL, ""),
        dry_run=any(
            (one.get("name"), one.get("value")) == (SIMULATED, "true")
            for container in template.get("containers") or ()
            for one in container.get("env") or ()
        ),
    )


def _pod(body: dict[str, Any]) -> RunningComponent:
    metadata, status = body["metadata"], body.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    component = metadata["labels"][COMPONENT_LABEL]
    ports = [port for one in body["spec"]["containers"] for port in one.get("ports") or ()]
    named = {port.get("name"): port["containerPort"] for port in ports}
    return RunningComponent(
        "Pod",
        metadata["namespace"],
        metadata["name"],
        component,
        1,
        int(ready),
        body["spec"].get("serviceAccountName") or "",
        metadata["labels"].get(VERSION_LABEL, ""),
        readable_time_s(status.get("startTime")),
        named.get("metrics") or METRICS_PORT.get(component, 0),
        named.get(component) or SERVICE_PORT.get(component, 0),
        metadata["labels"],
    )
