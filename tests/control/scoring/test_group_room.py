"""Room of a node's power budgets as a term of the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.placement.budget_rooms import groups_in, rooms_in
from joulie.control.scoring.group_room import PENALTY, points
from joulie.model.api import NodeTwin, PowerBudget
from joulie.model.snapshot import Snapshot
from tests.support.small_clusters import NOW, fresh_twin, node, pod, scores, snapshot

WATTS = st.just(0.0) | st.floats(1e-3, 1e6)
# A node of 350 W and 100 cores: 0.7 × (asked/100) × 350 W.
HUNDRED_WATTS = pod("asking", cores=100 / 0.7 / 350 * 100)


def budget(name: str = "racks", spec: Mapping[str, Any] | None = None, **groups: Mapping[str, Any]) -> PowerBudget:
    """r7={"measuredWatts": 900}: groups with their limits of 1,000 W given out in full, unless told otherwise."""
    usual = {"nodes": 1, "limitWatts": 1000, "allocatedWatts": 1000, "floorWatts": 100, "state": "within"}
    told = [{"value": value.strip("_"), **usual, **group} for value, group in groups.items()]
    body = {"metadata": {"name": name}, "spec": {"watts": 1000, **(spec or {})}, "status": {"groups": told}}
    return msgspec.convert(body, PowerBudget)


def held(name: str, *groups: str, released: bool = False, **status: Any) -> NodeTwin:
    """A fresh twin whose node is in these groups."""
    order = {"order": 1, "caps": {"cpuWattsPerPackage": 100}, "groups": list(groups), "released": released}
    plain = msgspec.to_builtins(fresh_twin(name, **status))
    return msgspec.convert({**plain, "spec": {"nodeName": name, "budget": order}}, NodeTwin)


def cluster(*twins: NodeTwin, **more: Any) -> Snapshot:
    return snapshot([node(each.node) for each in twins], twins=twins, **more)


def penalty(found: Snapshot, *budgets: PowerBudget, name: str = "a", asking: Any = HUNDRED_WATTS, **more: Any) -> float:
    breakdown = scores(found, asking, budgets=budgets, **more)[name].breakdown
    assert breakdown is not None
    return breakdown["groupPenalty"]


@given(WATTS, st.floats(-1e6, 1e6) | st.just(np.inf))
def test_a_pod_loses_in_proportion_to_what_is_missing_and_never_more_than_30(pod_w: float, room_w: float) -> None:
    lost = float(points(np.array(pod_w), np.array(room_w)))
    assert -PENALTY <= lost <= 0
    if pod_w <= room_w or pod_w == 0:
        assert lost == 0
    elif room_w <= 0:
        assert lost == pytest.approx(-PENALTY)
    else:
        assert lost == pytest.approx(-PENALTY * (pod_w - room_w) / pod_w)


class TestRoom:
    def test_is_what_the_group_may_draw_and_does_not(self) -> None:
        assert penalty(cluster(held("a", "racks/r7")), budget(r7={"measuredWatts": 800})) == 0
        assert penalty(cluster(held("a", "racks/r7")), budget(r7={"measuredWatts": 940})) == pytest.approx(-12)
        assert penalty(cluster(held("a", "racks/r7")), budget(r7={"measuredWatts": 1100})) == pytest.approx(-30)

    def test_leaves_out_what_is_reserved_for_restarts_and_what_a_cut_takes(self) -> None:
        reserved = budget(r7={"allocatedWatts": 800, "measuredWatts": 750})
        falling = budget(r7={"limitWatts": 800, "allocatedWatts": 1000, "measuredWatts": 750})
        assert penalty(cluster(held("a", "racks/r7")), reserved) == pytest.approx(-15)
        assert penalty(cluster(held("a", "racks/r7")), falling) == pytest.approx(-15)

    def test_of_half_a_feed_counts_twice(self) -> None:
        half = budget(spec={"share": 0.4, "failoverShare": 0.5}, _={"measuredWatts": 960})
        assert rooms_in(half) == {"racks": 80}
        assert penalty(cluster(held("a", "racks")), half) == pytest.approx(-6)

    def test_of_the_narrowest_group_counts(self) -> None:
        groups = budget(r7={"measuredWatts": 200}), budget("feed", a={"measuredWatts": 950})
        assert penalty(cluster(held("a", "racks/r7", "feed/a")), *groups) == pytest.approx(-15)

    def test_is_taken_by_pods_bound_to_any_node_of_the_group_since_its_twin_was_written(self) -> None:
        both = held("a", "racks/r7"), held("b", "racks/r7")
        recent = [pod("new", "b", cores=HUNDRED_WATTS.cpu_cores, scheduled_at_s=NOW)]
        assert penalty(cluster(*both), budget(r7={"measuredWatts": 850})) == 0
        assert penalty(cluster(*both, pods=recent), budget(r7={"measuredWatts": 850})) == pytest.approx(-15)

    def test_is_not_needed_for_cooling_which_no_rack_pays(self) -> None:
        found = cluster(held("a", "racks/r7", estimatedPUE=1.5))
        facility = {"ENABLE_FACILITY_METRICS": "true"}
        assert penalty(found, budget(r7={"measuredWatts": 900}), env=facility) == 0
        assert penalty(found, budget(r7={"measuredWatts": 950}), env=facility) == pytest.approx(-15)


class TestNothingChanges:
    @pytest.mark.parametrize(
        ("twin", "group"),
        [
            (held("a"), {"measuredWatts": 2000}),
            (held("a", "racks/r8"), {"measuredWatts": 2000}),
            (held("a", "racks/r7", released=True), {"measuredWatts": 2000}),
            (held("a", "racks/r7"), {}),
            (held("a", "racks/r7"), {"measuredWatts": 2000, "state": "reported"}),
        ],
        ids=["no-order", "another-group", "released", "not-measured", "only-reported"],
    )
    def test_where_no_enforced_group_of_the_node_is_known(self, twin: NodeTwin, group: dict[str, Any]) -> None:
        found = cluster(twin)
        without, with_budget = (
            scores(found, HUNDRED_WATTS)["a"],
            scores(found, HUNDRED_WATTS, budgets=[budget(r7=group)])["a"],
        )
        assert with_budget.score == without.score
        assert (with_budget.breakdown or {}).get("groupPenalty", 0.0) == 0.0

    def test_of_a_score_or_a_document_without_budgets(self) -> None:
        breakdown = scores(cluster(held("a", "racks/r7")), HUNDRED_WATTS)["a"].breakdown
        assert breakdown is not None
        assert "groupPenalty" not in breakdown

    def test_of_the_neutral_score_of_a_node_without_a_fresh_twin(self) -> None:
        found = cluster(held("a", "racks/r7", age_s=1e6), held("b", "racks/r7"))
        full = budget(r7={"measuredWatts": 2000})
        assert scores(found, HUNDRED_WATTS, budgets=[full])["a"].score == 50


def test_performance_pods_lose_as_standard_ones_do_and_the_total_is_the_sum_of_its_terms() -> None:
    full, found = budget(r7={"measuredWatts": 1000}), cluster(held("a", "racks/r7"))
    asking = msgspec.structs.replace(HUNDRED_WATTS, workload_class="performance")
    before, after = scores(found, asking)["a"], scores(found, asking, budgets=[full])["a"]
    assert before.score - after.score == pytest.approx(min(30, before.score))


def test_the_reason_names_the_group_and_the_watts() -> None:
    full, found = budget(r7={"measuredWatts": 980}), cluster(held("a", "racks/r7"))
    assert scores(found, HUNDRED_WATTS, budgets=[full])["a"].reason.endswith(
        "; racks/r7 has 20 W left, and the pod adds 100 W"
    )


def test_a_twin_without_an_order_is_in_no_group() -> None:
    assert groups_in(None) == groups_in(fresh_twin("a")) == ()
