"""The plant against what is known from outside: published curves, measured sweeps, chillers, energy that stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.catalogue.entries import CpuModel
from joulie.lab.kernels.compiling import entry
from joulie.lab.model.setup import WeatherSetup
from joulie.lab.simulation.weather import outside_c
from joulie.plant.chiller import compressor_w
from joulie.plant.cooling import Cooling, CoolingSettings, zone_flows
from joulie.plant.curves import Numbers
from joulie.plant.fleet import Fleet
from joulie.plant.machines import PlantMachine, unknown_gpu
from joulie.plant.settling import share_gone
from tests.lab.simulation.measured import SWEEPS
from tests.plant.building import CATALOGUE, busy, cpu_node, settled

MEASURED_CURVES = [cpu for cpu in CATALOGUE.cpus if cpu.node_curve_w]


@pytest.mark.parametrize("model", MEASURED_CURVES, ids=lambda model: model.name)
def test_a_node_draws_its_specpower_curve_at_each_load(model: CpuModel) -> None:
    """Packages draw TDP × curve(u) / curve(100 %), the rest in proportion: the curve's shape at the wall."""
    assert model.node_curve_w is not None
    curve_w = np.asarray(model.node_curve_w)
    fleet = Fleet([cpu_node(model.name)] * 11)
    fleet.step(1.0, busy(fleet, np.linspace(0.0, 1.0, 11)))
    assert fleet.cpus.power_w == pytest.approx(2 * model.tdp_w * curve_w / curve_w[-1])
    assert fleet.node_w / fleet.node_w[-1] == pytest.approx(curve_w / curve_w[-1])


def test_an_epyc_9654_draws_its_published_watts_at_each_load() -> None:
    """Idle and 10, 20 … 100 %: the rest of a node is sized by this very server."""
    published_w = [128, 257, 300, 340, 378, 410, 442, 498, 577, 697, 817]
    fleet = Fleet([cpu_node("EPYC 9654")] * 11)
    fleet.step(1.0, busy(fleet, np.linspace(0.0, 1.0, 11)))
    assert fleet.node_w == pytest.approx(published_w, rel=0.001)


@pytest.mark.parametrize(("board", "top_w", "limit_w", "slowdown", "energy"), SWEEPS)
def test_slowdown_and_energy_under_a_gpu_cap_are_within_a_tenth_of_what_was_measured(
    board: str, top_w: float, limit_w: float, slowdown: float, energy: float
) -> None:
    node = PlantMachine(cpu_node().cpu, unknown_gpu(board, "nvidia", top_w, 100.0), 1)
    free, capped = Fleet([node]), Fleet([node])
    capped.gpus.set_cap_w(0, limit_w)
    for fleet in (free, capped):
        settled(fleet, busy(fleet), 5)
        fleet.gpus.energy_j[:], fleet.gpus.work_s[:] = 0.0, 0.0
        settled(fleet, busy(fleet), 60)
    played = float(free.gpus.work_s[0] / capped.gpus.work_s[0])
    per_work_j = [float(fleet.gpus.energy_j[0] / fleet.gpus.work_s[0]) for fleet in (capped, free)]
    assert played == pytest.approx(slowdown, rel=0.1)
    assert per_work_j[0] / per_work_j[1] == pytest.approx(energy, rel=0.1)


@pytest.mark.parametrize(("air_c", "cop"), [(10, 4.6), (20, 4.3), (30, 3.6), (35, 3.3)])
def test_a_chiller_at_half_load_has_the_cops_of_its_curves(air_c: float, cop: float) -> None:
    heat_w, rated_w = np.asarray([5e5]), np.asarray([1e6])
    assert float(heat_w[0] / compressor_w(heat_w, rated_w, air_c)[0]) == pytest.approx(cop, abs=0.05)


def test_the_pue_of_a_steady_zone_against_a_calculation_by_hand() -> None:
    """A zone for 1 MW with 800 kW of servers at 30 °C outside, inlet held at 24 °C.

    Fans: 3 % of 1 MW at 80 % of the flow, cubed: 30 kW · 0.512 = 15.36 kW. Heat to take: 815.36 kW.
    Return air: 24 °C + 12 °C · 815.36 / 800 = 36.2304 °C. Free cooling: 70 % of the way to 30 °C,
    0.7 · 6.2304 °C · 800 kW / 12 °C = 290.752 kW. The chiller takes the other 524.608 kW.
    Chiller: ΔT = (30 − 35) / 2.778 = −1.79986; capacity 0.9448 + 0.102592 + 0.006009 = 1.053401;
    power 2.333 − 2.080467 + 0.679219 = 0.931752; part load x = 524.608 / 1053.401 = 0.498014,
    0.0330 + 0.341239 + 0.069891 = 0.444130; compressor 1 MW / 3 · 1.053401 · 0.931752 · 0.444130 = 145.306 kW.
    PUE = (800 + 15.36 + 145.306) / 800 = 1.20083.
    """
    cooling = Cooling(np.asarray([1e6]))
    for _ in range(3600):
        cooling.step(10.0, np.asarray([8e5]), 30.0)
    assert cooling.inlet_c[0] == pytest.approx(24.0)
    assert cooling.fan_w[0] == pytest.approx(15_360)
    assert cooling.free_w[0] == pytest.approx(290_752)
    assert cooling.mechanical_w[0] == pytest.approx(524_608)
    assert cooling.compressor_w[0] == pytest.approx(145_306, rel=1e-5)
    assert 1 + cooling.electricity_w[0] / 8e5 == pytest.approx(1.20083, rel=1e-5)


steps_s = st.one_of(st.floats(0.1, 5.0), st.floats(5.0, 600.0), st.floats(600.0, 1e5))
stories = st.lists(
    st.tuples(steps_s, st.lists(st.floats(0.0, 2.0), min_size=3, max_size=3), st.floats(-30.0, 50.0)),
    min_size=1,
    max_size=25,
)


@given(stories)
def test_both_energy_balances_hold_to_a_billionth(story: list[tuple[float, list[float], float]]) -> None:
    """Electricity = IT + fans + compressor; stored heat = heat of IT + heat of fans − free − mechanical cooling."""
    rated_w = np.asarray([1e6, 4e4, 700.0])
    cooling = Cooling(rated_w)
    start_c = cooling.inlet_c.copy()
    it_j, electricity_j, taken_j, fan_j = (np.zeros(3) for _ in range(4))
    for dt_s, shares, air_c in story:
        it_w = rated_w * shares
        cooling.step(dt_s, it_w, air_c)
        it_j += it_w * dt_s
        electricity_j += (it_w + cooling.electricity_w) * dt_s
        fan_j += cooling.fan_w * dt_s
        taken_j += (cooling.free_w + cooling.mechanical_w) * dt_s
    counted_j = cooling.it_energy_j + cooling.fan_energy_j + cooling.compressor_energy_j
    stored_j = cooling.capacity_j_per_c * (cooling.inlet_c - start_c)
    assert counted_j == pytest.approx(electricity_j, rel=1e-9, abs=0.0)
    assert cooling.it_energy_j == pytest.approx(it_j, rel=1e-9, abs=0.0)
    assert cooling.removed_j == pytest.approx(taken_j, rel=1e-9, abs=0.0)
    moved_j = np.maximum(it_j + fan_j, taken_j)
    assert np.all(np.abs(stored_j - (it_j + fan_j - taken_j)) <= 1e-9 * moved_j)


@pytest.mark.parametrize("step_s", [1.0, 10.0, 300.0])
@pytest.mark.parametrize("mean_c", [-5.0, 14.0, 33.0])
def test_both_balances_hold_in_any_weather_with_a_fleet_as_the_source_of_heat(step_s: float, mean_c: float) -> None:
    fleet, steps = Fleet([cpu_node(), cpu_node("EPYC 9965")]), 300
    cooling = Cooling(np.asarray([2_000.0]))
    load = np.random.default_rng(1).uniform(0.0, 1.0, (steps, 2))
    weather_c = outside_c(WeatherSetup(mean_c=mean_c, noise_c=3.0, start_hour=13.0), 1, steps, step_s)
    for now, air_c in zip(load, weather_c.tolist(), strict=True):
        fleet.step(step_s, busy(fleet, now), float(cooling.inlet_c[0]))
        cooling.step(step_s, np.asarray([fleet.node_w.sum()]), air_c)
    assert cooling.it_energy_j[0] == pytest.approx(float(fleet.node_energy_j.sum()), rel=1e-9)
    stored_j = cooling.capacity_j_per_c * (cooling.inlet_c - CoolingSettings().setpoint_c)
    heat_j = cooling.it_energy_j + cooling.fan_energy_j
    assert np.all(np.abs(heat_j - cooling.removed_j - stored_j) <= 1e-9 * heat_j)


def _one_by_one(
    inlet_c: Numbers,
    it_w: Numbers,
    air_c: Numbers,
    dt_s: float,
    share: float,
    rated_w: Numbers,
    settings: CoolingSettings,
) -> Numbers:
    flows = np.empty((5, len(it_w)))
    for zone in range(len(it_w)):
        after = zone_flows(inlet_c[zone], it_w[zone], air_c[zone], dt_s, share, rated_w[zone], settings)
        flows[0, zone], flows[1, zone], flows[2, zone], flows[3, zone], flows[4, zone] = after
    return flows


@pytest.mark.slow
def test_the_compiled_cooling_gives_the_same_bits_as_the_plant() -> None:
    compiled, rng, settings = entry(_one_by_one), np.random.default_rng(1), CoolingSettings()
    rated_w = rng.uniform(1.0, 2e6, 10_000)
    it_w = rated_w * np.maximum(rng.uniform(-0.1, 3.0, 10_000), 0.0)
    inlet_c, air_c = rng.uniform(-10, 60, 10_000), rng.uniform(-40, 60, 10_000)
    for dt_s in (0.01, 10.0, 3600.0):
        share = share_gone(dt_s, settings.control_tau_s)
        together = np.asarray(zone_flows(inlet_c, it_w, air_c, dt_s, share, rated_w, settings))
        assert compiled(inlet_c, it_w, air_c, dt_s, share, rated_w, settings).tobytes() == together.tobytes()
