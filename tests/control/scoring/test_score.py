"""What a node is worth to a pod, and where it may not go."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from joulie.control.placement.board import schedulable_class
from joulie.control.placement.score_table import rejection
from joulie.control.scoring import TERMS, integer_scores
from joulie.model.api import NodeTwin
from joulie.model.names import DRAINING_LABEL, POWER_PROFILE_LABEL
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Snapshot
from tests.support.small_clusters import NOW, fresh_twin, hardware, known_node, node, pod, scores, snapshot, twin

# A node of 350 W and 100 cores: 0.7 × (asked/100) × 350 W.
FIFTY_WATTS = pod("asking", cores=50 / 0.7 / 350 * 100, wants="performance")
NOTHING = {"measuredNodePowerW": 0, "nodeCappedPowerW": 600}

WITH_FACILITY = {"ENABLE_FACILITY_METRICS": "true"}


def one(twin_of_a: NodeTwin | None, asking: Any = None, env: dict[str, str] | None = None, **more: Any) -> Any:
    cluster = snapshot([node("a")], twins=[twin_of_a] if twin_of_a else [], **more)
    return scores(cluster, asking, env)["a"]


def test_the_seeds_half_full_node_scores_41_2() -> None:
    scored = one(fresh_twin(), FIFTY_WATTS)
    assert scored.breakdown["podMarginalW"] == pytest.approx(50)
    assert scored.breakdown["headroomScore"] == pytest.approx(250 / 6)
    assert scored.breakdown["coolingTerm"] == pytest.approx(12)
    assert scored.score == pytest.approx(41.2, abs=0.04)


def test_the_seeds_ideal_eco_node_scores_95_for_a_standard_pod() -> None:
    scored = one(fresh_twin(state="eco", power=NOTHING, predictedCoolingStressScore=0))
    assert scored.breakdown["profileBonus"] == 10
    assert scored.score == pytest.approx(95)


class TestTerms:
    def test_a_pod_beyond_the_budget_makes_headroom_negative_and_the_score_0(self) -> None:
        scored = one(fresh_twin(power={"measuredNodePowerW": 1200, "nodeCappedPowerW": 600}), FIFTY_WATTS)
        assert scored.breakdown["headroomScore"] == pytest.approx(-650 / 6)
        assert scored.score == 0

    def test_a_score_above_100_is_clamped(self) -> None:
        falling = {**NOTHING, "powerTrendWPerMin": -900}
        assert one(fresh_twin(state="eco", power=falling, predictedCoolingStressScore=0)).score == 100

    @pytest.mark.parametrize(
        "power",
        [{}, {"measuredNodePowerW": 5}, {"nodeCappedPowerW": 5}, {"nodeCappedPowerW": 0, "measuredNodePowerW": 0}],
    )
    def test_without_power_the_predicted_headroom_stands_in_whatever_the_pod_asks(
        self, power: dict[str, float]
    ) -> None:
        status = {"lastUpdated": format_time(NOW), "predictedPowerHeadroomScore": 40, "powerMeasurement": power}
        scored = one(twin("a", status=status), FIFTY_WATTS)
        assert scored.breakdown["headroomScore"] == 40
        assert scored.score == pytest.approx(0.7 * 40 + 15)

    @pytest.mark.parametrize(
        ("trend", "elsewhere", "bonus"),
        [
            pytest.param(0, 0, 0, id="flat"),
            pytest.param(60, 0, -10, id="rising costs"),
            pytest.param(-60, 0, 10, id="falling earns"),
            pytest.param(180, 0, -25, id="at most 25"),
            pytest.param(-180, 0, 25, id="at least minus 25"),
            pytest.param(30, 470, -5, id="a cluster trend of 500 is steady"),
            pytest.param(30, 471, -15, id="of 501 it is a burst"),
            pytest.param(-30, -470, 5, id="falling by 500 is steady"),
            pytest.param(-30, -471, 15, id="falling by 501 is a burst"),
            pytest.param(30, -531, -15, id="the sum counts, not the size of its parts"),
        ],
    )
    def test_trend_bonus(self, trend: float, elsewhere: float, bonus: float) -> None:
        twins = [
            fresh_twin("a", power={"powerTrendWPerMin": trend}),
            fresh_twin("departed", power={"powerTrendWPerMin": elsewhere}),  # its node is gone: it counts
            fresh_twin("old", age_s=301, power={"powerTrendWPerMin": 9999}),  # stale: it does not
        ]
        found = scores(snapshot([node("a"), node("old")], twins=twins))
        assert list(found) == ["a", "old"]
        assert found["a"].breakdown is not None
        assert found["a"].breakdown["trendBonus"] == pytest.approx(bonus)

    @pytest.mark.parametrize(
        ("state", "standard"),
        [
            ("eco", (10, 0, 0)),
            ("performance", (0, 0, -15)),
            ("draining", (0, -30, 0)),
            ("", (0, 0, 0)),
        ],
    )
    def test_bonus_penalty_and_relief_are_for_standard_pods(self, state: str, standard: tuple[float, ...]) -> None:
        twins = [fresh_twin("a", state), fresh_twin("p")]
        cluster = snapshot([node("a")], twins=twins)
        for asking, expected in ((pod("x"), standard), (pod("x", wants="performance"), (0, 0, 0))):
            breakdown = scores(cluster, asking)["a"].breakdown
            assert breakdown is not None
            found = (breakdown["profileBonus"], breakdown["drainingPenalty"], breakdown["pressureRelief"])
            assert found == expected

    def test_score_is_the_sum_of_its_terms(self) -> None:
        scored = one(fresh_twin(power={"powerTrendWPerMin": 12}), pod("x", cores=10))
        parts = scored.breakdown
        total = parts["headroomScore"] * 0.7 + sum(parts[term.key] for term in TERMS)
        assert scored.score == pytest.approx(total)

    def test_a_draining_node_is_worth_30_points_less_to_a_standard_pod_than_one_without_a_class(self) -> None:
        plain, draining = one(fresh_twin("a", "")), one(fresh_twin("a", "draining"))
        assert plain.score - draining.score == pytest.approx(30)


class TestPressure:
    def relief(self, *twins: NodeTwin) -> float:
        breakdown = scores(snapshot([node("a")], twins=[fresh_twin("a"), *twins]))["a"].breakdown
        assert breakdown is not None
        return breakdown["pressureRelief"]

    @pytest.mark.parametrize(
        ("others", "pressure"),
        [
            pytest.param([], 50, id="half full"),
            pytest.param([fresh_twin("b", power=NOTHING)], 25, id="an average"),
            pytest.param([fresh_twin("b", "eco", power=NOTHING)], 50, id="eco nodes do not count"),
            pytest.param([fresh_twin("b", "draining", power=NOTHING)], 50, id="draining nodes do not count"),
            pytest.param([fresh_twin("b", age_s=301, power=NOTHING)], 50, id="stale twins do not count"),
            pytest.param([fresh_twin("b", power={"measuredNodePowerW": 9e5})], 75, id="no worse than full"),
            pytest.param(
                [twin("b", status={"schedulableClass": "performance", "lastUpdated": format_time(NOW),
                                   "predictedPowerHeadroomScore": 30})], 60, id="the predicted headroom stands in",
            ),
        ],
    )  # fmt: skip
    def test_is_the_mean_congestion_of_all_performance_twins_even_without_a_node(
        self, others: list[NodeTwin], pressure: float
    ) -> None:
        assert self.relief(*others) == pytest.approx(-0.3 * pressure)

    def test_a_twin_without_class_counts_by_its_nodes_label(self) -> None:
        nodes = [node("a", {POWER_PROFILE_LABEL: "performance"}), node("e", {POWER_PROFILE_LABEL: "eco"})]
        twins = [fresh_twin("a", ""), fresh_twin("e", "unknown", power=NOTHING)]
        found = scores(snapshot(nodes, twins=twins))
        assert found["a"].breakdown is not None
        assert found["a"].breakdown["pressureRelief"] == pytest.approx(-15)
        assert found["e"].breakdown is not None
        assert found["e"].breakdown["profileBonus"] == 10

    def test_no_performance_node_makes_no_pressure(self) -> None:
        scored = one(fresh_twin("a", "eco"))
        assert scored.breakdown["pressureRelief"] == 0

    def test_pods_bound_meanwhile_do_not_add_to_it(self) -> None:
        crowd = [pod(f"p{i}", "a", cores=50, scheduled_at_s=NOW) for i in range(9)]
        assert one(fresh_twin(), pods=crowd).breakdown["pressureRelief"] == pytest.approx(-15)


class TestMarginal:
    GPU_NODE = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-NVL", 4)

    @pytest.mark.parametrize(
        ("asking", "watts"),
        [
            (pod("x", cores=19.2), 56),
            (pod("x", gpus=1), 260),
            (pod("x", gpus=1, wants="performance"), 340),
            (pod("x", cores=9999, gpus=99), 560 + 1040),
            (pod("x"), 0),
        ],
    )
    @pytest.mark.parametrize(
        ("env", "pue", "factor"),
        [
            ({}, 1.6, 1),  # not asked for, so it weighs nothing
            ({"ENABLE_FACILITY_METRICS": "false"}, 1.6, 1),
            (WITH_FACILITY, None, 1),
            (WITH_FACILITY, 1.6, 1.6),
            (WITH_FACILITY, 1, 1),
            (WITH_FACILITY, 0.8, 1),
        ],
    )
    def test_shares_of_the_node_times_pue(
        self, asking: Any, watts: float, env: dict[str, str], pue: float | None, factor: float
    ) -> None:
        cluster = snapshot([self.GPU_NODE], twins=[fresh_twin("a", estimatedPUE=pue)])
        breakdown = scores(cluster, asking, env)["a"].breakdown
        assert breakdown is not None
        assert breakdown["podMarginalW"] == pytest.approx(watts * factor)

    def test_a_node_without_gpu_has_no_gpu_term(self) -> None:
        assert one(fresh_twin(), pod("x", gpus=8)).breakdown["podMarginalW"] == 0

    def test_a_node_of_unknown_cores_has_no_cpu_term(self) -> None:
        found = scores(snapshot([node("a", cores=0)], twins=[fresh_twin()]), pod("x", cores=8))["a"]
        assert found.breakdown is not None
        assert found.breakdown["podMarginalW"] == 0

    def test_shares_are_of_the_capacity_even_where_fewer_cores_are_told(self) -> None:
        told = [hardware("a", cpu={"totalCores": 50, "capRange": {"maxWattsPerSocket": 350}})]
        assert one(fresh_twin(), pod("x", cores=50), told=told).breakdown["podMarginalW"] == pytest.approx(122.5)


class TestAge:
    @pytest.mark.parametrize(
        ("last_updated", "fresh"),
        [
            pytest.param(format_time(NOW), True, id="now"),
            pytest.param(format_time(NOW - 300), True, id="exactly the threshold"),
            pytest.param(format_time(NOW - 301), False, id="a second more"),
            pytest.param(format_time(NOW + 3600), True, id="the future"),
            pytest.param("2026-11-01T13:00:00+01:00", True, id="another zone"),
            pytest.param("soon", False, id="unreadable"),
            pytest.param("", False, id="empty"),
            pytest.param(None, False, id="absent"),
        ],
    )
    def test_a_twin_that_is_stale_or_undated_scores_50(self, last_updated: str | None, fresh: bool) -> None:
        written = {"schedulableClass": "eco", "powerMeasurement": NOTHING}
        if last_updated is not None:
            written["lastUpdated"] = last_updated
        scored = one(twin("a", status=written), pod("x", cores=100))
        assert (scored.breakdown is not None) is fresh
        assert (scored.score == 50) is not fresh

    def test_the_threshold_is_a_setting(self) -> None:
        assert one(fresh_twin(age_s=400), env={"TWIN_STALENESS_THRESHOLD": "10m"}).breakdown is not None
        assert one(fresh_twin(age_s=31), env={"TWIN_STALENESS_THRESHOLD": "30s"}).breakdown is None

    def test_no_twin_scores_50_for_any_pod_and_says_so(self) -> None:
        for asking in (pod("x"), pod("x", cores=1000, wants="performance")):
            scored = one(None, asking)
            assert (scored.score, scored.breakdown, scored.feasible) == (50, None, True)
            assert scored.reason == "it has no twin: neutral score 50"


class TestFilter:
    @pytest.mark.parametrize(
        ("said", "label", "expected"),
        [
            ("performance", "eco", "performance"),
            ("eco", "performance", "eco"),
            ("draining", "", "draining"),
            ("", "eco", "eco"),
            ("unknown", "performance", "performance"),
            (None, "eco", "eco"),
            (None, "turbo", "unknown"),
            (None, "", "unknown"),
        ],
    )
    def test_the_twins_class_counts_else_the_label(self, said: str | None, label: str, expected: str) -> None:
        status = None if said is None else twin("a", status={"schedulableClass": said}).status
        labels = {POWER_PROFILE_LABEL: label, DRAINING_LABEL: "true"} if label else {}
        assert schedulable_class(status, labels, POWER_PROFILE_LABEL) == expected

    @pytest.mark.parametrize("node_class", ["performance", "eco", "draining", "unknown"])
    def test_performance_pods_stay_off_eco_and_draining_nodes_and_standard_pods_go_anywhere(
        self, node_class: str
    ) -> None:
        assert rejection("standard", node_class) is None
        refused = rejection("performance", node_class)
        assert (refused is not None) is (node_class in ("eco", "draining"))
        assert refused is None or node_class in refused

    def test_a_stale_class_still_filters_and_the_refused_node_is_scored_too(self) -> None:
        scored = one(fresh_twin("a", "eco", age_s=9999), pod("x", wants="performance"))
        assert (scored.feasible, scored.score) == (False, 50)
        scored = one(fresh_twin("a", "draining"), FIFTY_WATTS)
        assert not scored.feasible
        assert scored.reason == "node is draining, and the pod's class is performance"
        assert scored.score == pytest.approx(41.2, abs=0.04)

    def test_every_node_is_scored_in_scope_or_not_sorted_by_name(self) -> None:
        nodes = [
            node("z"),
            node("b", cordoned=True),
            node("a", {"joulie.io/managed": "no", "joulie.io/reserved": "true"}),
        ]
        assert list(scores(snapshot(nodes, twins=[fresh_twin("m")]))) == ["a", "b", "z"]


class TestRecentPods:
    def recent_w(self, *pods: Any, env: dict[str, str] | None = None, **status: Any) -> float:
        scored = one(fresh_twin(age_s=60, **status), pod("asking", "a", cores=10, scheduled_at_s=NOW), env, pods=pods)
        watts: float = scored.breakdown["recentPodsW"]
        assert scored.breakdown["headroomScore"] == pytest.approx(
            (600 - 300 - watts - scored.breakdown["podMarginalW"]) / 6
        )
        return watts

    @pytest.mark.parametrize(
        ("bound", "watts"),
        [
            pytest.param(pod("p", "a", cores=10, scheduled_at_s=NOW - 60), 24.5, id="at the very second"),
            pytest.param(pod("p", "a", cores=10, scheduled_at_s=NOW), 24.5, id="since"),
            pytest.param(pod("p", "a", cores=10, scheduled_at_s=NOW - 61), 0, id="before"),
            pytest.param(pod("p", "a", cores=10), 0, id="at an unknown time"),
            pytest.param(pod("p", "a", cores=10, scheduled_at_s=NOW, finished=True), 0, id="finished"),
            pytest.param(pod("p", "a", cores=10, scheduled_at_s=NOW, terminating=True), 24.5, id="terminating"),
            pytest.param(pod("p", "b", cores=10, scheduled_at_s=NOW), 0, id="elsewhere"),
            pytest.param(pod("asking", "a", cores=10, scheduled_at_s=NOW), 24.5, id="the pod itself"),
        ],
    )
    def test_count_when_bound_since_the_twin_was_written(self, bound: Any, watts: float) -> None:
        assert self.recent_w(bound) == pytest.approx(watts)

    def test_count_without_pue(self) -> None:
        assert self.recent_w(pod("p", "a", cores=10, scheduled_at_s=NOW), estimatedPUE=2) == pytest.approx(24.5)

    def test_can_be_switched_off(self) -> None:
        off = {"EXTENDER_COUNT_RECENT_PODS": "false"}
        assert self.recent_w(pod("p", "a", cores=10, scheduled_at_s=NOW), env=off) == 0


@pytest.mark.parametrize(
    ("score", "score_max", "sent"),
    [
        (41.2, 100, 41), (41.5, 100, 42), (42.5, 100, 43), (0, 100, 0), (0.49, 100, 0), (100, 100, 100),
        (99.5, 100, 100), (50, 10, 5), (54.9, 10, 5), (55, 10, 6), (100, 10, 10), (49.9, 1, 0), (50, 1, 1),
    ],
)  # fmt: skip
def test_over_http_a_score_is_a_whole_number_rounded_half_up(score: float, score_max: int, sent: int) -> None:
    assert integer_scores(np.array([score]), score_max).tolist() == [sent]


def test_whole_numbers_and_decimals_read_the_same() -> None:
    def cluster(number: str) -> Snapshot:
        text = f"""{{"metadata": {{"name": "a"}}, "status": {{"schedulableClass": "performance",
            "lastUpdated": "2026-11-01T12:00:00Z", "predictedCoolingStressScore": {number}, "estimatedPUE": {number},
            "powerMeasurement": {{"measuredNodePowerW": {number}, "nodeCappedPowerW": {number},
            "powerTrendWPerMin": {number}}}}}}}"""
        return snapshot([node("a")], twins=[msgspec.json.decode(text, type=NodeTwin)])

    assert scores(cluster("60")) == scores(cluster("60.0"))
    assert cluster("60") == cluster("60.0")
