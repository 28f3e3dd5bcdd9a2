"""PromQL for all nodes: one query with a node label, or one query per node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from joulie.sources.prometheus import NODE_LABELS, PrometheusClient, Sample
from joulie.sources.transport import RequestLimits, ask_each, raise_if_all_failed

NODE_PLACE = "{node}"

R = TypeVar("R")


class NodeAnswer(Struct, Generic[R], frozen=True):
    """Readings before any check. A node in neither part has no sensor, or a silent one."""

    readings: dict[str, R]
    unanswered: dict[str, str]  # nodes whose own query failed, with the reason: their last reading still counts
    remark: str = ""  # why a response is of no use


class NodeSource(Protocol[R]):
    """A source of readings of nodes."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[R]:
        """The readings of these nodes; SourceError if the source failed as a whole."""
        ...


class NodeSamples(Struct, frozen=True):
    """Samples by node."""

    by_node: dict[str, list[Sample]]
    unanswered: dict[str, str]
    remark: str = ""  # why the series belong to no node


async def ask_for_nodes(
    client: PrometheusClient, promql: str, nodes: Sequence[str], now_s: float, max_age_s: float, limits: RequestLimits
) -> NodeSamples:
    """One query for all nodes, or, if it contains `{node}`, one for each."""
    if NODE_PLACE in promql:

        async def ask(node: str) -> list[Sample]:
            return await client.query(promql.replace(NODE_PLACE, node), now_s, max_age_s)

        answers = await ask_each(nodes, ask, limits)
        raise_if_all_failed(answers.failures, nodes)
        by_node = {node: samples for node, samples in answers.results.items() if samples}
        return NodeSamples(by_node, answers.failures)
    samples = await client.query(promql, now_s, max_age_s)
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.node, []).append(sample)
    by_node = _match(by_name, nodes)
    if by_node or not samples:
        return NodeSamples(by_node, {})
    labels = ", ".join(NODE_LABELS)
    return NodeSamples({}, {}, f"{len(samples)} series, but none names a node in scope by {labels}")


def _match(by_name: Mapping[str, list[Sample]], nodes: Sequence[str]) -> dict[str, list[Sample]]:
    """Series by node: matched by full name, else by host name without the domain.

    Exporters use the host's own name, which may be shorter or longer than the node's, or in capitals. Only unambiguous
    matches count: neither a short name of two nodes, nor two hosts that shorten to one.
    """
    found = {node: by_name[node] for node in nodes if node in by_name}
    if len(found) == len(nodes) or len(found) == len(by_name):
        return found
    nodes_by_host, names_by_host = _by_host(nodes), _by_host(name for name in by_name if name not in found)
    for host, names in names_by_host.items():
        meant = nodes_by_host.get(host, [])
        if len(meant) == 1 and len(names) == 1 and meant[0] not in found and _may_be(meant[0], names[0]):
            found[meant[0]] = by_name[names[0]]
    return found


def _by_host(names: Iterable[str]) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    for name in names:
        host = name.partition(".")[0].lower()
        if host and not host.isdigit() and ":" not in name:  # an IP address has no host part
            hosts.setdefault(host, []).append(name)
    return hosts


def _may_be(node: str, named: str) -> bool:
    """Whether both may name the same host: not if both have a domain and these differ."""
    domains = [name.lower().partition(".")[2] for name in (node, named)]
    return not all(domains) or domains[0] == domains[1]


class NodeQuery:
    """A PromQL query about nodes; subclasses interpret the samples."""

    def __init__(
        self,
        client: PrometheusClient,
        promql: str,
        max_age_s: float,
        wall_clock_s: Callable[[], float],
        limits: RequestLimits,
    ) -> None:
        self._client = client
        self._promql = promql
        self._max_age_s = max_age_s
        self._now_s = wall_clock_s
        self._limits = limits

    async def _ask(self, nodes: Sequence[str]) -> tuple[float, NodeSamples]:
        """The time of the query, and its samples."""
        now_s = self._now_s()
        return now_s, await ask_for_nodes(self._client, self._promql, nodes, now_s, self._max_age_s, self._limits)
