"""Measured node power from one PromQL query, Kepler's series by default."""

from __future__ import annotations

from collections.abc import Sequence

from joulie.errors import SettingError
from joulie.model.snapshot import PowerReading
from joulie.settings import OperatorSettings
from joulie.sources.node_queries import NodeAnswer, NodeQuery, NodeSamples
from joulie.sources.power.reader import PowerReader, ReaderContext, total_w
from joulie.sources.prometheus import Sample


class PrometheusPower(NodeQuery):
    """Node power as PromQL, Kepler's series by default."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[PowerReading]:
        now_s, found = await self._ask(nodes)
        readings = {node: _reading(samples, now_s) for node, samples in found.by_node.items()}
        return NodeAnswer(readings, found.unanswered, _remark(found, bool(readings)))


def _reading(samples: Sequence[Sample], now_s: float) -> PowerReading:
    """The sum of a node's series, as old as the oldest."""
    if len(samples) == 1:  # the usual case
        only = samples[0]
        return PowerReading("kepler", only.value, min(now_s, only.at_s))
    at_s = min(now_s, *(sample.at_s for sample in samples))
    return PowerReading("kepler", total_w(sample.value for sample in samples), at_s)


def _remark(found: NodeSamples, is_of_use: bool) -> str:
    """A query without results looks healthy, but nearly always names a wrong metric or label."""
    if is_of_use or found.unanswered:
        return ""
    return found.remark or "the query returns no fresh series"


def _check(settings: OperatorSettings) -> None:
    if not settings.power_prometheus_address:
        wanted = "with OPERATOR_NODE_POWER_SOURCE=prometheus its URL"
        raise SettingError("OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS", "", wanted)


def _open(context: ReaderContext) -> PrometheusPower:
    client, query = context.clients["nodes"], context.settings.power_prometheus_query
    return PrometheusPower(client, query, context.max_age_s, context.wall_clock_s, context.limits)


READER = PowerReader(_check, _open)
