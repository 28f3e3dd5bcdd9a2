from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.plant.fleet import Fleet, FleetLoad
from joulie.plant.settling import CPU_CAP_TAU_S, GPU_CAP_TAU_S
from tests.plant.building import MIXED, busy, cpu_node, gpu_node, loads, settled, shares, steps_s

TEMPERATE_C = 25.0
watts = st.floats(-1e6, 1e6)


def test_a_cpu_cap_settles_with_a_quarter_of_a_second() -> None:
    fleet = Fleet([cpu_node()])
    fleet.cpus.set_cap_w(0, 420.0)
    fleet.step(CPU_CAP_TAU_S, busy(fleet))
    assert fleet.cpus.cap_w[0] == pytest.approx(420 + 380 / math.e)


def test_a_gpu_cap_settles_with_150_milliseconds() -> None:
    fleet = Fleet([gpu_node()])
    fleet.gpus.set_cap_w(fleet.boards_of(0), 400.0)
    fleet.step(2 * GPU_CAP_TAU_S, busy(fleet))
    assert fleet.gpus.cap_w == pytest.approx(400 + 300 / math.e**2)


@given(st.lists(steps_s, min_size=1, max_size=8))
def test_how_time_is_cut_into_steps_does_not_change_where_a_cap_is(cuts: list[float]) -> None:
    at_once, in_steps = Fleet([gpu_node()]), Fleet([gpu_node()])
    for fleet in (at_once, in_steps):
        fleet.cpus.set_cap_w(0, 400.0)
        fleet.cpus.set_throttle_pct(0, 50.0)
        fleet.gpus.set_cap_w(slice(None), 400.0)
    at_once.step(sum(cuts), busy(at_once))
    for dt_s in cuts:
        in_steps.step(dt_s, busy(in_steps))
    assert in_steps.cpus.cap_w == pytest.approx(at_once.cpus.cap_w)
    assert in_steps.cpus.throttle_pct == pytest.approx(at_once.cpus.throttle_pct)
    assert in_steps.gpus.cap_w == pytest.approx(at_once.gpus.cap_w)


@given(loads(), watts, watts, st.floats(-1e3, 1e3), st.lists(steps_s, min_size=1, max_size=5))
def test_whatever_is_asked_limits_stay_in_range_and_numbers_stay_numbers(
    load: FleetLoad, cpu_w: float, gpu_w: float, throttle_pct: float, cuts: list[float]
) -> None:
    fleet = Fleet(MIXED)
    fleet.cpus.set_cap_w(slice(None), cpu_w)
    fleet.cpus.set_throttle_pct(slice(None), throttle_pct)
    fleet.gpus.set_cap_w(slice(None), gpu_w)
    for dt_s in cuts:
        fleet.step(dt_s, load, TEMPERATE_C)
        for bank in (fleet.cpus, fleet.gpus):
            for limit_w in (bank.cap_target_w, bank.cap_w):
                assert np.all(limit_w >= bank.min_w * (1 - 1e-12))
                assert np.all(limit_w <= bank.cap_max_w * (1 + 1e-12))
            assert np.all(bank.power_w >= bank.idle_w * (1 - 1e-12))
            assert np.all(bank.power_w <= bank.max_w * (1 + 1e-12))
            assert np.all((bank.speed > 0) & (bank.speed <= 1 + 1e-12))
        assert np.all((fleet.cpus.throttle_pct >= 0) & (fleet.cpus.throttle_pct <= 100))
        assert np.all(fleet.cpus.frequency >= fleet.cpus.floor * (1 - 1e-12))
        assert np.all(np.isfinite(fleet.node_energy_j))


@given(loads(), shares)
def test_a_settled_cap_within_the_range_is_held_at_any_load(load: FleetLoad, share: float) -> None:
    fleet = Fleet(MIXED)
    for bank in (fleet.cpus, fleet.gpus):
        bank.set_cap_w(slice(None), bank.min_w + share * (bank.max_w - bank.min_w))
    settled(fleet, load)
    assert np.all(fleet.cpus.power_w <= fleet.cpus.cap_target_w + 1e-6)
    assert np.all(fleet.gpus.power_w <= fleet.gpus.cap_target_w + 1e-6)


@given(loads(), shares, shares, shares)
def test_a_lower_cap_never_gives_more_power_or_speed(
    load: FleetLoad, one: float, other: float, throttle: float
) -> None:
    lower, higher = Fleet(MIXED), Fleet(MIXED)
    for fleet, share in ((lower, min(one, other)), (higher, max(one, other))):
        fleet.cpus.set_throttle_pct(slice(None), 100.0 * throttle)
        for bank in (fleet.cpus, fleet.gpus):
            bank.set_cap_w(slice(None), bank.min_w + share * (bank.max_w - bank.min_w))
        for dt_s in (0.1, 0.5, 10.0):
            fleet.step(dt_s, load, TEMPERATE_C)
    assert np.all(lower.cpus.power_w <= higher.cpus.power_w + 1e-9)
    assert np.all(lower.cpus.speed <= higher.cpus.speed + 1e-12)
    # A slower CPU feeds less, so a GPU may draw less than its own cap explains; never more.
    assert np.all(lower.gpus.power_w <= higher.gpus.power_w + 1e-9)
    assert np.all(lower.gpus.speed <= higher.gpus.speed + 1e-12)


@given(loads(), shares, shares)
def test_more_throttle_never_gives_more_power_or_speed(load: FleetLoad, one: float, other: float) -> None:
    less, more = Fleet(MIXED), Fleet(MIXED)
    for fleet, share in ((less, min(one, other)), (more, max(one, other))):
        fleet.cpus.set_throttle_pct(slice(None), 100.0 * share)
        settled(fleet, load, 3)
    assert np.all(more.cpus.power_w <= less.cpus.power_w + 1e-9)
    assert np.all(more.cpus.speed <= less.cpus.speed + 1e-12)
    assert np.all(more.gpus.power_w <= less.gpus.power_w + 1e-9)


@given(shares, shares)
def test_neither_cap_nor_throttle_lowers_idle_power(cap: float, throttle: float) -> None:
    free, capped = Fleet(MIXED), Fleet(MIXED)
    for bank in (capped.cpus, capped.gpus):
        bank.set_cap_w(slice(None), bank.min_w + cap * (bank.max_w - bank.min_w))
    capped.cpus.set_throttle_pct(slice(None), 100.0 * throttle)
    for fleet in (free, capped):
        settled(fleet, fleet.idle_load(), 5)
    assert capped.node_w == pytest.approx(free.node_w)


def test_restoring_puts_back_the_uncapped_state() -> None:
    fleet = Fleet(MIXED)
    for bank in (fleet.cpus, fleet.gpus):
        bank.set_cap_w(slice(None), bank.min_w)
        assert bank.cap_is_set.all()
    fleet.cpus.set_throttle_pct(slice(None), 80.0)
    settled(fleet, busy(fleet))
    assert np.all(fleet.cpus.speed < 1)
    for bank in (fleet.cpus, fleet.gpus):
        bank.set_cap_w(slice(None), None)
        assert not bank.cap_is_set.any()
    fleet.cpus.set_throttle_pct(slice(None), 0.0)
    settled(fleet, busy(fleet))
    assert fleet.cpus.speed == pytest.approx(1.0)
    assert fleet.cpus.power_w == pytest.approx(fleet.cpus.max_w)


def test_full_throttle_is_the_frequency_floor() -> None:
    fleet = Fleet([cpu_node()])
    fleet.cpus.set_throttle_pct(0, 100.0)
    settled(fleet, busy(fleet))
    assert fleet.cpus.frequency[0] == pytest.approx(1.5 / 3.7)


def test_readings_are_averaged_with_a_quarter_of_a_second_and_a_second() -> None:
    fleet = Fleet([gpu_node()])
    fleet.step(0.25, busy(fleet))
    cpus, gpus = fleet.cpus, fleet.gpus
    assert cpus.average_w[0] == pytest.approx(cpus.max_w[0] - (cpus.max_w[0] - cpus.idle_w[0]) / math.e)
    assert gpus.average_w[0] == pytest.approx(gpus.power_w[0] - (gpus.power_w[0] - gpus.idle_w[0]) * math.exp(-0.25))
