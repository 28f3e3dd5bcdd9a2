"""Standard pods belong on eco nodes, which leaves performance nodes to pods that need them."""

from __future__ import annotations

from joulie.control.scoring.columns import ECO_CODE, ClusterFacts, Numbers
from joulie.control.scoring.term import NodeFacts, Term

ECO_BONUS = 10.0


def points(node: NodeFacts, _cluster: ClusterFacts) -> Numbers:
    bonus: Numbers = (node.class_code == ECO_CODE) * ECO_BONUS
    return bonus


TERM = Term(
    name="profile",
    key="profileBonus",
    points=points,
    formula="+10 on eco nodes",
    meaning="standard pods belong on eco nodes",
    words="it is not an eco node, which standard pods prefer",
    standard_only=True,
)
