"""Cool nodes first."""

from __future__ import annotations

from joulie.control.scoring.columns import ClusterFacts, Numbers
from joulie.control.scoring.term import NodeFacts, Term

WEIGHT = 0.15


def points(node: NodeFacts, _cluster: ClusterFacts) -> Numbers:
    cool: Numbers = (100.0 - node.cooling_stress) * WEIGHT
    return cool


TERM = Term(
    name="cooling",
    key="coolingTerm",
    points=points,
    formula="0.15 × (100 − cooling stress)",
    meaning="cool nodes first",
    words="{other.cooling_stress} % of its cooling in use, against {best.cooling_stress} %",
    optional=False,
)
