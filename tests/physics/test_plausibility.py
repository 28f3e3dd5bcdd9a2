"""What is said about hardware and cannot be true is not believed; what labellers write is understood."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.control.density import planning_densities
from joulie.model import names
from tests.support.small_clusters import hardware, known_node, machine, node, plan, snapshot, states

NFD = "feature.node.kubernetes.io"
GPU_NODES = [known_node(name, gpu="H100 SXM", gpus=8) for name in "abcd"]
HALL_IN_A_BOX = {"count": 64, "capRangePerGpu": {"minWatts": 100, "maxWatts": 10_000}, "model": "H100 SXM"}


class TestOneNodeThatLies:
    """A node's agent writes its own NodeHardware and must not change what other nodes are."""

    def test_64_boards_of_10_kw_turn_no_other_node_eco(self) -> None:
        lying = known_node("z", gpu="L40S", gpus=1)
        honest = plan([*GPU_NODES, lying], {"STATIC_HP_FRAC": "0.6"})
        decided = plan(
            snapshot([*GPU_NODES, lying], told=[hardware("z", gpu=HALL_IN_A_BOX)]), {"STATIC_HP_FRAC": "0.6"}
        )
        assert states(decided) == states(honest)
        assert [each.density for each in decided.assignments] == [each.density for each in honest.assignments]

    def test_its_twin_and_its_racks_stress_are_those_of_a_possible_machine(self) -> None:
        lying = known_node("z", gpu="L40S", gpus=1)
        decided = plan(snapshot([lying], told=[hardware("z", gpu=HALL_IN_A_BOX)]))
        assert decided.twins.columns["max_w"] == [800 + 350]

    def test_the_plan_says_so(self) -> None:
        decided = plan(snapshot([known_node("z")], told=[hardware("z", gpu=HALL_IN_A_BOX)]))
        (line,) = decided.warnings
        assert line.startswith("NodeHardware/z: status.gpu.count: 64 is above the plausible maximum of 32 boards")
        assert line.endswith("implausible, status.gpu is ignored")

    def test_the_score_does_not_believe_it_either(self) -> None:
        lying = known_node("z", gpu="L40S", gpus=1)
        told = hardware("z", gpu=HALL_IN_A_BOX)
        assert machine(lying, told) == machine(lying)


@pytest.mark.parametrize(
    ("cpu", "gpu"),
    [
        ({"sockets": 33}, None),
        ({"totalCores": 65_536}, None),
        ({"coresPerSocket": 60_000}, None),
        ({"capRange": {"maxWattsPerSocket": 1500.5}}, None),
        ({"capRange": {"minWattsPerSocket": 90_000}}, None),
        (None, {"count": 33}),
        (None, {"count": 2, "capRangePerGpu": {"maxWatts": 2001}}),
        (None, {"count": 2, "capRangePerGpu": {"minWatts": 99_000}}),
        (None, {"count": 2, "capRangePerGpu": {"defaultWatts": 5000}}),
    ],
)
def test_a_part_beyond_plausible_limits_is_as_if_absent(cpu: dict[str, Any] | None, gpu: dict[str, Any] | None) -> None:
    of = known_node("a", gpu="L40S", gpus=4)
    assert machine(of, hardware("a", cpu=cpu, gpu=gpu)) == machine(of)
    (line,) = plan(snapshot([of], told=[hardware("a", cpu=cpu, gpu=gpu)])).warnings
    assert line.startswith(f"NodeHardware/a: status.{'cpu' if cpu else 'gpu'}.")
    assert "implausible" in line


def test_the_largest_plausible_machine_is_believed() -> None:
    cpu = {"sockets": 32, "totalCores": 8192, "capRange": {"maxWattsPerSocket": 1500}}
    gpu = {"count": 32, "capRangePerGpu": {"maxWatts": 2000}}
    found = machine(node("a"), hardware("a", cpu=cpu, gpu=gpu))
    assert (found.cpu_max_w, found.gpu_max_w, found.cores) == (32 * 1500, 32 * 2000, 8192)
    assert plan(snapshot([node("a")], told=[hardware("a", cpu=cpu, gpu=gpu)])).warnings == ()


def test_the_other_part_of_a_doubted_object_still_counts() -> None:
    told = hardware("a", cpu={"sockets": 2, "capRange": {"maxWattsPerSocket": 300}}, gpu={"count": 5000})
    assert machine(node("a", nvidia=1), told).cpu_max_w == 600


def test_labels_and_capacity_cannot_state_the_impossible_either() -> None:
    labels = {names.GPU_COUNT_LABEL: "99999", names.CPU_SOCKETS_LABEL: "4096", names.CPU_MODEL_LABEL: "EPYC-9654"}
    found = machine(node("a", labels, nvidia=4))
    assert (found.gpu_count, found.sockets) == (4, 1)
    assert machine(node("a", nvidia=80)).gpu_count == 32
    assert len(plan([node("a", labels, nvidia=4)]).warnings) == 2
    (line,) = plan([node("a", nvidia=80)]).warnings
    assert "80 GPUs are more than the plausible maximum of 32 boards" in line


class TestCores:
    """Physical ones, so that identical machines have the same density whatever reports them."""

    @pytest.mark.parametrize("sockets", [1, 2])
    @pytest.mark.parametrize("threads_per_core", [1, 2])
    @pytest.mark.parametrize("model", Catalogue().cpus, ids=lambda model: model.name)
    def test_density_is_the_same_with_and_without_an_agent(
        self, model: Any, threads_per_core: int, sockets: int
    ) -> None:
        labels = {names.CPU_MODEL_LABEL: model.name.replace(" ", "-"), names.CPU_SOCKETS_LABEL: str(sockets)}
        threads = model.cores * sockets * threads_per_core
        bare = machine(node("a", labels, cores=threads))
        told = {"model": model.name, "sockets": sockets, "totalCores": model.cores * sockets}
        with_agent = machine(node("a", cores=threads), hardware("a", cpu=told))
        assert bare.cores == with_agent.cores == model.cores * sockets
        assert planning_densities([bare, with_agent]) == [1.0, 1.0]
        score = plan([node("a", labels, cores=threads)]).twins.columns["density"]
        assert score == pytest.approx([min(100.0, 100.0 * model.cores * sockets / 192)])

    def test_an_unknown_cpu_counts_its_capacity(self) -> None:
        assert machine(node("a", cores=12)).cores == 12


class TestLabellers:
    def test_amds_labeller_names_the_board(self) -> None:
        found = machine(node("a", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, amd=8))
        assert (found.gpu_name, found.family, found.gpu_max_w_each) == ("MI300X", "MI300X", 750)

    def test_the_product_goes_before_the_family(self) -> None:
        labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.family": "AI"}
        assert machine(node("a", labels, amd=8)).gpu_name == "MI300X"

    def test_nfd_groups_machines_whose_cpu_nothing_else_names(self) -> None:
        labels = {f"{NFD}/cpu-model.vendor_id": "AMD", f"{NFD}/cpu-model.family": "25", f"{NFD}/cpu-model.id": "17"}
        assert machine(node("a", labels)).family == "AMD family 25 model 17"
        better = {**labels, names.CPU_MODEL_LABEL: "EPYC-9654"}
        assert machine(node("a", better)).family == "EPYC 9654"

    @pytest.mark.parametrize(
        ("device", "watts"),
        [
            ("1200_1002", 400),
            ("0302_1002", 400),
            ("0300_1002", 400),
            ("0380_1002", 400),
            ("1200_1002_74a1", 400),
            ("0302_10de", 350),
            ("0300_1a03", 350),
            ("0200_1002", 350),
        ],
    )
    def test_nfd_tells_the_vendor_of_boards_that_nothing_names(self, device: str, watts: float) -> None:
        labels = {f"{NFD}/pci-{device}.present": "true", names.GPU_COUNT_LABEL: "4"}
        assert machine(node("a", labels)).gpu_max_w_each == watts

    def test_nfd_does_not_say_how_many_boards_there_are(self) -> None:
        assert machine(node("a", {f"{NFD}/pci-0302_10de.present": "true"})).gpu_count == 0
