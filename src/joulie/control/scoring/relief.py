"""Standard pods keep off performance nodes while those are busy."""

from __future__ import annotations

from joulie.control.scoring.columns import PERFORMANCE_CODE, ClusterFacts, Numbers
from joulie.control.scoring.term import NodeFacts, Term

PRESSURE_WEIGHT = 0.3


def points(node: NodeFacts, cluster: ClusterFacts) -> Numbers:
    relief: Numbers = 0.0 - (node.class_code == PERFORMANCE_CODE) * (cluster.performance_pressure * PRESSURE_WEIGHT)
    return relief


TERM = Term(
    name="relief",
    key="pressureRelief",
    points=points,
    formula="−0.3 × pressure on performance nodes, −30 to 0",
    meaning="standard pods keep off performance nodes while those are busy",
    words="performance nodes are {cluster.performance_pressure} % busy and reserved for performance pods",
    standard_only=True,
)
