"""PromQL that is answered for each node: by one query with a node label, or by one query a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from joulie.sources.prometheus import PrometheusClient, Sample
from joulie.sources.transport import Limits, ask_each, raise_if_all_failed

NODE_PLACE = "{node}"

R = TypeVar("R")


class NodeAnswer(Struct, Generic[R], frozen=True):
    """Readings as they came, believable or not. A node in neither part has no sensor, or a silent one."""

    readings: dict[str, R]
    unanswered: dict[str, str]  # nodes whose own question failed, with the reason: their last reading still counts
    remark: str = ""  # why an answer is of no use although it came


class NodeSource(Protocol[R]):
    """Something that can be asked about nodes."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[R]:
        """What the sensors of these nodes say; SourceError when nothing could be asked."""
        ...


class NodeSamples(Struct, frozen=True):
    """Samples by node."""

    by_node: dict[str, list[Sample]]
    unanswered: dict[str, str]
    series: int


async def ask_for_nodes(
    client: PrometheusClient, promql: str, nodes: Sequence[str], now_s: float, max_age_s: float, limits: Limits
) -> NodeSamples:
    """One query for all nodes, or, where it has `{node}` in it, one for each, many at a time."""
    if NODE_PLACE in promql:

        async def ask(node: str) -> list[Sample]:
            return await client.query(promql.replace(NODE_PLACE, node), now_s, max_age_s)

        answers = await ask_each(nodes, ask, limits)
        raise_if_all_failed(answers.failures, nodes)
        by_node = {node: samples for node, samples in answers.results.items() if samples}
        return NodeSamples(by_node, answers.failures, sum(len(samples) for samples in by_node.values()))
    known = set(nodes)
    by_node = {}
    samples = await client.query(promql, now_s, max_age_s)
    for sample in samples:
        if (node := sample.node) in known:
            by_node.setdefault(node, []).append(sample)
    return NodeSamples(by_node, {}, len(samples))


class NodeQuery:
    """One question in PromQL about nodes; what its answer means is its subclass's."""

    def __init__(
        self, client: PrometheusClient, promql: str, max_age_s: float, wall_clock_s: Callable[[], float], limits: Limits
    ) -> None:
        self._client = client
        self._promql = promql
        self._max_age_s = max_age_s
        self._now_s = wall_clock_s
        self._limits = limits

    async def _ask(self, nodes: Sequence[str]) -> tuple[float, NodeSamples]:
        """When it was asked, and what came back."""
        now_s = self._now_s()
        return now_s, await ask_for_nodes(self._client, self._promql, nodes, now_s, self._max_age_s, self._limits)
