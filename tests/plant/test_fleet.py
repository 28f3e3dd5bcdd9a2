from __future__ import annotations

import numpy as np
import pytest

from joulie.errors import InputError
from joulie.plant.cpus import Cpus
from joulie.plant.fleet import Fleet
from joulie.plant.gpus import Gpus
from joulie.plant.sleep import Sleep, SleepSettings
from tests.plant.building import MIXED, busy, cpu_node, gpu_node, settled


def test_boards_taken_together_draw_what_they_draw_one_by_one() -> None:
    single, grouped = Fleet(MIXED), Fleet(MIXED, each_board=False)
    for fleet in (single, grouped):
        fleet.gpus.set_cap_w(slice(None), 400.0)
        settled(fleet, busy(fleet, 0.7, 0.8, feed_intensity=0.3), 30, inlet_c=45.0)
    assert grouped.node_w == pytest.approx(single.node_w)
    assert grouped.node_energy_j == pytest.approx(single.node_energy_j)
    assert len(grouped.node_of_gpu) == 3
    assert len(single.node_of_gpu) == 14


def test_a_fleet_goes_on_where_another_was_though_nodes_came_and_went() -> None:
    one, other, new = gpu_node(), cpu_node("EPYC 9965"), gpu_node("MI300X", 8)
    before, control = Fleet([one, other]), Fleet([one, other])
    for fleet in (before, control):
        fleet.cpus.set_cap_w(0, 400.0)
        fleet.gpus.set_cap_w(slice(None), 400.0)
        settled(fleet, busy(fleet, 0.9), 30)
    after = Fleet([new, other, one])
    after.take_over(before, [(2, 0), (1, 1)])
    for name in Cpus.STATE:
        assert getattr(after.cpus, name)[[2, 1]].tolist() == getattr(before.cpus, name).tolist(), name
    for name in Gpus.STATE:
        assert getattr(after.gpus, name)[after.boards_of(2)].tolist() == getattr(before.gpus, name).tolist(), name
    settled(after, busy(after, 0.9), 30)
    settled(control, busy(control, 0.9), 30)
    assert after.node_energy_j[[2, 1]] == pytest.approx(control.node_energy_j)


@pytest.mark.parametrize("dt_s", [-1.0, float("nan"), float("inf")])
def test_a_step_that_is_no_time_is_refused(dt_s: float) -> None:
    fleet = Fleet(MIXED)
    with pytest.raises(InputError, match="dt_s"):
        fleet.step(dt_s, fleet.idle_load())


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["cpu", "gpu", "memory_intensity", "io_intensity", "feed_intensity"])
def test_a_load_that_is_no_load_is_refused_before_it_gets_into_a_counter(field: str, value: float) -> None:
    fleet = Fleet(MIXED)
    load = fleet.idle_load()
    getattr(load, field)[1] = value
    with pytest.raises(InputError, match=rf"load\.{field}"):
        fleet.step(1.0, load)
    assert fleet.node_energy_j.tolist() == [0.0] * len(fleet)


def test_a_fleet_of_nothing_can_be_stepped() -> None:
    fleet = Fleet(())
    fleet.step(1.0, fleet.idle_load())
    assert fleet.node_w.size == 0


def test_a_sleeping_node_draws_little_and_waking_costs_time_and_energy() -> None:
    settings = SleepSettings(sleep_w=10.0, wake_s=100.0, wake_energy_j=5_000.0)
    fleet = Fleet([gpu_node(), gpu_node()], sleep=Sleep(2, settings))
    assert fleet.sleep is not None
    fleet.step(1.0, fleet.idle_load())
    idle_w = float(fleet.node_w[0])
    fleet.sleep.sleep(0)
    fleet.step(1.0, fleet.idle_load())
    assert fleet.node_w == pytest.approx([10.0, idle_w])
    assert fleet.sleep.ready.tolist() == [False, True]
    fleet.sleep.wake(slice(None))
    assert fleet.sleep.wakes.tolist() == [1, 0]  # who is awake cannot be woken
    before_j = fleet.node_energy_j
    ready = []
    for _ in range(6):
        fleet.step(25.0, fleet.idle_load())
        ready.append(bool(fleet.sleep.ready[0]))
    assert ready == [False, False, False, True, True, True]
    extra_j = (fleet.node_energy_j - before_j)[0] - (fleet.node_energy_j - before_j)[1]
    assert extra_j == pytest.approx(5_000.0)


def test_a_sleeping_node_cools_down_and_does_no_work() -> None:
    fleet = Fleet([gpu_node(), gpu_node()], sleep=Sleep(2))
    assert fleet.sleep is not None
    fleet.sleep.sleep(np.asarray([0]))
    settled(fleet, busy(fleet), 600, inlet_c=45.0)
    assert fleet.cpus.work_s[0] == 0
    assert fleet.gpus.work_s[fleet.boards_of(0)].sum() == 0
    assert fleet.cpus.temperature_c[0] == pytest.approx(45.0, abs=0.1)
