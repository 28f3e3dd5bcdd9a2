"""A person's target for one node replaces the policy's."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.control.caps import Caps
from joulie.model.snapshot import Pin
from tests.support.small_clusters import (
    ALL_ECO,
    ALL_PERFORMANCE,
    NOW,
    assignment_of,
    hardware,
    known_node,
    node,
    plan,
    pod,
    snapshot,
    states,
)

ABSOLUTE = {"CPU_WRITE_ABSOLUTE_CAPS": "true", "GPU_WRITE_ABSOLUTE_CAPS": "true"}
# 2 × 400 W of CPU, four GPUs of 350 to 700 W
GPU_NODE = known_node("a", "EPYC-9654", 2, "NVIDIA-H100-80GB-HBM3", 4)


def pin(name: str = "pin", of: str = "a", profile: Any = "eco", **more: Any) -> Pin:
    return Pin(name, of, profile, **more)


def test_a_pin_replaces_the_policys_choice_and_says_so() -> None:
    decided = plan(snapshot([node("a"), node("b")], pins=[pin("mine")]), ALL_PERFORMANCE)
    assert states(decided) == {"a": "eco", "b": "performance"}
    assignment = assignment_of(decided, "a")
    assert assignment.chosen_by == "pinned"
    assert assignment.reason == "pinned to eco by NodePowerProfile/mine"
    assert assignment_of(decided, "b").chosen_by == "static_partition"


def test_a_pin_comes_after_the_policy_ran_over_all_nodes_and_frees_no_place() -> None:
    nodes = [known_node(name) for name in "abcd"]
    assert states(plan(nodes)) == {"a": "performance", "b": "performance", "c": "eco", "d": "eco"}
    pinned = plan(snapshot(nodes, pins=[pin(of="a", profile="eco"), pin("up", of="d", profile="performance")]))
    assert states(pinned) == {"a": "eco", "b": "performance", "c": "eco", "d": "performance"}


def test_a_pinned_eco_node_drains_at_the_settings_performance_caps_not_the_pins() -> None:
    cluster = snapshot([GPU_NODE], [pod("p", "a", "performance")], pins=[pin(cpu_cap_pct=10.0, gpu_cap_w=400.0)])
    assignment = assignment_of(plan(cluster, {**ALL_PERFORMANCE, "CPU_PERFORMANCE_CAP_PCT_OF_MAX": "90"}))
    assert (assignment.profile, assignment.state, assignment.chosen_by) == ("eco", "draining", "pinned")
    assert assignment.caps == Caps(cpu_pct=90, gpu_pct=100)
    assert "pinned to eco by NodePowerProfile/pin" in assignment.reason


class TestWhichOne:
    @pytest.mark.parametrize(
        ("pins", "winner"),
        [
            pytest.param([pin("b", created_at_s=1.0), pin("a", created_at_s=2.0)], "b", id="the oldest"),
            pytest.param([pin("b", created_at_s=1.0), pin("a", created_at_s=1.0)], "a", id="then by name"),
            pytest.param([pin("a", created_at_s=1.0), pin("b")], "b", id="an undated one counts as the oldest"),
            pytest.param(
                [pin("a", created_at_s=1.0, expires_at_s=NOW - 1), pin("b", created_at_s=2.0)],
                "b",
                id="an expired one is passed over",
            ),
        ],
    )
    def test_of_several_for_one_node(self, pins: list[Pin], winner: str) -> None:
        decided = plan(snapshot([node("a")], pins=pins), ALL_PERFORMANCE)
        assert assignment_of(decided).reason.endswith(f"NodePowerProfile/{winner}")
        mirrored = plan(snapshot([node("a")], pins=pins[::-1]), ALL_PERFORMANCE)
        assert mirrored == decided

    def test_the_passed_over_pin_is_said(self) -> None:
        pins = [pin("old", created_at_s=1.0), pin("new", created_at_s=2.0)]
        assert plan(snapshot([node("a")], pins=pins)).warnings == (
            "NodePowerProfile/new: a is pinned by the older old already",
        )

    @pytest.mark.parametrize(
        ("expires_at_s", "state"), [(NOW - 1, "performance"), (NOW, "performance"), (NOW + 0.5, "eco"), (None, "eco")]
    )
    def test_a_pin_ends_at_the_very_second(self, expires_at_s: float | None, state: str) -> None:
        decided = plan(snapshot([node("a")], pins=[pin(expires_at_s=expires_at_s)]), ALL_PERFORMANCE)
        assert states(decided) == {"a": state}
        assert decided.warnings == ()

    @pytest.mark.parametrize(
        ("of", "where"),
        [("unmanaged", "out of scope"), ("reserved", "out of scope"), ("nowhere", "not in the cluster")],
    )
    def test_a_pin_on_a_node_out_of_scope_is_ignored_with_a_warning(self, of: str, where: str) -> None:
        nodes = [
            node("a"),
            node("unmanaged", {"joulie.io/managed": "no"}),
            node("reserved", {"joulie.io/reserved": "true"}),
        ]
        decided = plan(snapshot(nodes, pins=[pin("mine", of)]), ALL_PERFORMANCE)
        assert states(decided) == {"a": "performance"}
        assert decided.warnings == (f"NodePowerProfile/mine: spec.nodeName: {of} is {where}, so it is ignored",)

    def test_an_expired_pin_out_of_scope_is_not_worth_a_warning(self) -> None:
        assert plan(snapshot([node("a")], pins=[pin(of="nowhere", expires_at_s=NOW)])).warnings == ()


class TestCaps:
    def caps(self, env: dict[str, str], of: Any = GPU_NODE, told: Any = (), **caps: Any) -> Caps:
        return assignment_of(plan(snapshot([of], told=told, pins=[pin(**caps)]), env)).caps

    @pytest.mark.parametrize(
        ("caps", "env", "expected"),
        [
            pytest.param({}, {}, Caps(60, None, 60), id="nothing said: the settings"),
            pytest.param({"profile": "performance"}, ALL_ECO, Caps(100, None, 100), id="the settings of its profile"),
            pytest.param({"cpu_cap_pct": 45.0}, {}, Caps(45, None, 60), id="percent, the rest from the settings"),
            pytest.param({"cpu_cap_w": 300.0}, {}, Caps(None, 300, 60), id="watts in percent mode stay watts"),
            pytest.param({"cpu_cap_w": 300.0, "cpu_cap_pct": 45.0}, {}, Caps(None, 300, 60), id="watts win"),
            pytest.param({"cpu_cap_w": 9e5}, {}, Caps(None, 400, 60), id="clamped to the maximum"),
            pytest.param(
                {"cpu_cap_w": 0.0}, {}, Caps(None, 160, 60), id="no minimum stated: down to 40 % of the maximum"
            ),
            pytest.param({"gpu_cap_w": 490.0}, {}, Caps(60, None, 70, 490), id="GPU watts set both"),
            pytest.param(
                {"gpu_cap_w": 1.0}, {}, Caps(60, None, 100 * 200 / 700, 200), id="GPU watts raised to the minimum"
            ),
            pytest.param({"gpu_cap_w": 9e5}, {}, Caps(60, None, 100, 700), id="GPU watts lowered to the maximum"),
            pytest.param(
                {"gpu_cap_pct": 10.0}, {}, Caps(60, None, 100 * 200 / 700), id="GPU percent raised to the minimum"
            ),
            pytest.param({"gpu_cap_w": 490.0, "gpu_cap_pct": 90.0}, {}, Caps(60, None, 70, 490), id="GPU watts win"),
            pytest.param({}, ABSOLUTE, Caps(None, 160, 60, 420), id="absolute: the settings"),
            pytest.param(
                {"cpu_cap_pct": 45.0}, ABSOLUTE, Caps(45, None, 60, 420), id="absolute: percent stays percent"
            ),
            pytest.param(
                {"gpu_cap_pct": 80.0}, ABSOLUTE, Caps(None, 160, 80, 560), id="absolute: GPU percent sets both"
            ),
        ],
    )
    def test_what_a_pin_says_is_clamped_and_what_it_leaves_open_comes_from_the_settings(
        self, caps: dict[str, Any], env: dict[str, str], expected: Caps
    ) -> None:
        assert self.caps(env, **caps) == expected

    def test_watts_are_raised_to_the_hardwares_minimum(self) -> None:
        told = [hardware("a", cpu={"sockets": 2, "capRange": {"minWattsPerSocket": 100, "maxWattsPerSocket": 300}})]
        assert self.caps({}, told=told, cpu_cap_w=1.0).cpu_w_each == 100
        assert self.caps({}, told=told, cpu_cap_pct=1.0).cpu_pct == pytest.approx(100 / 3)

    @pytest.mark.parametrize(
        ("caps", "expected"),
        [
            ({"cpu_cap_w": 200.0, "gpu_cap_w": 100.0}, Caps(60, None, 60)),
            ({"cpu_cap_w": 200.0, "cpu_cap_pct": 33.0, "gpu_cap_w": 100.0, "gpu_cap_pct": 44.0}, Caps(33, None, 44)),
        ],
    )
    def test_watts_on_unknown_hardware_give_way_to_percent(self, caps: dict[str, Any], expected: Caps) -> None:
        assert self.caps({}, node("a", nvidia=1), **caps) == expected

    def test_a_gpu_cap_on_a_node_without_gpu_does_nothing(self) -> None:
        assert self.caps({}, known_node("a"), gpu_cap_w=100.0, gpu_cap_pct=10.0) == Caps(60)


def test_a_pin_on_a_cordoned_node_changes_nothing_and_says_so() -> None:
    cordoned = node("a", cordoned=True)
    decided = plan(snapshot([cordoned], pins=[pin("mine")]))
    assert decided.twins == plan([cordoned]).twins
    assert decided.warnings == ("NodePowerProfile/mine: a is cordoned, so it is left as it is",)
