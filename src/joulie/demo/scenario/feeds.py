"""The two feeds of the demo's building, their power budgets, and when one of them is cut. Pure.

Racks 0 and 1 hang on feed `a`, the others on `b`. The limits are such that the normal day hardly notices them, and that
the cut leaves some kilowatts above the floors of the nodes (35 kW on feed `a`): what there is to share goes to
performance pods first.
"""

from __future__ import annotations

from typing import Any

from joulie.model.names import API_VERSION

FEED_LABEL = "feed"
FEEDS = ("a", "b")
RACKS_PER_FEED = 2

FEEDS_BUDGET, CLUSTER_BUDGET = "feeds", "cluster"
FEED_W, CLUSTER_W = 60_000.0, 100_000.0
CUT_FEED, CUT_PCT = "a", 30.0
CUT_W = FEED_W * (1.0 - CUT_PCT / 100.0)
CUT_S, BACK_S = 1100.0, 1400.0  # of the day: around its busiest moment

Spec = dict[str, Any]


def feed_of(rack: int) -> str:
    return FEEDS[rack // RACKS_PER_FEED]


def budget_specs(*, is_cut: bool = False) -> dict[str, Spec]:
    """The spec of each budget, as an administrator writes it: one for each feed, and one for all nodes."""
    feeds: Spec = {"groupBy": FEED_LABEL, "watts": FEED_W, **cut_spec(is_cut=is_cut)}
    return {FEEDS_BUDGET: feeds, CLUSTER_BUDGET: {"watts": CLUSTER_W}}


def cut_spec(*, is_cut: bool) -> Spec:
    """What an edit of the feeds' budget changes."""
    return {"groups": [{"value": CUT_FEED, "watts": CUT_W}] if is_cut else None}


def budget_manifest(name: str, spec: Spec) -> dict[str, Any]:
    given = {field: value for field, value in spec.items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": "PowerBudget", "metadata": {"name": name}, "spec": given}
