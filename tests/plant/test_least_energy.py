"""What no state of the plant goes below, against states of the plant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.plant.fleet import REST_PER_CPU_W, Fleet
from joulie.plant.least_energy import board_j_per_s, core_j_per_s, core_w, dynamic_w, least_product
from joulie.plant.work import cpu_speed, feeding, felt_speed
from tests.plant.building import busy, cpu_node, gpu_node, settled, shares

BOARDS = ("H100 SXM", "MI300X", "A40", "V100", "Radeon PRO W7900")


@given(st.floats(0.0, 500.0), st.floats(0.0, 500.0), shares, st.floats(0.2, 0.9))
def test_the_least_product_lies_below_every_frequency_and_hardly_below_the_best(
    moving_w: float, fixed_w: float, sensitivity: float, floor: float
) -> None:
    f = np.linspace(floor, 1.0, 2_000)
    best = np.min((moving_w * f**1.35 + fixed_w) * (1 - sensitivity + sensitivity / f))
    least = float(least_product(np.asarray(moving_w), np.asarray(fixed_w), np.asarray(sensitivity), floor))
    assert best * (1 - 1e-3) - 1e-9 <= least <= best * (1 + 1e-12) + 1e-12


def test_an_epyc_9654_is_most_efficient_above_idle_at_60_percent_load() -> None:
    """SPECpower: 128 W idle, 442 W at 60 %, 817 W at 100 %; packages of 2 × 360 W follow it."""
    assert dynamic_w(cpu_node().cpu) == pytest.approx(720 * (442 - 128) / 817 / 0.6)


def test_work_that_does_not_feel_frequency_is_cheapest_at_the_floor() -> None:
    cpu = cpu_node().cpu
    core = 720 * (442 - 128) / 817 / 0.6 / 192  # watts above idle, full frequency
    floor = (1.5 / 3.7) ** 1.35
    none, one = np.zeros(1), np.ones(1)
    assert core_j_per_s(cpu, 0.0, one, none)[0] == pytest.approx(core * (floor + REST_PER_CPU_W))
    assert core_w(cpu, 0.0, one)[0] == pytest.approx(core * (floor + REST_PER_CPU_W))
    assert core_j_per_s(cpu, 192.0, one, none)[0] == pytest.approx(core * (floor + REST_PER_CPU_W) + 1.0)


@pytest.mark.parametrize("model", ["EPYC 9654", "EPYC 9965", "Xeon Gold 6530"])
@given(load=st.floats(0.01, 1.0), throttle_pct=st.floats(0.0, 100.0), memory=shares, sensitivity=shares)
def test_no_load_and_no_frequency_beats_the_least_of_a_core(
    model: str, load: float, throttle_pct: float, memory: float, sensitivity: float
) -> None:
    fleet = Fleet([cpu_node(model)] * 2)
    fleet.cpus.set_throttle_pct(0, throttle_pct)
    work = busy(fleet, np.asarray([load, 0.0]), memory_intensity=memory)
    for dt_s in (10.0, 10.0):  # caps settle
        fleet.step(dt_s, work)
    cpu = fleet.machines[0].cpu
    speed = felt_speed(cpu_speed(fleet.cpus.frequency[:1], np.asarray(memory), np.zeros(1)), np.asarray(sensitivity))
    spent_j = (fleet.node_w[0] - fleet.node_w[1]) / (load * cpu.cores) / speed[0]
    feels = sensitivity * (1.0 - 0.85 * memory)
    least_j = float(core_j_per_s(cpu, 0.0, np.ones(1), np.asarray([feels]))[0])
    assert least_j <= spent_j * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("model", BOARDS)
@given(load=shares, cap=shares, throttle_pct=st.floats(0.0, 100.0), feed=shares, feels=shares, inlet=st.floats(20, 90))
def test_no_limit_no_heat_and_no_starving_beats_the_least_of_a_board(
    model: str, load: float, cap: float, throttle_pct: float, feed: float, feels: float, inlet: float
) -> None:
    node = gpu_node(model, 1)
    fleet = Fleet([node, node])
    assert node.gpu is not None
    fleet.gpus.set_cap_w(0, node.gpu.min_w + cap * (node.gpu.max_w - node.gpu.min_w))
    fleet.cpus.set_throttle_pct(slice(None), throttle_pct)
    work = busy(fleet, 0.0, np.asarray([load, 0.0]), feed_intensity=feed)
    for dt_s in (10.0, 100.0):  # caps settle, temperatures do
        fleet.step(dt_s, work, inlet)
    spent_j = (fleet.node_w[0] - fleet.node_w[1]) / felt_speed(fleet.gpus.speed[:1], np.asarray(feels))[0]
    least_fed = feeding(np.asarray([node.cpu.frequency_floor]), np.asarray([feed]))
    at = np.asarray([load])
    least_j = float(board_j_per_s(node.gpu, 0.0, (at, at), np.asarray([feels]), least_fed)[0])
    assert least_j <= spent_j * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("model", BOARDS)
@pytest.mark.parametrize("held_w", [0.0, 100.0])
def test_the_least_of_a_saturated_board_is_that_of_its_best_cap(model: str, held_w: float) -> None:
    node = gpu_node(model, 1)
    assert node.gpu is not None
    caps_w = np.linspace(node.gpu.min_w, node.gpu.max_w, 400)
    fleet = Fleet([node] * 400)
    fleet.gpus.set_cap_w(slice(None), caps_w)
    settled(fleet, busy(fleet, 0.0))
    idle = settled(Fleet([node]), Fleet([node]).idle_load())
    spent_j = (fleet.node_w - idle.node_w[0] + held_w) / fleet.gpus.speed
    one = np.ones(1)
    least_j = float(board_j_per_s(node.gpu, held_w, (one, one), one, one)[0])
    assert least_j == pytest.approx(float(spent_j.min()), rel=0.005)
    assert least_j <= spent_j.min() * (1 + 1e-9)
