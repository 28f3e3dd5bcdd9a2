"""How busy CPUs and GPUs are: the tier that speaks where power is not measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from joulie.model.snapshot import Utilisation
from joulie.sources.node_queries import NodeAnswer, NodeQuery
from joulie.sources.prometheus import Sample

# Counters read a moment apart can say a little more than everything.
ROUNDING = 0.05


class Load(Struct, frozen=True, gc=False):
    """A share of 1, and when it was read."""

    share: float
    measured_at_s: float


class PrometheusLoad(NodeQuery):
    """The load of one kind of device on every node, as PromQL."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[Load]:
        """Where several series name a node, the busiest counts."""
        now_s, found = await self._ask(nodes)
        loads = {}
        for node, samples in found.by_node.items():
            busiest = samples[0] if len(samples) == 1 else max(samples, key=_load)
            loads[node] = Load(_without_overshoot(busiest.value), min(now_s, busiest.at_s))
        return NodeAnswer(loads, found.unanswered)


def _load(sample: Sample) -> tuple[bool, float]:
    """What is no number comes first, so that it is seen and not believed."""
    return math.isnan(sample.value), sample.value


def _without_overshoot(share: float) -> float:
    return 1.0 if 1.0 < share <= 1.0 + ROUNDING else share


def utilisation_of(cpu: Mapping[str, Load], gpu: Mapping[str, Load]) -> dict[str, Utilisation]:
    """Both loads of each node, as old as the older one."""
    joined = {node: Utilisation(load.measured_at_s, cpu=load.share) for node, load in cpu.items() if node not in gpu}
    for node, load in gpu.items():
        other = cpu.get(node)
        at_s = load.measured_at_s if other is None else min(load.measured_at_s, other.measured_at_s)
        joined[node] = Utilisation(at_s, None if other is None else other.share, load.share)
    return joined
