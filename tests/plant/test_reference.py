from __future__ import annotations

import pytest

from joulie.catalogue.entries import CpuModel, GpuModel
from joulie.plant.machines import unknown_gpu
from joulie.plant.reference import PEAK_RATES, cpu_core_speed, gpu_speed
from tests.plant.building import CATALOGUE, gpu_node


def test_work_is_counted_in_cores_of_an_epyc_9654_and_boards_of_an_h100_sxm() -> None:
    assert cpu_core_speed(CATALOGUE.cpu("EPYC 9654")) == 1.0
    board = CATALOGUE.gpu("NVIDIA-H100-80GB-HBM3")
    assert board is not None
    assert gpu_speed(board) == 1.0


def test_a_core_is_as_fast_as_it_boosts_and_an_unknown_one_as_the_reference() -> None:
    model = CpuModel("any", 8, 2.0, 4.625, 100, "proxy", "a test")
    assert cpu_core_speed(model) == pytest.approx(1.25)
    assert cpu_core_speed(None) == 1.0


@pytest.mark.parametrize("board", CATALOGUE.gpus, ids=lambda board: board.name)
def test_every_board_of_the_catalogue_has_an_official_rate_of_its_own(board: GpuModel) -> None:
    rate = PEAK_RATES[board.name]
    assert rate.evidence == "official"
    assert rate.source
    assert gpu_speed(board) == pytest.approx(rate.tflops / 989.4)


def test_boards_are_ordered_as_their_data_sheets_have_them() -> None:
    speeds = {board.name: gpu_speed(board) for board in CATALOGUE.gpus if "PCIe" not in board.name}
    slowest_first = ["Radeon PRO W7900", "A100 SXM", "L40S", "H100 NVL", "H100 SXM", "MI300X"]
    assert sorted(speeds, key=speeds.__getitem__) == slowest_first


def test_the_plant_s_boards_are_known_as_the_catalogue_s_are() -> None:
    kind = gpu_node("L40S").gpu
    assert kind is not None
    assert gpu_speed(kind) == pytest.approx(362.05 / 989.4)


@pytest.mark.parametrize("name", [None, "no such board", "H100"])
def test_a_board_without_a_rate_is_as_fast_as_its_limit_says(name: str | None) -> None:
    assert gpu_speed(unknown_gpu(name, "other", 350.0)) == pytest.approx(0.5)
