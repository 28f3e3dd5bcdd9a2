from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.plant.fleet import Fleet, FleetLoad
from joulie.plant.machines import GPU_FREQUENCY_FLOOR
from joulie.plant.thermals import CPU_THERMALS, GPU_THERMALS
from tests.plant.building import MIXED, busy, cpu_node, gpu_node, inlets_c, loads, shares, steps_s

FOR_EVER_S = 1e6


def test_at_maximum_power_and_25_degrees_a_cpu_comes_to_75() -> None:
    fleet = Fleet([cpu_node()])
    fleet.step(FOR_EVER_S, busy(fleet), 25.0)
    assert fleet.cpus.temperature_c[0] == pytest.approx(75.0)
    assert fleet.cpus.thermal_throttle[0] == 0


def test_a_board_comes_to_as_much_of_70_degrees_as_it_draws_of_its_limit() -> None:
    fleet = Fleet([gpu_node()])
    fleet.step(FOR_EVER_S, busy(fleet), 25.0)
    assert fleet.gpus.temperature_c == pytest.approx(25 + 45 * 0.9)


def test_temperature_lags_by_60_and_30_seconds() -> None:
    fleet = Fleet([gpu_node()])
    before_cpu_c, before_gpu_c = fleet.cpus.temperature_c[0], fleet.gpus.temperature_c[0]
    fleet.step(30.0, busy(fleet), 25.0)
    assert fleet.cpus.temperature_c[0] == pytest.approx(75 - (75 - before_cpu_c) * math.exp(-0.5))
    assert fleet.gpus.temperature_c[0] == pytest.approx(65.5 - (65.5 - before_gpu_c) / math.e)


@pytest.mark.parametrize(("thermals", "start_c", "end_c"), [(CPU_THERMALS, 85, 97), (GPU_THERMALS, 82, 92)])
def test_throttling_is_linear_between_its_temperatures(thermals, start_c: float, end_c: float) -> None:  # type: ignore[no-untyped-def]
    middle_c = (start_c + end_c) / 2
    assert thermals.throttle(np.asarray([20, start_c, middle_c, end_c, 200.0])).tolist() == [0, 0, 0.5, 1, 1]


def test_a_hot_inlet_throttles_and_the_throttle_agrees_with_the_temperature() -> None:
    fleet = Fleet([gpu_node()])
    fleet.step(FOR_EVER_S, busy(fleet), 50.0)
    for bank, thermals in ((fleet.cpus, CPU_THERMALS), (fleet.gpus, GPU_THERMALS)):
        assert np.all((bank.thermal_throttle > 0) & (bank.thermal_throttle < 1))
        assert bank.thermal_throttle == pytest.approx(thermals.throttle(bank.temperature_c), abs=1e-6)
        assert np.all(bank.speed < 1)


def test_beyond_the_last_temperature_devices_run_at_their_frequency_floor() -> None:
    fleet = Fleet([gpu_node()])
    fleet.step(FOR_EVER_S, busy(fleet), 150.0)
    assert fleet.cpus.frequency == pytest.approx(fleet.cpus.floor)
    assert fleet.gpus.speed == pytest.approx(GPU_FREQUENCY_FLOOR)


@pytest.mark.parametrize("step_s", [2.0, 10.0, 600.0])
def test_a_long_step_finds_the_same_equilibrium_as_short_ones_and_stays_there(step_s: float) -> None:
    fleet, exact = Fleet([gpu_node()]), Fleet([gpu_node()])
    exact.step(FOR_EVER_S, busy(exact), 48.0)
    for _ in range(int(1_200 / step_s)):
        fleet.step(step_s, busy(fleet), 48.0)
    before_w = fleet.cpus.power_w.copy()
    fleet.step(step_s, busy(fleet), 48.0)
    assert fleet.cpus.power_w == pytest.approx(before_w, rel=1e-6)  # no swinging
    assert fleet.cpus.power_w == pytest.approx(exact.cpus.power_w, rel=1e-3)
    assert fleet.gpus.temperature_c == pytest.approx(exact.gpus.temperature_c, rel=1e-3)


@given(loads(), st.lists(steps_s, min_size=1, max_size=6), inlets_c)
def test_no_temperature_leaves_what_inlet_and_power_can_explain(
    load: FleetLoad, cuts: list[float], inlet_c: float
) -> None:
    fleet = Fleet(MIXED)
    for dt_s in cuts:
        fleet.step(dt_s, load, inlet_c)
        for bank, top_c in ((fleet.cpus, 50.0), (fleet.gpus, 45.0)):
            assert np.all(bank.temperature_c >= min(inlet_c, 25.0) - 1e-6)
            assert np.all(bank.temperature_c <= max(inlet_c, 25.0) + top_c + 1e-6)


@given(loads(), shares, shares, st.floats(20.0, 70.0))
def test_a_lower_cap_never_takes_more_energy_however_hot_it_is(
    load: FleetLoad, one: float, other: float, inlet_c: float
) -> None:
    """Power for a moment may be higher: who was capped is cooler and throttles later."""
    lower, higher = Fleet(MIXED), Fleet(MIXED)
    for fleet, share in ((lower, min(one, other)), (higher, max(one, other))):
        for bank in (fleet.cpus, fleet.gpus):
            bank.set_cap_w(slice(None), bank.min_w + share * (bank.max_w - bank.min_w))
    for _ in range(12):
        for fleet in (lower, higher):
            fleet.step(20.0, load, inlet_c)
        assert np.all(lower.cpus.energy_j <= higher.cpus.energy_j * (1 + 1e-6))
