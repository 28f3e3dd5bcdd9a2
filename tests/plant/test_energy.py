from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.plant.fleet import Fleet, FleetLoad
from tests.plant.building import MIXED, busy, gpu_node, inlets_c, loads, shares, steps_s


@given(
    st.lists(st.tuples(steps_s, loads(), inlets_c, st.one_of(st.none(), st.floats(0.0, 2_000.0))), max_size=6),
)
def test_the_integral_of_power_is_what_the_counters_say(
    story: list[tuple[float, FleetLoad, float, float | None]],
) -> None:
    fleet = Fleet(MIXED)
    cpu_j, gpu_j, wall_j = np.zeros(len(fleet)), np.zeros(len(fleet)), np.zeros(len(fleet))
    for dt_s, load, inlet_c, cap_w in story:
        fleet.cpus.set_cap_w(slice(None), cap_w)
        fleet.gpus.set_cap_w(slice(None), cap_w)
        before_j = fleet.node_energy_j
        fleet.step(dt_s, load, inlet_c)
        cpu_j += fleet.cpus.power_w * dt_s
        gpu_j += fleet.gpu_w * dt_s
        wall_j += fleet.node_w * dt_s
        assert np.all(fleet.node_energy_j >= before_j)  # counters never run backwards
    assert fleet.cpus.energy_j == pytest.approx(cpu_j)
    assert fleet.by_node(fleet.gpus.energy_j) == pytest.approx(gpu_j)
    assert fleet.node_energy_j == pytest.approx(wall_j)


@given(loads(), shares, st.lists(st.floats(0.05, 30.0), min_size=1, max_size=10))
def test_energy_does_not_depend_on_how_time_is_cut_into_steps(load: FleetLoad, share: float, cuts: list[float]) -> None:
    at_once, in_steps = Fleet(MIXED), Fleet(MIXED)
    for fleet in (at_once, in_steps):
        for bank in (fleet.cpus, fleet.gpus):
            bank.set_cap_w(slice(None), bank.min_w + share * (bank.max_w - bank.min_w))
        fleet.step(5.0, load)  # how a cap settles is followed to its mean within a step, not to its shape
    at_once.step(sum(cuts), load)
    for dt_s in cuts:
        in_steps.step(dt_s, load)
    assert in_steps.node_energy_j == pytest.approx(at_once.node_energy_j, rel=1e-6)
    assert in_steps.cpus.work_s == pytest.approx(at_once.cpus.work_s, rel=1e-6)


def test_also_while_a_cap_settles_a_second_takes_nearly_the_energy_of_a_hundred_hundredths() -> None:
    at_once, in_steps = Fleet([gpu_node()]), Fleet([gpu_node()])
    for fleet in (at_once, in_steps):
        fleet.cpus.set_cap_w(0, 400.0)
        fleet.gpus.set_cap_w(slice(None), 400.0)
    at_once.step(1.0, busy(at_once))
    for _ in range(100):
        in_steps.step(0.01, busy(in_steps))
    assert in_steps.node_energy_j == pytest.approx(at_once.node_energy_j, rel=0.01)


@given(st.lists(st.floats(0.1, 50.0), min_size=1, max_size=12), shares, shares, shares)
def test_under_equal_caps_equal_work_takes_equal_energy(cuts: list[float], cap: float, cpu: float, gpu: float) -> None:
    """Two nodes of a kind under the same caps do the same work, one in one go, the other in pieces on other days."""
    steady, in_pieces = Fleet([gpu_node()]), Fleet([gpu_node()])
    for fleet in (steady, in_pieces):
        for bank in (fleet.cpus, fleet.gpus):
            bank.set_cap_w(slice(None), bank.min_w + cap * (bank.max_w - bank.min_w))
        fleet.step(60.0, fleet.idle_load())
    load = busy(steady, cpu, gpu)
    idle_w = float(steady.node_w[0])
    started_j = [float(fleet.node_energy_j[0]) for fleet in (steady, in_pieces)]
    steady.step(sum(cuts), load)
    for dt_s in cuts:
        in_pieces.step(dt_s, load)
        in_pieces.step(7.0, in_pieces.idle_load())
    taken_j = [float(fleet.node_energy_j[0]) - j for fleet, j in zip((steady, in_pieces), started_j, strict=True)]
    assert in_pieces.cpus.work_s == pytest.approx(steady.cpus.work_s)
    assert in_pieces.gpus.work_s == pytest.approx(steady.gpus.work_s)
    assert taken_j[1] - 7.0 * len(cuts) * idle_w == pytest.approx(taken_j[0], rel=1e-6)


def test_a_step_of_no_time_changes_nothing() -> None:
    fleet = Fleet(MIXED)
    fleet.step(10.0, busy(fleet))
    before_j, before_c = fleet.node_energy_j, fleet.cpus.temperature_c.copy()
    fleet.step(0.0, busy(fleet))
    assert fleet.node_energy_j.tolist() == before_j.tolist()
    assert fleet.cpus.temperature_c.tolist() == before_c.tolist()


def test_while_a_cap_settles_the_energy_is_that_of_the_exponential() -> None:
    fleet = Fleet([gpu_node()])
    fleet.cpus.set_cap_w(0, 400.0)
    fleet.step(1.0, busy(fleet))
    assert fleet.cpus.energy_j[0] == pytest.approx(400 + (800 - 400) * 0.25 * -math.expm1(-1 / 0.25))
