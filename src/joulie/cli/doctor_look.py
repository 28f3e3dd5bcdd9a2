"""Everything that `doctor` looks at, read once. What may not or cannot be read is noted, and never stops the rest."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from joulie.cli.connection import FORBIDDEN, Connection, forbidden
from joulie.cli.doctor_rights import Right, needed
from joulie.cli.live import Live, read_live
from joulie.cli.workloads import (
    ANY_COMPONENT,
    COMPONENT_LABEL,
    DEFINITIONS,
    SERVICES,
    VERSION_LABEL,
    WORKLOADS,
    selecting,
)
from joulie.cluster.crds import crds
from joulie.cluster.port import PODS, ClusterError, NotFoundError, Resource
from joulie.model.rfc3339 import readable_time_s

T = TypeVar("T")

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy")
BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"
)
DEFAULT_NAMESPACE = "joulie-system"
METRICS_PORT = {"extender": 9877, "operator": 8081}
_REQUESTS = re.compile(rb"^joulie_scheduler_(?:filter|prioritize)_requests_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Running:
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
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Look:
    """A cluster with everything around it; None: it could not be seen."""

    live: Live
    here_s: float  # our clock, when the server's was read
    server_s: float | None = None
    version: tuple[int, int] | None = None
    definitions: dict[str, dict[str, Any] | None] | None = None  # by name; None within: not there
    workloads: list[Running] | None = None
    pods: list[Running] | None = None
    missing_rights: list[tuple[Running, Right]] | None = None
    policies: list[dict[str, Any]] | None = None  # of admission, with their bindings beside them
    bindings: list[dict[str, Any]] = field(default_factory=list)
    extender_services: list[tuple[str, str, dict[str, str]]] | None = None  # namespace, name, selector
    extender_requests: float | None = None  # all that the extenders were asked since they started
    refused: list[str] = field(default_factory=list)  # rights that the person lacks
    unseen: list[str] = field(default_factory=list)  # what else could not be looked at

    @property
    def namespace(self) -> str:
        """Where Joulie is installed, or would be."""
        return next((one.namespace for one in self.workloads or () if one.component == "operator"), DEFAULT_NAMESPACE)


async def look(connection: Connection) -> Look:
    live = await read_live(connection)
    found = Look(live, time.time())
    if live.leases is None:
        found.refused.append("not allowed to list leases: who leads cannot be seen")
    seeing = _Seeing(connection, found)
    await seeing.server()
    found.definitions = await seeing.attempt("definitions", seeing.definitions)
    found.workloads = await seeing.attempt("workloads", seeing.workloads)
    found.pods = await seeing.attempt("pods of Joulie", seeing.pods)
    found.missing_rights = await seeing.attempt("rights of components", seeing.missing_rights)
    found.policies = await seeing.attempt("admission policies", seeing.policies)
    found.extender_services = await seeing.attempt("services", seeing.extender_services)
    found.extender_requests = await seeing.attempt("metrics of the extender", seeing.extender_requests)
    return found


class _Seeing:
    def __init__(self, connection: Connection, found: Look) -> None:
        self._connection = connection
        self._found = found

    async def attempt(self, what: str, read: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await read()
        except ClusterError as error:
            said = forbidden(str(error)) if error.status == FORBIDDEN else str(error)
            (self._found.refused if error.status == FORBIDDEN else self._found.unseen).append(f"{what}: {said}")
            return None

    async def server(self) -> None:
        """Its version and its clock; without an answer there would be nothing to look at anyway."""
        before_s = time.time()
        version = msgspec.json.decode(await self._connection.call("/version"))
        self._found.here_s = (before_s + time.time()) / 2
        numbers = [re.sub(r"\D.*", "", str(version.get(key, ""))) for key in ("major", "minor")]
        if all(numbers):
            self._found.version = int(numbers[0]), int(numbers[1])
        date = self._connection.transport.server_date
        self._found.server_s = parsedate_to_datetime(date).timestamp() + 0.5 if date else None  # whole seconds

    async def definitions(self) -> dict[str, dict[str, Any] | None]:
        found: dict[str, dict[str, Any] | None] = {}
        for definition in crds():
            name = definition["metadata"]["name"]
            try:
                found[name] = msgspec.json.decode(await self._connection.cluster.get(DEFINITIONS, name))
            except NotFoundError:
                found[name] = None
        return found

    async def workloads(self) -> list[Running]:
        lists = [await self._connection.list_all(kind, labels=ANY_COMPONENT) for kind in WORKLOADS]
        return [
            _workload(kind.kind, body) for kind, bodies in zip(WORKLOADS, lists, strict=True) for body in _plain(bodies)
        ]

    async def pods(self) -> list[Running]:
        bodies = _plain(await self._connection.list_all(PODS, labels=ANY_COMPONENT))
        return [_pod(body) for body in bodies if body.get("status", {}).get("phase") not in ("Succeeded", "Failed")]

    async def missing_rights(self) -> list[tuple[Running, Right]]:
        """Of the accounts that the components run under, asked of whoever decides about rights."""
        asked = [
            (workload, right)
            for workload in self._found.workloads or ()
            if workload.account
            for right in needed(workload.component, workload.namespace)
        ]
        answers = await asyncio.gather(*(self._allowed(workload, right) for workload, right in asked))
        return [one for one, allowed in zip(asked, answers, strict=True) if not allowed]

    async def policies(self) -> list[dict[str, Any]] | None:
        """Those of Joulie; None where the API server is too old to have any."""
        served = msgspec.json.decode(await self._connection.call(ADMISSION))
        if POLICIES.plural not in {resource["name"] for resource in served["resources"]}:
            self._found.unseen.append("the API server does not serve MutatingAdmissionPolicy v1 (Kubernetes 1.36 does)")
            return None
        self._found.bindings = _plain(await self._connection.list_all(BINDINGS))
        return [
            body for body in _plain(await self._connection.list_all(POLICIES)) if "joulie" in body["metadata"]["name"]
        ]

    async def extender_services(self) -> list[tuple[str, str, dict[str, str]]]:
        bodies = _plain(await self._connection.list_all(SERVICES, labels=selecting("extender")))
        named = [(body["metadata"], (body.get("spec") or {}).get("selector") or {}) for body in bodies]
        return [(metadata["namespace"], metadata["name"], selector) for metadata, selector in named]

    async def extender_requests(self) -> float | None:
        """Through the API server, which reaches pods that a person's machine does not."""
        extenders = [pod for pod in self._found.pods or () if pod.component == "extender" and pod.ready]
        if not extenders:
            return None
        paths = [f"{PODS.path(pod.namespace, pod.name)}:{pod.metrics_port}/proxy/metrics" for pod in extenders]
        pages = [await self._connection.call(path) for path in paths]
        return sum(float(number) for page in pages for number in _REQUESTS.findall(page))

    async def _allowed(self, workload: Running, right: Right) -> bool:
        user = f"system:serviceaccount:{workload.namespace}:{workload.account}"
        body = {
            "metadata": {},
            "spec": {
                "user": user,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{workload.namespace}"],
                "resourceAttributes": right.attributes(),
            },
        }
        answer = msgspec.json.decode(await self._connection.cluster.create(REVIEWS, body))
        return bool(answer["status"]["allowed"])


def _plain(bodies: Sequence[Raw]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body) for body in bodies]


def _workload(kind: str, body: dict[str, Any]) -> Running:
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    daemon = kind == "DaemonSet"
    wanted = status.get("desiredNumberScheduled", 0) if daemon else spec.get("replicas", 1)
    ready = status.get("numberReady" if daemon else "readyReplicas") or 0
    template = (spec.get("template") or {}).get("spec") or {}
    labels = metadata["labels"]
    return Running(
        kind,
        metadata["namespace"],
        metadata["name"],
        labels[COMPONENT_LABEL],
        int(wanted or 0),
        int(ready),
        template.get("serviceAccountName") or "",
        labels.get(VERSION_LABEL, ""),
    )


def _pod(body: dict[str, Any]) -> Running:
    metadata, status = body["metadata"], body.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    component = metadata["labels"][COMPONENT_LABEL]
    ports = [port for one in body["spec"]["containers"] for port in one.get("ports") or ()]
    named = next((port["containerPort"] for port in ports if port.get("name") == "metrics"), None)
    return Running(
        "Pod",
        metadata["namespace"],
        metadata["name"],
        component,
        1,
        int(ready),
        body["spec"].get("serviceAccountName") or "",
        metadata["labels"].get(VERSION_LABEL, ""),
        readable_time_s(status.get("startTime")),
        named or METRICS_PORT.get(component, 0),
        metadata["labels"],
    )
