"""What a node is worth to a pod: headroom, and one file for each further term of the score.

Pure array code. Extender, `joulie score` and `explain`, dashboard and demo call it on columns; the lab compiles the
same formulas. `terms.TERMS` is the one table of terms.
"""

from joulie.control.scoring.columns import (
    CLASS_CODES,
    CLASS_NAMES,
    ClusterFacts,
    ScoreColumns,
    budget_w,
    cluster_facts,
)
from joulie.control.scoring.group_room import GroupRooms
from joulie.control.scoring.term import NodeFacts, PodTerm, Term, facts_at, facts_of
from joulie.control.scoring.terms import ALL_TERMS, FOR_ALL, POD_TERMS, TERMS
from joulie.control.scoring.total import (
    HEADROOM_WEIGHT,
    NEUTRAL_SCORE,
    Prepared,
    Scores,
    base_score,
    full_power_w,
    headroom_after,
    headroom_before,
    integer_scores,
    points_per_w,
    prepare,
    score,
    total_score,
    whole_points,
)

__all__ = [
    "ALL_TERMS",
    "CLASS_CODES",
    "CLASS_NAMES",
    "FOR_ALL",
    "HEADROOM_WEIGHT",
    "NEUTRAL_SCORE",
    "POD_TERMS",
    "TERMS",
    "ClusterFacts",
    "GroupRooms",
    "NodeFacts",
    "PodTerm",
    "Prepared",
    "ScoreColumns",
    "Scores",
    "Term",
    "base_score",
    "budget_w",
    "cluster_facts",
    "facts_at",
    "facts_of",
    "full_power_w",
    "headroom_after",
    "headroom_before",
    "integer_scores",
    "points_per_w",
    "prepare",
    "score",
    "total_score",
    "whole_points",
]
