from __future__ import annotations

import numpy as np
import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.plant.fleet import REST_PER_CPU_W, REST_PER_GPU_W, Fleet
from joulie.plant.machines import GPU_IDLE_SHARE
from joulie.plant.sweeps import SATURATED_DRAW
from tests.plant.building import busy, cpu_node, gpu_node, settled, unknown_node

CURVES = [cpu for cpu in Catalogue().cpus if cpu.node_curve_w is not None]


@pytest.mark.parametrize("model", CURVES, ids=lambda cpu: cpu.name)
@pytest.mark.parametrize("sockets", [1, 2])
def test_packages_draw_their_tdp_times_the_published_curve_over_its_full_load(model, sockets) -> None:  # type: ignore[no-untyped-def]
    fleet = Fleet([cpu_node(model.name, sockets)] * 11)
    fleet.step(1.0, busy(fleet, np.linspace(0.0, 1.0, 11)))
    curve = np.asarray(model.node_curve_w)
    assert fleet.cpus.power_w == pytest.approx(sockets * model.tdp_w * curve / curve[-1])


def test_between_published_points_power_is_on_the_line_between_them() -> None:
    fleet = Fleet([cpu_node()])
    fleet.step(1.0, busy(fleet, 0.25))
    assert fleet.cpus.power_w == pytest.approx(720 * (300 + 340) / 2 / 817)


def test_a_cpu_without_a_curve_follows_the_generic_one() -> None:
    load = np.linspace(0.0, 1.0, 50)
    fleet = Fleet([unknown_node(100)] * 50)
    fleet.step(1.0, busy(fleet, load))
    assert fleet.cpus.power_w == pytest.approx(70 + 280 * load**1.15, rel=1e-3)


def test_an_idle_gpu_draws_twelve_percent_and_a_saturated_one_what_the_sweeps_measured() -> None:
    fleet = Fleet([gpu_node("H100 SXM", 2)])
    fleet.step(1.0, busy(fleet, gpu=np.asarray([0.0, 1.0])))
    assert fleet.gpus.power_w == pytest.approx([GPU_IDLE_SHARE * 700, SATURATED_DRAW * 700])


def test_the_wall_sees_packages_boards_and_the_rest() -> None:
    fleet = settled(Fleet([gpu_node("H100 SXM", 8)]), busy(Fleet([gpu_node("H100 SXM", 8)])))
    assert fleet.cpus.power_w[0] == pytest.approx(720)
    assert fleet.node_w[0] == pytest.approx(720 * (1 + REST_PER_CPU_W) + 8 * 630 * (1 + REST_PER_GPU_W))
    assert fleet.node_w[0] == pytest.approx(8_400, rel=0.05)  # measured on such a node


def test_a_cap_leaves_the_rest_of_the_node_alone() -> None:
    free, capped = Fleet([gpu_node()]), Fleet([gpu_node()])
    capped.cpus.set_cap_w(0, 1.0)
    capped.gpus.set_cap_w(slice(None), 1.0)
    for fleet in (free, capped):
        settled(fleet, busy(fleet))
    assert capped.node_w[0] < free.node_w[0]
    assert capped.rest_w == pytest.approx(free.rest_w)


def test_a_caps_range_is_stated_by_the_machine() -> None:
    cpu = cpu_node().cpu
    assert (cpu.min_w, cpu.max_w) == (294.0, 720.0)
    assert cpu.min_w % cpu.sockets == 0
    gpu = gpu_node("MI300X").gpu
    assert gpu is not None
    assert (gpu.min_w, gpu.max_w) == (350.0, 750.0)
