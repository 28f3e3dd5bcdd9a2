"""Who speaks for a node's power: a meter, else its load, else an estimate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from joulie.model.snapshot import PowerReading, Telemetry, Utilisation
from joulie.physics.power import power_trend_w_per_min
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    NOW,
    known_node,
    node,
    plan,
    pod,
    power_of,
    snapshot,
    status_of,
)

EPYC = known_node("a")  # two EPYC 9654: 800 W, idle 128 W
GPU_NODE = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-NVL", 4)  # and 1,600 W of GPUs


def measured(telemetry: Telemetry, of: Any = EPYC, **env: str) -> tuple[str | None, float | None]:
    decided = plan(snapshot([of], telemetry=telemetry), {**ALL_PERFORMANCE, **env})
    power = power_of(decided)
    return power.source, power.measured_node_power_w


def reading(power_w: float, age_s: float = 0.0, source: Any = "kepler") -> dict[str, PowerReading]:
    return {"a": PowerReading(source, power_w, NOW - age_s)}


def load(cpu: float | None, gpu: float | None = None, age_s: float = 0.0) -> dict[str, Utilisation]:
    return {"a": Utilisation(NOW - age_s, cpu, gpu)}


class TestMeasured:
    @pytest.mark.parametrize("source", ["kepler", "http"])
    def test_a_meter_speaks_first_and_is_named(self, source: str) -> None:
        told = Telemetry(power=reading(333.5, source=source), utilisation=load(0.5))
        assert measured(told) == (source, 333.5)

    @pytest.mark.parametrize(
        ("power_w", "believed"),
        [(0, True), (1200, True), (1200.1, False), (-0.1, False), (math.nan, False), (math.inf, False)],
    )
    def test_only_what_the_hardware_could_draw_is_believed(self, power_w: float, believed: bool) -> None:
        assert measured(Telemetry(power=reading(power_w)))[0] == ("kepler" if believed else "static")

    @pytest.mark.parametrize(
        ("age_s", "env", "source"),
        [
            (120, {}, "kepler"),
            (120.5, {}, "static"),
            (-5, {}, "kepler"),
            (29, {"POWER_MAX_AGE": "30s"}, "kepler"),
            (31, {"POWER_MAX_AGE": "30s"}, "static"),
        ],
    )
    def test_a_reading_that_is_too_old_does_not_count(self, age_s: float, env: dict[str, str], source: str) -> None:
        assert measured(Telemetry(power=reading(300, age_s)), **env)[0] == source

    def test_a_reading_of_another_node_does_not_count(self) -> None:
        assert measured(Telemetry(power={"b": PowerReading("kepler", 300, NOW)}))[0] == "static"

    def test_it_may_exceed_what_the_caps_allow(self) -> None:
        decided = plan(snapshot([EPYC], telemetry=Telemetry(power=reading(700))), ALL_ECO)
        assert power_of(decided).node_capped_power_w == 480
        assert power_of(decided).measured_node_power_w == 700


class TestUtilisation:
    def test_load_speaks_where_no_meter_does_and_goes_through_the_curve(self) -> None:
        assert measured(Telemetry(utilisation=load(0.5))) == ("utilization", 410)

    @pytest.mark.parametrize("distrusted", [reading(-1), reading(300, 999), reading(math.nan)])
    def test_load_speaks_where_the_meter_is_too_old_or_not_believed(self, distrusted: dict[str, PowerReading]) -> None:
        assert measured(Telemetry(power=distrusted, utilisation=load(0.5)))[0] == "utilization"

    def test_the_curve_is_of_two_sockets(self) -> None:
        assert measured(Telemetry(utilisation=load(1)), known_node("a", sockets=1)) == ("utilization", 817 / 2)

    def test_without_a_curve_the_generic_one_stands_in_from_a_fifth_of_the_maximum(self) -> None:
        source, watts = measured(Telemetry(utilisation=load(0.5)), node("a"))
        assert source == "utilization"
        assert watts == pytest.approx(70 + 280 * 0.5**1.15)

    def test_gpus_add_their_own_curve(self) -> None:
        _, watts = measured(Telemetry(utilisation=load(0.5, 0.25)), GPU_NODE)
        assert watts == pytest.approx(410 + 320 + 1280 * 0.25**1.15)

    @pytest.mark.parametrize(
        ("cpu", "gpu"),
        [(None, 0.5), (0.5, None), (-0.1, 0.5), (0.5, 1.1), (math.nan, 0.5), (0.5, math.inf), (None, None)],
    )
    def test_a_load_that_is_missing_or_no_load_falls_to_the_estimate(
        self, cpu: float | None, gpu: float | None
    ) -> None:
        assert measured(Telemetry(utilisation=load(cpu, gpu)), GPU_NODE)[0] == "static"

    def test_a_gpu_load_is_not_needed_without_a_gpu(self) -> None:
        assert measured(Telemetry(utilisation=load(0, math.nan))) == ("utilization", 128)

    @pytest.mark.parametrize(("age_s", "source"), [(120, "utilization"), (121, "static")])
    def test_a_load_that_is_too_old_falls_to_the_estimate(self, age_s: float, source: str) -> None:
        assert measured(Telemetry(utilisation=load(0.5, age_s=age_s)))[0] == source


def test_a_node_rises_and_falls_between_tiers_as_data_come_and_go() -> None:
    steps = [
        Telemetry(),
        Telemetry(utilisation=load(0.5)),
        Telemetry(utilisation=load(0.5), power=reading(300)),
        Telemetry(utilisation=load(0.5), power=reading(300, 200)),
        Telemetry(utilisation=load(0.5, age_s=200), power=reading(300, 200)),
    ]
    assert [measured(step)[0] for step in steps] == ["static", "utilization", "kepler", "utilization", "static"]


class TestStatic:
    def watts(self, of: Any, *pods: Any, **env: str) -> float | None:
        power = power_of(plan(snapshot([of], pods), {**ALL_PERFORMANCE, **env}))
        assert power.source == "static"
        return power.measured_node_power_w

    def test_an_empty_node_idles(self) -> None:
        assert self.watts(EPYC) == 128
        assert self.watts(GPU_NODE) == pytest.approx(128 + 320)
        assert self.watts(node("a")) == pytest.approx(70)

    @pytest.mark.parametrize(
        ("pods", "added_w"),
        [
            pytest.param([pod("p", "a", cores=19.2)], 0.7 * 0.1 * 800, id="CPU share of 0.7"),
            pytest.param([pod("p", "a", gpus=1)], 0.65 * 0.25 * 1600, id="standard GPU"),
            pytest.param([pod("p", "a", "performance", gpus=1)], 0.85 * 0.25 * 1600, id="performance GPU"),
            pytest.param([pod("p", "a", cores=9999)], 0.7 * 800, id="a share is at most the whole node"),
            pytest.param([pod("p", "a", cores=19.2), pod("q", "a", cores=19.2)], 2 * 56, id="pods add up"),
            pytest.param([pod("p", "a", cores=19.2, terminating=True)], 56, id="terminating pods still draw"),
            pytest.param([pod("p", "a", cores=19.2, finished=True)], 0, id="finished pods do not"),
            pytest.param([pod("p", "", cores=19.2), pod("q", "b", cores=19.2)], 0, id="pods elsewhere do not"),
        ],
    )
    def test_pods_add_their_marginal_power(self, pods: list[Any], added_w: float) -> None:
        assert self.watts(GPU_NODE, *pods) == pytest.approx(448 + added_w)

    def test_coefficients_are_settings(self) -> None:
        env = {
            "MARGINAL_CPU_UTIL_COEFF": "0.5",
            "MARGINAL_GPU_UTIL_COEFF_STANDARD": "0.4",
            "MARGINAL_GPU_UTIL_COEFF_PERFORMANCE": "0.9",
        }
        both = pod("p", "a", cores=19.2, gpus=1), pod("q", "a", "performance", gpus=1)
        assert self.watts(GPU_NODE, *both, **env) == pytest.approx(448 + 40 + 160 + 360)

    def test_gpus_asked_of_a_node_without_gpu_add_nothing(self) -> None:
        assert self.watts(EPYC, pod("p", "a", gpus=8)) == 128

    def test_the_caps_bound_the_estimate(self) -> None:
        cluster = snapshot([EPYC], [pod("p", "a", cores=192)])
        assert power_of(plan(cluster, ALL_ECO)).measured_node_power_w == 480
        low = {**ALL_ECO, "CPU_ECO_CAP_PCT_OF_MAX": "10"}
        assert power_of(plan(cluster, low)).measured_node_power_w == 80

    def test_pue_does_not_count_in_it(self) -> None:
        cluster = snapshot([EPYC], [pod("p", "a", cores=19.2)], telemetry=Telemetry(estimated_pue=2.0))
        assert power_of(plan(cluster, ALL_PERFORMANCE)).measured_node_power_w == pytest.approx(184)


class TestTrend:
    @pytest.mark.parametrize(
        ("times_s", "watts", "slope"),
        [
            pytest.param([], [], 0, id="no sample"),
            pytest.param([0], [100], 0, id="one sample"),
            pytest.param([5, 5], [100, 200], 0, id="one moment twice"),
            pytest.param([0, 60], [100, 130], 30, id="two samples"),
            pytest.param([0, 30], [100, 70], -60, id="falling"),
            pytest.param([0, 60, 120, 180], [100, 110, 120, 130], 10, id="a line"),
            pytest.param([0, 60, 120], [100, 130, 100], 0, id="a bump"),
            pytest.param([0, 60, 120], [0, 0, 60], 30, id="least squares, not first to last point by point"),
            pytest.param([1.79e9, 1.79e9 + 60], [100, 130], 30, id="times since 1970"),
        ],
    )
    def test_is_the_least_squares_slope_a_minute(self, times_s: list[float], watts: list[float], slope: float) -> None:
        trend = power_trend_w_per_min(np.array(times_s, dtype=np.float64), np.array(watts, dtype=np.float64))
        assert trend == pytest.approx(slope)

    def test_does_not_depend_on_the_order_of_samples(self) -> None:
        times, watts = np.array([0.0, 10, 25, 60]), np.array([3.0, 9, 1, 5])
        assert power_trend_w_per_min(times[::-1], watts[::-1]) == pytest.approx(power_trend_w_per_min(times, watts))

    def test_is_published_and_0_where_nothing_was_remembered(self) -> None:
        decided = plan(snapshot([node("a"), node("b")], telemetry=Telemetry(trend_w_per_min={"a": -12.5})))
        assert power_of(decided, "a").power_trend_w_per_min == -12.5
        assert power_of(decided, "b").power_trend_w_per_min == 0

    def test_and_measurements_never_touch_the_plan(self) -> None:
        loud = Telemetry(power=reading(800), trend_w_per_min={"a": 900.0}, ambient_c=60.0, estimated_pue=3.0)
        nodes = [EPYC, known_node("b")]
        assert plan(snapshot(nodes, telemetry=loud)).assignments == plan(nodes).assignments


def test_measured_power_of_any_tier_loads_the_supply() -> None:
    telemetry = Telemetry(power=reading(500), utilisation={"b": Utilisation(NOW, 0.5)})
    cluster = snapshot([EPYC, known_node("b"), known_node("c")], telemetry=telemetry)
    status = status_of(plan(cluster, {"RACK_CAPACITY_WATTS": "10000"}))
    assert status.predicted_psu_stress_score == pytest.approx((500 + 410 + 128) / 100)
