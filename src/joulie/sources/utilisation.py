"""CPU and GPU utilisation: the tier below measured power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from joulie.model.snapshot import Utilisation
from joulie.sources.node_queries import NodeAnswer, NodeQuery

# Counters read a moment apart can exceed 1 slightly.
ROUNDING = 0.05


class Load(Struct, frozen=True, gc=False):
    """A share of 1, and when it was read."""

    share: float
    measured_at_s: float


class PrometheusLoad(NodeQuery):
    """The utilisation of one kind of device on every node, by PromQL."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[Load]:
        """Several series of a node are its devices, and their mean is the node's utilisation."""
        now_s, found = await self._ask(nodes)
        loads = {}
        for node, samples in found.by_node.items():
            # NaN and infinity are kept, so that they are rejected and reported.
            share = samples[0].value if len(samples) == 1 else sum(s.value for s in samples) / len(samples)
            loads[node] = Load(_without_overshoot(share), min(now_s, *(s.at_s for s in samples)))
        return NodeAnswer(loads, found.unanswered, found.remark)


def _without_overshoot(share: float) -> float:
    return 1.0 if 1.0 < share <= 1.0 + ROUNDING else share


def utilisation_of(cpu: Mapping[str, Load], gpu: Mapping[str, Load]) -> dict[str, Utilisation]:
    """CPU and GPU utilisation of each node, as old as the older one."""
    joined = {node: Utilisation(load.measured_at_s, cpu=load.share) for node, load in cpu.items() if node not in gpu}
    for node, load in gpu.items():
        other = cpu.get(node)
        at_s = load.measured_at_s if other is None else min(load.measured_at_s, other.measured_at_s)
        joined[node] = Utilisation(at_s, None if other is None else other.share, load.share)
    return joined
