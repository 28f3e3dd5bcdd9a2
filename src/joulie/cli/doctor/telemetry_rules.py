"""Rules about power that should be measured but is not, and about TelemetryProfiles; probes the power source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from joulie.cli.connection import ClusterConnection
from joulie.cli.installation.workloads import SERVICES
from joulie.cli.style import plural
from joulie.cluster.port import ClusterError, NotFoundError
from joulie.errors import without_credentials
from joulie.model.api import TelemetryProfile
from joulie.model.api.results import ACCEPTED
from joulie.model.snapshot import Node
from joulie.model.tiers import MEASURED
from joulie.overview.findings import Finding
from joulie.overview.nodes import NodeOverview
from joulie.settings import OperatorSettings
from joulie.sources.prometheus import decode_samples
from joulie.sources.transport import HttpReply, SourceError, get

TIMEOUT_S = 5.0
_SERVICE = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)(\.svc(\.[a-z0-9.-]+)?)?")
_SOURCE_NAMES = {"prometheus": "Prometheus", "http": "the power endpoint"}


class PowerSourceProbe(NamedTuple):
    """How the power source answered when queried for nodes that lack measurements."""

    what: str
    address: str  # without credentials
    state: Literal["answers", "unreachable", "refuses"]
    why: str = ""
    nodes: frozenset[str] = frozenset()  # that it has data for


def unmeasured(nodes: Collection[NodeOverview]) -> list[str]:
    """Managed nodes whose power is not measured, according to their twin."""
    return [node.name for node in nodes if node.managed and node.has_twin and node.power_source not in ("", *MEASURED)]


async def probe(
    connection: ClusterConnection, settings: OperatorSettings, missing: Collection[str]
) -> PowerSourceProbe | None:
    """Sends the operator's own query; None if no source is configured. Of the response, only the status is reported."""
    what = _SOURCE_NAMES.get(settings.power_source)
    if what is None or not missing:
        return None
    first, for_each = min(missing), False
    if settings.power_source == "prometheus":
        shown = settings.power_prometheus_address
        for_each = "{node}" in settings.power_prometheus_query  # then one response stands for all nodes
        query = urlencode({"query": settings.power_prometheus_query.replace("{node}", first)})
        url = f"{shown.rstrip('/')}/api/v1/query?{query}"
    else:
        shown = settings.power_http_endpoint
        url = shown.replace("{node}", quote(first, safe=""))
    address = without_credentials(shown)
    try:
        reply = await _fetch(connection, url)
    except SourceError as error:
        return PowerSourceProbe(what, address, "unreachable", str(error))
    if reply.status != 200:
        return PowerSourceProbe(what, address, "refuses", f"HTTP {reply.status}")
    if settings.power_source == "http":
        return PowerSourceProbe(what, address, "answers", nodes=frozenset({first}))
    try:
        samples = decode_samples(reply)
    except SourceError:
        return PowerSourceProbe(what, address, "refuses", "the response is not a query result")
    named = frozenset(missing) if for_each and samples else frozenset(sample.node for sample in samples)
    return PowerSourceProbe(what, address, "answers", nodes=named)


async def _fetch(connection: ClusterConnection, url: str) -> HttpReply:
    """Goes through the API server's proxy if the host is a Service, which this machine may not reach."""
    parts = urlsplit(url)
    match = _SERVICE.fullmatch(parts.hostname or "")
    if match is not None:
        name, namespace, is_service, _ = match.groups()
        try:
            await connection.cluster.get(SERVICES, name, namespace=namespace)
        except NotFoundError:
            if is_service:
                raise SourceError(f"Service {namespace}/{name} does not exist") from None
        except ClusterError as error:
            raise SourceError(str(error)) from None
        else:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            scheme = "https:" if parts.scheme == "https" else ""
            path = f"{SERVICES.path(namespace, f'{scheme}{name}:{port}')}/proxy{parts.path}?{parts.query}"
            try:
                return HttpReply(200, await connection.call(path))
            except ClusterError as error:
                if error.status in (0, 502, 503, 504):
                    raise SourceError(f"Service {namespace}/{name} has no endpoint that answers") from None
                return HttpReply(error.status, b"")
    async with aiohttp.ClientSession() as session:
        return await get(session, url, TIMEOUT_S)


def power_findings(
    asked: PowerSourceProbe | None, missing: Collection[str], known: int, step: str
) -> Iterator[Finding]:
    """At most one finding: a hint if no source is configured, else what is wrong with it."""
    if not missing:
        return
    which = "all nodes" if len(missing) == known else f"{len(missing):,} of {plural(known, 'node')}"
    text = f"the power of {which} is estimated, not measured"
    if asked is None:
        setting = "set OPERATOR_NODE_POWER_SOURCE=prometheus (Kepler) or http"
        yield Finding("telemetry-static", "hint", "", text, setting)
        return
    place = f"{asked.what} at {asked.address}"
    if asked.state == "unreachable":
        problem, kind, question = f"does not answer: {asked.why}", "telemetry-unreachable", "is the address right"
    elif asked.state == "refuses":
        problem, kind, question = f"returns an error: {asked.why}", "telemetry-refused", "are address and query right"
    elif silent := sorted(set(missing) - asked.nodes):
        some = ", ".join(silent[:3]) + (", …" if len(silent) > 3 else "")
        problem = f"answers but has no series for {plural(len(silent), 'node')} ({some})"
        kind, question = "telemetry-no-series", "does the query name nodes by node_name, node, Hostname or instance"
    else:
        problem, kind, question = (
            "answers but the operator does not use it",
            "telemetry-unused",
            "what does its log say",
        )
    yield Finding(kind, "warning", "", f"{place} {problem}; {text}", f"{question}? {step}")


def profile_findings(profiles: Collection[TelemetryProfile], nodes: Mapping[str, Node]) -> Iterator[Finding]:
    """Profiles that match no node, lack an address, or conflict with each other."""
    covering: dict[tuple[str, int, str], list[str]] = {}  # by node, rank and part: profiles, the effective one first
    ordered = sorted(profiles, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))
    for profile in ordered:
        name = f"TelemetryProfile/{profile.metadata.name}"
        step = f"kubectl edit telemetryprofile {profile.metadata.name}"
        for fault in _faults(profile):
            yield Finding("profile-endpoint", "warning", "", f"{name}: {fault}", step)
        matching = [node for node in nodes.values() if _matches(profile, node)]
        if nodes and not matching:
            yield Finding("profile-without-effect", "warning", "", f"{name} matches no node of the cluster", step)
        elif why := _not_accepted(profile):
            yield Finding("profile-without-effect", "warning", "", f"{name} has no effect: {why}", step)
        for node in matching:
            for part in _parts(profile):
                covering.setdefault((node.name, _rank(profile), part), []).append(profile.metadata.name)
    clashes: dict[tuple[str, ...], set[str]] = {}
    for (node_name, _, _), names in covering.items():
        if len(names) > 1:
            clashes.setdefault(tuple(names), set()).add(node_name)
    for (first, *others), concerned in sorted(clashes.items()):
        every = ", ".join([first, *others])
        text = f"TelemetryProfiles {every} cover the same {plural(len(concerned), 'node')}: only {first} takes effect"
        yield Finding("profile-conflict", "warning", "", text, f"kubectl delete telemetryprofile {' '.join(others)}")


def _not_accepted(profile: TelemetryProfile) -> str:
    """The operator's reason for not accepting the profile, unless another profile is the cause."""
    conditions = (profile.status.conditions if profile.status else None) or ()
    refused = [one for one in conditions if one.type == ACCEPTED and one.status == "False"]
    return next((one.message or one.reason for one in refused if one.reason in ("OutOfScope", "NoNodes")), None) or ""


def _rank(profile: TelemetryProfile) -> int:
    target = profile.spec.target
    if target.scope == "node":
        return 0
    return 1 if target.node_selector is not None and target.node_selector.match_labels else 2


def _matches(profile: TelemetryProfile, node: Node) -> bool:
    target = profile.spec.target
    if target.scope == "node":
        return target.node_name == node.name
    wanted = (target.node_selector.match_labels if target.node_selector else None) or {}
    return all(node.labels.get(key) == value for key, value in wanted.items())


def _parts(profile: TelemetryProfile) -> Iterator[str]:
    sources, controls = profile.spec.sources, profile.spec.controls
    if sources is not None:
        yield from (part for part in ("sources.cpu", "sources.gpu") if getattr(sources, part[-3:]) is not None)
    if controls is not None:
        yield from (part for part in ("controls.cpu", "controls.gpu") if getattr(controls, part[-3:]) is not None)


def _faults(profile: TelemetryProfile) -> Iterator[str]:
    """Missing or unusable addresses."""
    for part in _parts(profile):
        side = profile.spec.sources if part.startswith("sources") else profile.spec.controls
        route = getattr(side, part[-3:])
        if route.type not in ("http", "prometheus"):
            continue
        target = getattr(route, route.type, None)
        if target is None:
            # A profile without an address uses the agent's setting, which exists only for HTTP.
            if route.type == "prometheus":
                yield f"spec.{part}.prometheus: missing"
        elif not _is_url(target.endpoint):
            yield f"spec.{part}.{route.type}.endpoint: not the URL of an HTTP server"


def _is_url(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint.replace("{node}", "node"))
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
