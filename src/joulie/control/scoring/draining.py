"""A node that is being emptied for eco should get no new work."""

from __future__ import annotations

from joulie.control.scoring.columns import DRAINING_CODE, ClusterFacts, Numbers
from joulie.control.scoring.term import NodeFacts, Term

DRAINING_PENALTY = 30.0


def points(node: NodeFacts, _cluster: ClusterFacts) -> Numbers:
    penalty: Numbers = 0.0 - (node.class_code == DRAINING_CODE) * DRAINING_PENALTY
    return penalty


TERM = Term(
    name="draining",
    key="drainingPenalty",
    points=points,
    formula="−30 on draining nodes",
    meaning="a node that is being emptied should get no new work",
    words="it is draining and should not get new work",
    standard_only=True,
)
