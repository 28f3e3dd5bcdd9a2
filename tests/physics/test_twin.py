"""The digital twin's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from joulie.errors import PluginError
from joulie.model.names import COOLING_ZONE_LABEL, RACK_LABEL
from joulie.model.snapshot import Telemetry
from joulie.physics import twin as formulas
from joulie.physics.cooling import LinearCoolingModel, Numbers
from joulie.settings import TwinSettings
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    NOW,
    hardware,
    known_node,
    node,
    plan,
    power_of,
    snapshot,
    status_of,
    twin,
)

# The seeds' example: two sockets of 400 W and four GPUs of 400 W.
REFERENCE = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-NVL", 4)


def test_cooling_stress_of_the_seeds_eco_node_at_25_degrees_is_31_3() -> None:
    decided = plan([REFERENCE], {**ALL_ECO, "AMBIENT_TEMP_C": "25"})
    assert power_of(decided).node_capped_power_w == pytest.approx(1440)
    assert status_of(decided).predicted_cooling_stress_score == pytest.approx(31.3)


def test_psu_stress_of_30_kw_on_a_50_kw_rack_is_60() -> None:
    # Idle, each draws 20 % of 350 W and of ten GPUs of 1,840 W: 3,750 W.
    eight = [node(f"n{i}", {RACK_LABEL: "r"}, nvidia=10) for i in range(8)]
    told = [hardware(f"n{i}", gpu={"capRangePerGpu": {"maxWatts": 1840}}) for i in range(8)]
    decided = plan(snapshot(eight, told=told), ALL_PERFORMANCE)
    assert math.fsum(decided.twins.columns["measured_w"]) == pytest.approx(30_000)
    assert decided.twins.columns["psu_stress"] == pytest.approx([60] * 8)


def test_headroom_is_cap_factor_times_cooling_factor() -> None:
    status = status_of(plan([REFERENCE], {**ALL_ECO, "AMBIENT_TEMP_C": "25"}))
    assert status.predicted_power_headroom_score == pytest.approx(0.6 * (1 - 0.313) * 100)


def test_without_a_gpu_the_gpu_cap_counts_as_100_in_the_headroom_and_is_absent_from_the_cap_state() -> None:
    status = status_of(plan([known_node("a")], ALL_ECO))
    stress = 480 / 4000 * 80
    assert status.predicted_power_headroom_score == pytest.approx((60 + 100) / 200 * (1 - stress / 100) * 100)
    assert status.effective_cap_state is not None
    assert status.effective_cap_state.cpu_pct == 60
    assert status.effective_cap_state.gpu_pct is None
    assert status.power_measurement is not None
    assert status.power_measurement.gpu_tdp_w == 0
    assert status.power_measurement.gpu_capped_power_w == 0


@pytest.mark.parametrize(
    ("power_w", "ambient_c", "stress"),
    [(4000, 20, 80), (4000, 19.9, 80), (4000, -30, 80), (0, 20, 0), (0, 40, 10), (2000, 21, 40.5), (9000, 60, 200)],
)
def test_linear_cooling_grows_with_power_and_with_each_degree_above_20(
    power_w: float, ambient_c: float, stress: float
) -> None:
    model = LinearCoolingModel(TwinSettings())
    assert model.stress(np.array([power_w]), np.array([ambient_c])) == pytest.approx([stress])


def test_reference_node_power_and_rack_capacity_are_settings() -> None:
    env = {**ALL_ECO, "REFERENCE_NODE_POWER_WATTS": "1440", "RACK_CAPACITY_WATTS": "896"}
    status = status_of(plan([REFERENCE], env))
    assert status.predicted_cooling_stress_score == pytest.approx(80)
    assert status.predicted_psu_stress_score == pytest.approx(100 * (128 + 0.2 * 1600) / 896)


@pytest.mark.parametrize(
    ("gpus", "reference_w"),
    [(0, 4000), (3, 4000), (4, 4500), (8, 8000)],  # 1.25 × (800 W + 700 W a board), but no less than 4,000 W
)
def test_an_automatic_reference_follows_the_nodes_maximum_where_that_is_large(gpus: int, reference_w: float) -> None:
    large = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-80GB-HBM3", gpus)
    decided = plan([large], {**ALL_PERFORMANCE, "REFERENCE_NODE_POWER_WATTS": "auto"})
    assert power_of(decided).node_tdp_w == 800 + 700 * gpus
    assert status_of(decided).predicted_cooling_stress_score == pytest.approx((800 + 700 * gpus) / reference_w * 80)


def test_the_seeds_example_is_the_same_with_an_automatic_reference() -> None:
    env = {**ALL_ECO, "AMBIENT_TEMP_C": "25", "REFERENCE_NODE_POWER_WATTS": "auto"}
    assert status_of(plan([REFERENCE], env)).predicted_cooling_stress_score == pytest.approx(31.3)


@pytest.mark.parametrize(
    ("raw", "score"),
    [(-3.0, 0), (0.0, 0), (55.5, 55.5), (100.0, 100), (100.1, 100), (math.inf, 100), (-math.inf, 0), (math.nan, 100)],
)
def test_scores_are_clamped_and_what_is_no_number_is_the_worst_stress(raw: float, score: float) -> None:
    assert float(formulas.clamp_score(raw)) == score


def test_stress_beyond_all_bounds_leaves_no_headroom_and_stays_within_100() -> None:
    status = status_of(plan([REFERENCE], {"REFERENCE_NODE_POWER_WATTS": "1", "RACK_CAPACITY_WATTS": "1"}))
    assert status.predicted_cooling_stress_score == 100
    assert status.predicted_psu_stress_score == 100
    assert status.predicted_power_headroom_score == 0


@pytest.mark.parametrize(
    ("cores", "gpus", "score"),
    [
        (0, 0, 0),
        (96, 0, 50),
        (192, 0, 100),
        (384, 0, 100),
        (192, 8, 100),
        (96, 4, 50),
        (192, 4, 75),
        pytest.param(384, 4, 75, id="each part is clamped before averaging"),
        pytest.param(96, 16, 75, id="sixteen GPUs count as eight"),
    ],
)
def test_hardware_density_score(cores: float, gpus: float, score: float) -> None:
    decided = plan([node("a", cores=cores, nvidia=gpus)])
    assert status_of(decided).hardware_density_score == pytest.approx(score)


class TestAmbient:
    def stress_above_20(self, labels: dict[str, str], telemetry: Telemetry, env: dict[str, str]) -> float:
        decided = plan(snapshot([node("a", labels)], telemetry=telemetry), {**ALL_PERFORMANCE, **env})
        stress = status_of(decided).predicted_cooling_stress_score
        assert stress is not None
        return stress - 350 / 4000 * 80

    @pytest.mark.parametrize(
        ("labels", "telemetry", "env", "degrees"),
        [
            pytest.param({}, Telemetry(), {}, 0, id="20 degrees unless told"),
            pytest.param({}, Telemetry(), {"AMBIENT_TEMP_C": "30"}, 10, id="the setting"),
            pytest.param({}, Telemetry(ambient_c=28), {"AMBIENT_TEMP_C": "30"}, 8, id="the facility beats the setting"),
            pytest.param({}, Telemetry(ambient_c=28, zone_ambient_c={"z": 40}), {}, 8, id="no zone label"),
            pytest.param(
                {COOLING_ZONE_LABEL: "z"}, Telemetry(ambient_c=28, zone_ambient_c={"z": 24}), {}, 4, id="the zone wins"
            ),
            pytest.param(
                {COOLING_ZONE_LABEL: "z"}, Telemetry(zone_ambient_c={"y": 40}), {"AMBIENT_TEMP_C": "30"}, 10,
                id="another zone does not matter",
            ),
        ],
    )  # fmt: skip
    def test_the_nearest_temperature_counts(
        self, labels: dict[str, str], telemetry: Telemetry, env: dict[str, str], degrees: float
    ) -> None:
        assert self.stress_above_20(labels, telemetry, env) == pytest.approx(degrees / 2)


class TestSupply:
    """Each idle node of 100 unknown cores draws 70 W: 20 % of 350 W."""

    def stress(self, labels: dict[str, dict[str, str]], telemetry: Telemetry | None = None) -> dict[str, float]:
        nodes = [node(name, own) for name, own in labels.items()]
        decided = plan(snapshot(nodes, telemetry=telemetry), {"RACK_CAPACITY_WATTS": "700"})
        return dict(zip(decided.twins.nodes, decided.twins.columns["psu_stress"], strict=True))

    def test_without_rack_labels_every_node_sees_the_whole_cluster(self) -> None:
        assert self.stress({"a": {}, "b": {}, "c": {}}) == pytest.approx({"a": 30, "b": 30, "c": 30})

    def test_nodes_of_a_rack_see_their_rack_and_a_node_without_rack_sees_all(self) -> None:
        labels = {"a": {RACK_LABEL: "r1"}, "b": {RACK_LABEL: "r1"}, "c": {RACK_LABEL: "r2"}, "d": {}}
        assert self.stress(labels) == pytest.approx({"a": 20, "b": 20, "c": 10, "d": 40})

    def test_an_empty_rack_label_is_no_label(self) -> None:
        assert self.stress({"a": {RACK_LABEL: ""}, "b": {RACK_LABEL: "r"}}) == pytest.approx({"a": 20, "b": 10})

    def test_a_rack_metric_replaces_the_sum_of_that_rack_alone(self) -> None:
        labels = {"a": {RACK_LABEL: "r1"}, "b": {RACK_LABEL: "r2"}, "c": {}}
        stress = self.stress(labels, Telemetry(rack_power_w={"r1": 350, "": 1}))
        assert stress == pytest.approx({"a": 50, "b": 10, "c": 30})

    def test_cordoned_nodes_draw_from_the_rack_and_nodes_out_of_scope_do_not(self) -> None:
        outside = node("z", {RACK_LABEL: "r", "joulie.io/managed": "false"})
        cordoned = node("b", {RACK_LABEL: "r"}, cordoned=True)
        decided = plan([node("a", {RACK_LABEL: "r"}), cordoned, outside], {"RACK_CAPACITY_WATTS": "700"})
        assert list(decided.twins.nodes) == ["a", "b"]
        assert decided.twins.columns["psu_stress"] == pytest.approx([20, 20])


class TestEnforcement:
    """What the agent could not enforce does not count."""

    @pytest.mark.parametrize(
        ("control", "cpu_pct", "gpu_pct"),
        [
            ({}, 60, 60),
            ({"cpu": {"result": "applied"}, "gpu": {"result": "none"}}, 60, 60),
            ({"cpu": {"result": "blocked"}}, 100, 60),
            ({"cpu": {"result": "error"}}, 100, 60),
            ({"gpu": {"result": "blocked"}}, 60, 100),
            ({"gpu": {"result": "error"}, "cpu": {"result": "applied"}}, 60, 100),
        ],
    )
    def test_a_blocked_cap_counts_as_100_percent_everywhere_in_the_twin_but_not_in_the_plan(
        self, control: dict[str, dict[str, str]], cpu_pct: float, gpu_pct: float
    ) -> None:
        decided = plan(snapshot([REFERENCE], twins=[twin("a", status={"controlStatus": control})]), ALL_ECO)
        status, power = status_of(decided), power_of(decided)
        assert status.effective_cap_state is not None
        assert (status.effective_cap_state.cpu_pct, status.effective_cap_state.gpu_pct) == (cpu_pct, gpu_pct)
        assert power.cpu_capped_power_w == pytest.approx(8 * cpu_pct)
        assert power.gpu_capped_power_w == pytest.approx(16 * gpu_pct)
        assert power.node_capped_power_w == pytest.approx(8 * cpu_pct + 16 * gpu_pct)
        assert (power.cpu_tdp_w, power.gpu_tdp_w, power.node_tdp_w) == (800, 1600, 2400)
        [assignment] = decided.assignments
        assert (assignment.caps.cpu_pct, assignment.caps.gpu_pct) == (60, 60)


def test_estimated_pue_is_the_facilitys_and_absent_without_one() -> None:
    assert status_of(plan([node("a")])).estimated_pue is None
    assert status_of(plan(snapshot([node("a")], telemetry=Telemetry(estimated_pue=1.31)))).estimated_pue == 1.31


def test_the_twin_is_dated_in_whole_seconds_and_leaves_the_agents_part_alone() -> None:
    status = status_of(plan([node("a")], now_s=NOW + 0.9))
    assert status.last_updated == "2026-11-01T12:00:00Z"
    assert status.control_status is None


class Constant:
    """A model from outside that does not look at its arguments' shape."""

    name = "constant"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def stress(self, node_power_w: Numbers, ambient_c: Numbers) -> Numbers:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "stress"), [(50.0, 50), (7, 7), ([30.0, 30.0], 30), (math.nan, 100), (-1.0, 0), (np.float32(250), 100)]
)
def test_a_cooling_model_may_answer_one_number_for_all_and_is_clamped(answer: object, stress: float) -> None:
    decided = plan([node("a"), node("b")], cooling=Constant(answer))
    assert decided.twins.columns["cooling_stress"] == [stress, stress]
    assert status_of(decided, "b").predicted_power_headroom_score == pytest.approx(0.8 * (100 - stress))


@pytest.mark.parametrize("answer", [RuntimeError("no\nlicence"), "hot", None, [1.0, 2.0, 3.0]], ids=repr)
def test_a_cooling_model_that_breaks_its_contract_is_named_in_one_line(answer: object) -> None:
    with pytest.raises(PluginError, match=r"^cooling model constant failed: \w+Error: ") as raised:
        plan([node("a"), node("b")], cooling=Constant(answer))
    assert "\n" not in str(raised.value)


def test_a_cluster_without_nodes_has_an_empty_plan() -> None:
    decided = plan([])
    assert decided.assignments == ()
    assert len(decided.twins) == 0
