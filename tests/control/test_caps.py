"""What a profile means in caps, always within the hardware's range."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from joulie.control.caps import Caps
from joulie.model.api import NodeHardware
from joulie.model.snapshot import Node
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    assignment_of,
    hardware,
    known_node,
    node,
    plan,
    power_of,
    snapshot,
    twin,
)

ABSOLUTE = {"CPU_WRITE_ABSOLUTE_CAPS": "true", "GPU_WRITE_ABSOLUTE_CAPS": "true"}
NVL = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-NVL", 4)  # 800 W; 200 to 400 W each
UNKNOWN = node("a", nvidia=2)


def caps(of: Node, env: dict[str, str], *told: NodeHardware) -> Caps:
    return assignment_of(plan(snapshot([of], told=told), env)).caps


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(ALL_ECO, Caps(60, None, 60, None), id="eco"),
        pytest.param(ALL_PERFORMANCE, Caps(100, None, 100, None), id="performance"),
        pytest.param({**ALL_ECO, "CPU_ECO_CAP_PCT_OF_MAX": "45.5"}, Caps(45.5, None, 60), id="CPU eco percent"),
        pytest.param({**ALL_ECO, "GPU_ECO_CAP_PCT_OF_MAX": "72.5"}, Caps(60, None, 72.5), id="GPU eco percent"),
        pytest.param(
            {**ALL_PERFORMANCE, "CPU_PERFORMANCE_CAP_PCT_OF_MAX": "95", "GPU_PERFORMANCE_CAP_PCT_OF_MAX": "90"},
            Caps(95, None, 90),
            id="performance percents",
        ),
        pytest.param(
            {**ALL_ECO, "CPU_WRITE_ABSOLUTE_CAPS": "true"}, Caps(None, 160, 60), id="absolute CPU: watts instead"
        ),
        pytest.param(
            {**ALL_ECO, "GPU_WRITE_ABSOLUTE_CAPS": "true"}, Caps(60, None, 60, 240), id="absolute GPU: watts besides"
        ),
        pytest.param({**ALL_PERFORMANCE, **ABSOLUTE}, Caps(None, 400, 100, 400), id="5,000 W are clamped to 400 W"),
        pytest.param({**ALL_ECO, **ABSOLUTE, "ECO_CAP_WATTS": "350.5"}, Caps(None, 350.5, 60, 240), id="eco watts"),
        pytest.param(
            {**ALL_PERFORMANCE, **ABSOLUTE, "PERFORMANCE_CAP_WATTS": "370"}, Caps(None, 370, 100, 400), id="370 W"
        ),
        pytest.param({**ALL_ECO, "GPU_ECO_CAP_PCT_OF_MAX": "20"}, Caps(60, None, 50), id="raised to the GPU's minimum"),
        pytest.param(
            {**ALL_ECO, **ABSOLUTE, "GPU_ECO_CAP_PCT_OF_MAX": "20"}, Caps(None, 160, 50, 200), id="in watts too"
        ),
    ],
)
def test_profiles_in_percent_and_in_watts(env: dict[str, str], expected: Caps) -> None:
    assert caps(NVL, env) == expected


def test_the_catalogues_lowest_ctdp_bounds_neither_percent_nor_watts() -> None:
    env = {**ALL_ECO, "CPU_ECO_CAP_PCT_OF_MAX": "20", "ECO_CAP_WATTS": "1", "CPU_MIN_CAP_PCT": "1"}
    assert caps(known_node("a"), env) == Caps(20)
    assert caps(known_node("a"), {**env, **ABSOLUTE}) == Caps(None, 4)


@pytest.mark.parametrize(
    ("env", "floor_w"), [({}, 160), ({"CPU_MIN_CAP_PCT": "60"}, 240), ({"ECO_CAP_WATTS": "170"}, 170)]
)
@pytest.mark.parametrize("sockets", [1, 2, 4])
def test_watts_are_those_of_a_package_and_never_below_a_share_of_its_maximum(
    env: dict[str, str], floor_w: float, sockets: int
) -> None:
    decided = plan([known_node("a", sockets=sockets)], {**ALL_ECO, **ABSOLUTE, **env})
    assert assignment_of(decided).caps == Caps(None, floor_w)
    assert assignment_of(decided).caps.cpu_w(assignment_of(decided).machine) == floor_w * sockets
    assert power_of(decided).cpu_capped_power_w == pytest.approx(floor_w * sockets)


class TestStatedMinimum:
    RANGE: ClassVar = {"capRange": {"minWattsPerSocket": 200, "maxWattsPerSocket": 250}, "sockets": 2}

    def test_percent_is_raised_to_it(self) -> None:
        assert caps(node("a"), ALL_ECO, hardware("a", cpu=self.RANGE)) == Caps(80)

    def test_watts_of_a_package_are_raised_to_it(self) -> None:
        assert caps(node("a"), {**ALL_ECO, **ABSOLUTE}, hardware("a", cpu=self.RANGE)) == Caps(None, 200)

    def test_it_goes_before_the_share_of_the_maximum(self) -> None:
        low = {"capRange": {"minWattsPerSocket": 50, "maxWattsPerSocket": 250}, "sockets": 2}
        env = {**ALL_ECO, **ABSOLUTE, "ECO_CAP_WATTS": "60"}
        assert caps(node("a"), env, hardware("a", cpu=low)) == Caps(None, 60)

    def test_above_the_maximum_it_gives_way(self) -> None:
        odd = {"capRange": {"minWattsPerSocket": 300, "maxWattsPerSocket": 250}}
        assert caps(node("a"), ALL_ECO, hardware("a", cpu=odd)) == Caps(100)
        assert caps(node("a"), {**ALL_ECO, **ABSOLUTE}, hardware("a", cpu=odd)) == Caps(None, 250)

    def test_of_gpu_model_caps_json_counts(self) -> None:
        env = {**ALL_ECO, "GPU_MODEL_CAPS_JSON": '{"H100 NVL": {"minCapWatts": 320}}'}
        assert caps(NVL, env) == Caps(60, None, 80)

    def test_beside_an_estimated_maximum_it_still_raises_percent(self) -> None:
        lone = hardware("a", cpu={"capRange": {"minWattsPerSocket": 280}})
        assert caps(node("a"), ALL_ECO, lone) == Caps(80)  # of 3.5 W × 100 cores

    @pytest.mark.parametrize("useless", [0, -10, None])
    def test_zero_negative_or_absent_is_none(self, useless: float | None) -> None:
        told = hardware("a", cpu={"capRange": {"minWattsPerSocket": useless, "maxWattsPerSocket": 250}})
        assert caps(node("a"), {**ALL_ECO, "CPU_ECO_CAP_PCT_OF_MAX": "1"}, told) == Caps(1)


def test_with_no_known_maximum_only_percent_is_written() -> None:
    assert caps(UNKNOWN, {**ALL_ECO, **ABSOLUTE}) == Caps(60, None, 60, None)


def test_each_device_by_itself_decides_whether_watts_can_be_written() -> None:
    cpu_known = node("a", {"joulie.io/hw.cpu-model": "EPYC-9654"}, nvidia=2)
    assert caps(cpu_known, {**ALL_ECO, **ABSOLUTE}) == Caps(None, 160, 60, None)
    gpu_known = node("a", {"joulie.io/hw.gpu-model": "L40S"}, nvidia=2)
    assert caps(gpu_known, {**ALL_ECO, **ABSOLUTE}) == Caps(60, None, 60, 210)


@pytest.mark.parametrize("max_w", [295.0, 139.0, 556.0, 302.0, 700.1])
@pytest.mark.parametrize("min_w", [50.0, 100.0, 139.0])
def test_gpu_watts_never_miss_an_end_of_the_range_by_a_rounding_error(min_w: float, max_w: float) -> None:
    told = hardware("a", gpu={"capRangePerGpu": {"minWatts": min_w, "maxWatts": max_w}})
    low = caps(UNKNOWN, {**ALL_ECO, **ABSOLUTE, "GPU_ECO_CAP_PCT_OF_MAX": "1"}, told)
    assert low.gpu_w_each == pytest.approx(min_w, abs=1e-9)
    assert min_w <= (low.gpu_w_each or 0) <= max_w
    assert caps(UNKNOWN, {**ALL_PERFORMANCE, **ABSOLUTE}, told).gpu_w_each == max_w


@pytest.mark.parametrize("max_w", [100.078, 100.092, 100.218, 100.372])
def test_a_cap_at_the_maximum_is_at_most_100_percent(max_w: float) -> None:
    # 100 · w / w is 100.00000000000001 for these, more than NodeTwin may hold.
    told = hardware("a", cpu={"capRange": {"maxWattsPerSocket": max_w}}, gpu={"capRangePerGpu": {"maxWatts": max_w}})
    decided = plan(snapshot([UNKNOWN], told=[told]), {**ALL_PERFORMANCE, **ABSOLUTE, "PERFORMANCE_CAP_WATTS": "99999"})
    assert assignment_of(decided).caps.cpu_w_each == max_w
    assert decided.twins.columns["cpu_pct"] == [100]
    assert decided.twins.columns["gpu_pct"] == [100]


def test_watts_become_percent_of_the_maximum_in_the_twin() -> None:
    decided = plan([NVL], {**ALL_ECO, **ABSOLUTE, "ECO_CAP_WATTS": "200"})
    assert decided.twins.columns["cpu_pct"] == [50]
    assert decided.twins.columns["gpu_pct"] == pytest.approx([60])
    assert power_of(decided).node_capped_power_w == pytest.approx(2 * 200 + 4 * 240)


class TestCordoned:
    """A cordoned node keeps what its twin's spec holds, whatever the settings say now."""

    @pytest.mark.parametrize(
        ("spec", "cpu_pct", "gpu_pct"),
        [
            pytest.param({}, 100, 100, id="nothing written"),
            pytest.param({"cpu": {"packagePowerCapPctOfMax": 55}}, 55, 100, id="CPU percent"),
            pytest.param({"cpu": {"packagePowerCapWatts": 200}}, 50, 100, id="CPU watts"),
            pytest.param(
                {"cpu": {"packagePowerCapWatts": 200, "packagePowerCapPctOfMax": 90}}, 50, 100, id="watts win"
            ),
            pytest.param({"cpu": {"packagePowerCapWatts": 5000}}, 100, 100, id="clamped"),
            pytest.param({"gpu": {"powerCap": {"capPctOfMax": 75}}}, 100, 75, id="GPU percent"),
            pytest.param({"gpu": {"powerCap": {"capPctOfMax": 5}}}, 100, 50, id="GPU percent raised"),
            pytest.param({"gpu": {"powerCap": {"capWattsPerGpu": 300}}}, 100, 75, id="GPU watts"),
        ],
    )
    def test_its_caps_are_those_already_written(self, spec: dict[str, Any], cpu_pct: float, gpu_pct: float) -> None:
        cordoned = Node(NVL.name, NVL.labels, True, NVL.capacity_cores)
        decided = plan(snapshot([cordoned], twins=[twin("a", spec)]), ALL_ECO)
        assert decided.assignments == ()
        assert decided.left_alone == ("a",)
        assert decided.twins.columns["cpu_pct"] == [cpu_pct]
        assert decided.twins.columns["gpu_pct"] == [gpu_pct]
