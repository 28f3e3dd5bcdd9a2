"""Nodes whose power falls first; three times as strong while the whole cluster moves."""

from __future__ import annotations

import numpy as np

from joulie.control.scoring.columns import ClusterFacts, Numbers
from joulie.control.scoring.term import NodeFacts, Term

TREND_LIMIT = 25.0
STEADY_TREND_SCALE, BURST_TREND_SCALE = 6.0, 2.0
BURST_W_PER_MIN = 500.0


def trend_scale(cluster: ClusterFacts) -> float:
    """Watts per minute that are worth a point."""
    return BURST_TREND_SCALE if abs(cluster.trend_w_per_min) > BURST_W_PER_MIN else STEADY_TREND_SCALE


def points(node: NodeFacts, cluster: ClusterFacts) -> Numbers:
    bonus: Numbers = -np.minimum(np.maximum(node.trend_w_per_min / trend_scale(cluster), -TREND_LIMIT), TREND_LIMIT)
    return bonus


TERM = Term(
    name="trend",
    key="trendBonus",
    points=points,
    formula="−trend / 6, or −trend / 2 while the cluster's trend is beyond ±500 W/min; within −25 and +25",
    meaning="falling power first; three times as strong while the whole cluster moves",
    words="its power changes by {other.trend_w_per_min} W per minute",
)
