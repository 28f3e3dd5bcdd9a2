from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.plant.chiller import capacity_factor, compressor_w
from joulie.plant.cooling import Cooling

RATED_W = np.asarray([1e6, 5e4])
outside_c = st.floats(-40.0, 60.0)


def _after(hours: float, share: float, outside: float, dt_s: float = 10.0) -> Cooling:
    cooling = Cooling(RATED_W)
    for _ in range(int(hours * 3600 / dt_s)):
        cooling.step(dt_s, share * RATED_W, outside)
    return cooling


@pytest.mark.parametrize(("outside", "cop"), [(10, 4.6), (20, 4.3), (30, 3.6), (35, 3.3)])
def test_a_chiller_at_half_load_is_as_good_as_its_curves_say(outside: float, cop: float) -> None:
    heat_w = np.asarray([5e5])
    assert float((heat_w / compressor_w(heat_w, np.asarray([1e6]), outside))[0]) == pytest.approx(cop, abs=0.05)


def test_a_chiller_with_nothing_to_do_is_off_and_beyond_its_curves_they_are_not_used() -> None:
    assert compressor_w(np.zeros(1), np.ones(1), 30.0)[0] == 0
    assert capacity_factor(-30.0) == capacity_factor(10.0)
    assert capacity_factor(60.0) == capacity_factor(45.0) > 0


@given(
    st.lists(
        st.tuples(st.floats(0.0, 1e5), st.lists(st.floats(0.0, 3.0), min_size=2, max_size=2), outside_c),
        min_size=1,
        max_size=20,
    )
)
def test_both_balances_hold_at_any_step_and_any_load(story: list[tuple[float, list[float], float]]) -> None:
    cooling = Cooling(RATED_W)
    start_c = cooling.inlet_c.copy()
    electricity_j, it_j = np.zeros(2), np.zeros(2)
    for dt_s, load, outside in story:
        it_w = RATED_W * load
        cooling.step(dt_s, it_w, outside)
        it_j += it_w * dt_s
        electricity_j += (it_w + cooling.fan_w + cooling.compressor_w) * dt_s
        assert np.all(cooling.free_w >= 0)
        assert np.all(cooling.mechanical_w >= 0)
        assert np.all(np.isfinite(cooling.inlet_c))
    counted_j = cooling.it_energy_j + cooling.fan_energy_j + cooling.compressor_energy_j
    assert counted_j == pytest.approx(electricity_j)
    stored_j = cooling.capacity_j_per_c * (cooling.inlet_c - start_c)
    heat_j = it_j + cooling.fan_energy_j
    assert stored_j + cooling.removed_j == pytest.approx(heat_j, rel=1e-9, abs=1.0)


def test_free_cooling_does_it_alone_when_it_is_cold_and_nothing_when_it_is_hot() -> None:
    cold, hot = _after(1, 0.7, 5.0), _after(1, 0.7, 45.0)
    assert cold.compressor_w.tolist() == [0, 0]
    assert hot.free_w.tolist() == [0, 0]
    for cooling in (cold, hot):
        assert cooling.inlet_c == pytest.approx(24.0, abs=0.1)
    assert np.all(hot.electricity_w > 10 * cold.electricity_w)


def test_cooling_costs_more_the_hotter_it_is_outside() -> None:
    costs = [float(_after(1, 0.8, outside).electricity_w.sum()) for outside in (0, 15, 20, 25, 30, 35, 40)]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


def test_more_heat_than_the_building_can_take_warms_it_and_it_recovers() -> None:
    cooling = _after(0.1, 2.5, 45.0)
    hot_c = cooling.inlet_c.copy()
    assert np.all(hot_c > 30)
    for _ in range(360):
        cooling.step(10.0, 0.3 * RATED_W, 20.0)
    assert cooling.inlet_c == pytest.approx(24.0, abs=0.1)


@pytest.mark.parametrize("dt_s", [1.0, 60.0, 3600.0])
def test_a_long_step_comes_to_the_same_temperature_and_does_not_swing(dt_s: float) -> None:
    cooling = Cooling(RATED_W)
    cooling.inlet_c[:] = 35.0
    for _ in range(max(3, int(7200 / dt_s))):
        cooling.step(dt_s, 0.5 * RATED_W, 20.0)
        assert np.all(cooling.inlet_c >= 24.0 - 1e-6)
    assert cooling.inlet_c == pytest.approx(24.0, abs=0.01)


def test_fan_power_follows_the_cube_of_the_flow() -> None:
    half, full = _after(1, 0.5, 10.0), _after(1, 1.0, 10.0)
    assert full.fan_w / half.fan_w == pytest.approx(8.0)
