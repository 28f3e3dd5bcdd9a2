from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from joulie.plant.fleet import Fleet
from joulie.plant.work import felt_speed
from tests.plant.building import busy, cpu_node, gpu_node, settled, shares


def _slowdown(cap_w: float, **load: float) -> float:
    fleet = Fleet([cpu_node()])
    fleet.cpus.set_cap_w(0, cap_w)
    settled(fleet, busy(fleet, **load))
    return 1 / float(fleet.cpus.speed[0])


def test_compute_bound_work_slows_with_frequency() -> None:
    fleet = Fleet([cpu_node()])
    fleet.cpus.set_cap_w(0, 432.0)
    settled(fleet, busy(fleet))
    assert fleet.cpus.frequency[0] < 0.8
    assert fleet.cpus.speed == pytest.approx(fleet.cpus.frequency)


@pytest.mark.parametrize("bound", ["memory_intensity", "io_intensity"])
def test_work_that_waits_for_memory_or_storage_slows_much_less(bound: str) -> None:
    compute, waiting = _slowdown(432.0), _slowdown(432.0, **{bound: 1.0})
    assert 1.0 < waiting < 1 + (compute - 1) / 4


def test_a_cap_above_what_the_load_draws_costs_nothing() -> None:
    assert _slowdown(432.0, cpu=0.3) == pytest.approx(1.0)


def test_a_throttled_cpu_slows_gpu_work_that_needs_feeding_and_only_that() -> None:
    fleet = Fleet([gpu_node(), gpu_node(), gpu_node()])
    fleet.cpus.set_throttle_pct(slice(None), 100.0)
    load = busy(fleet)
    load.feed_intensity[:] = [0.0, 0.5, 1.0]
    settled(fleet, load)
    speeds = [float(fleet.gpus.speed[fleet.boards_of(node)][0]) for node in range(3)]
    assert speeds[0] == pytest.approx(1.0)
    assert speeds[2] == pytest.approx(fleet.cpus.frequency[2])
    assert speeds[0] > speeds[1] > speeds[2]
    watts = fleet.gpu_w
    assert watts[0] > watts[1] > watts[2]  # a board that waits draws less


def test_work_is_counted_in_device_seconds_at_uncapped_speed() -> None:
    fleet = Fleet([gpu_node("H100 SXM", 2)])
    settled(fleet, busy(fleet, 0.5, np.asarray([1.0, 0.25])), 10)
    assert fleet.cpus.work_s == pytest.approx(0.5 * 192 * 10)
    assert fleet.gpus.work_s == pytest.approx([10.0, 2.5])


def test_sensitivity_counts_in_time() -> None:
    """Work that takes 2 s instead of 1 s, of which it feels 40 %, takes 1.4 s."""
    assert felt_speed(np.asarray(0.5), np.asarray(0.4)) == pytest.approx(1 / 1.4)


@given(shares, shares)
def test_who_feels_nothing_keeps_the_speed_and_who_feels_all_has_the_device_s(lost: float, sensitivity: float) -> None:
    speed = np.asarray(1.0 - 0.99 * lost)
    assert felt_speed(speed, np.asarray(0.0)) == 1.0
    assert felt_speed(speed, np.asarray(1.0)) == pytest.approx(speed)
    assert speed * (1 - 1e-12) <= felt_speed(speed, np.asarray(sensitivity)) <= 1.0
