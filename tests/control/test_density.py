"""The order in which policies consider nodes."""

from __future__ import annotations

import pytest

from joulie.control.density import densest_first, planning_densities
from joulie.model.names import CPU_MODEL_LABEL, CPU_SOCKETS_LABEL, MANAGED_LABEL
from joulie.model.snapshot import Node
from tests.support.small_clusters import hardware, known_node, machine, node, plan, snapshot


def densities(*nodes: Node) -> list[float]:
    return planning_densities([machine(each) for each in nodes])


def test_cpu_part_is_cores_times_boost_relative_to_the_largest() -> None:
    assert densities(
        node("a", {CPU_MODEL_LABEL: "EPYC-9654", CPU_SOCKETS_LABEL: "2"}, cores=192),  # 3.7 GHz
        node("b", {CPU_MODEL_LABEL: "EPYC-9375F", CPU_SOCKETS_LABEL: "2"}, cores=64),  # 4.8 GHz
    ) == [1, pytest.approx(64 * 4.8 / (192 * 3.7), abs=1e-9)]


def test_an_unknown_cpu_counts_3_ghz() -> None:
    assert densities(node("a", {CPU_MODEL_LABEL: "Xeon-Gold-6530"}, cores=64), node("b", cores=128 / 3)) == [1, 1]


def test_gpu_part_is_count_times_board_watts_and_both_parts_add_up() -> None:
    gpu_nodes = [known_node("a", gpu="L40S", gpus=8), known_node("b", gpu="NVIDIA-H100-80GB-HBM3", gpus=2)]
    assert densities(*gpu_nodes) == [2, 1.5]


def test_unknown_gpus_count_with_the_assumed_maximum() -> None:
    assert densities(node("a", nvidia=1), node("b", amd=1)) == [1.875, 2]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("a", cores=0), node("b", cores=0)], [0, 0], id="no cores anywhere"),
        pytest.param([node("a", cores=0, nvidia=1), node("b", cores=5)], [1, 1], id="GPU alone and CPU alone"),
        pytest.param([], [], id="no nodes"),
    ],
)
def test_a_part_that_no_node_has_counts_nothing(nodes: list[Node], expected: list[float]) -> None:
    assert densities(*nodes) == expected


def test_densities_are_rounded_to_nine_decimals_before_sorting() -> None:
    nodes = [node("a", cores=1), node("m", cores=3), node("z", cores=1 + 1e-10)]
    assert densities(*nodes) == [0.333333333, 1, 0.333333333]
    assert [nodes[position].name for position in densest_first(densities(*nodes))] == ["m", "a", "z"]


def test_only_eligible_nodes_set_the_scale() -> None:
    big = {"cores": 1000.0, "nvidia": 16.0}
    nodes = [
        node("a", cores=10),
        node("cordoned", cordoned=True, **big),  # type: ignore[arg-type]
        node("reserved", {"joulie.io/reserved": "true"}, **big),  # type: ignore[arg-type]
        node("unmanaged", {MANAGED_LABEL: "false"}, **big),  # type: ignore[arg-type]
    ]
    [assignment] = plan(nodes).assignments
    assert assignment.density == 1


def test_told_cores_count_rather_than_the_capacitys_threads() -> None:
    nodes = [node("a", cores=64), node("b", cores=64)]
    told = [hardware("a", cpu={"totalCores": 32})]
    decided = plan(snapshot(nodes, told=told))
    assert [(assignment.node, assignment.density) for assignment in decided.assignments] == [("b", 1), ("a", 0.5)]
