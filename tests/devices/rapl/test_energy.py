"""Power from energy counters: differences, wraps, and what is not believed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.devices.interface import NoPermissionError
from joulie.devices.rapl.capper import Rapl
from joulie.devices.rapl.energy import Counter, EnergyMeter, mean_power_w
from joulie.devices.sysfs import SysFs
from tests.devices.enforcing import Clock, run
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_pieces import NARROW_RANGE_UJ, UW, Tree
from tests.devices.sysfs_trees import build


def metered(machine: str, folder: Path) -> tuple[Tree, Rapl, Clock]:
    tree, clock = build(machine, folder), Clock()
    return tree, Rapl(SysFs(tree.sys), clock), clock


@pytest.mark.parametrize(
    ("machine", "watts"),
    [("intel-xeon-6148-dual", 210.0), ("intel-xeon-8280l-16-sockets", 2000.0), ("amd-epyc-7302p", 120.0)],
)
def test_power_is_energy_over_time_of_all_packages(machine: str, watts: float, tmp_path: Path) -> None:
    tree, rapl, clock = metered(machine, tmp_path)
    assert run(rapl.power_w()) is None, "one look is not enough"
    for _ in range(40):  # the narrow counters start again every few minutes
        clock.advance(20)
        tree.spend(watts, 20)
        assert run(rapl.power_w()) == pytest.approx(watts, rel=1e-6)


def test_neither_parts_of_a_package_nor_its_second_view_are_added(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-i9-13900hx", tmp_path)
    run(rapl.power_w())
    clock.advance(10)
    tree.spend(60, 10)
    tree.add_energy("devices/virtual/powercap/intel-rapl/intel-rapl:1", 900)  # psys
    tree.add_energy("devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0", 500)  # core
    assert run(rapl.power_w()) == pytest.approx(60)
    assert [zone.zone for zone in run(rapl.zone_powers())] == ["package-0"]


def test_power_far_above_tdp_is_believed_where_the_limits_allow_it(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-i9-13900hx", tmp_path)  # 55 W of TDP, limits of 135 W and 162 W
    run(rapl.power_w())
    clock.advance(20)
    tree.spend(150, 20)
    assert run(rapl.power_w()) == pytest.approx(150)


def test_minutes_between_two_looks_are_bridged_as_long_as_only_one_answer_is_possible(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-xeon-8280l-16-sockets", tmp_path)
    run(rapl.power_w())
    clock.advance(170)
    tree.spend(16 * 200, 170)  # 34 kJ of a range of 65 kJ; at most 246 W × 1.5 × 170 s = 63 kJ
    assert run(rapl.power_w()) == pytest.approx(3200, rel=1e-6)
    clock.advance(600)
    tree.spend(16 * 200, 600)  # two turns, or one, or none: it cannot be known
    assert run(rapl.power_w()) is None
    clock.advance(20)
    tree.spend(16 * 100, 20)
    assert run(rapl.power_w()) == pytest.approx(1600, rel=1e-6)


def test_a_counter_that_jumps_is_not_believed_once_and_then_is_again(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-xeon-6148-dual", tmp_path)
    run(rapl.power_w())
    clock.advance(20)
    tree.add_energy("devices/virtual/powercap/intel-rapl/intel-rapl:0", 100_000)
    assert run(rapl.power_w()) is None
    clock.advance(20)
    tree.spend(200, 20)
    assert run(rapl.power_w()) == pytest.approx(200)


def test_a_counter_that_was_reset_is_not_believed(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-xeon-6148-dual", tmp_path)
    tree.spend(300, 100)
    run(rapl.power_w())
    clock.advance(20)
    for zone in tree.zones():
        tree.put(f"{zone}/energy_uj", 0)
    assert run(rapl.power_w()) is None


def test_two_looks_at_once_give_the_same_power(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-xeon-6148-dual", tmp_path)
    run(rapl.power_w())
    clock.advance(20)
    tree.spend(200, 20)
    zones = run(rapl.zone_powers())
    clock.advance(0.001)
    tree.spend(200, 0.001)
    assert run(rapl.power_w()) == sum(zone.power_w or 0 for zone in zones) == pytest.approx(200)


def test_a_package_that_went_and_came_back_starts_anew(tmp_path: Path) -> None:
    tree, rapl, clock = metered("intel-xeon-6148-dual", tmp_path)
    run(rapl.power_w())
    zone = tree.file(tree.zones("package-1")[0])
    hidden = tmp_path / "hidden"
    zone.rename(hidden)
    clock.advance(20)
    tree.add_energy(tree.zones()[0], 100 * 20)
    assert run(rapl.power_w()) == pytest.approx(100), "what is left is all there is"
    hidden.rename(zone)
    clock.advance(20)
    tree.spend(200, 20)
    assert run(rapl.power_w()) is None
    clock.advance(20)
    tree.spend(200, 20)
    assert run(rapl.power_w()) == pytest.approx(200)


def test_half_of_the_packages_is_not_the_nodes_power(tmp_path: Path) -> None:
    tree, clock = build("intel-xeon-6148-dual", tmp_path), Clock()
    sysfs = FaultySysFs(tree.sys)
    rapl = Rapl(sysfs, clock)
    run(rapl.power_w())
    clock.advance(20)
    tree.spend(200, 20)
    sysfs.fail("read", "intel-rapl:1/energy_uj", errno.EIO)
    assert run(rapl.power_w()) is None
    sysfs.heal()
    sysfs.fail("open", "energy_uj", errno.EACCES)
    with pytest.raises(NoPermissionError):
        run(rapl.zone_powers())


def test_a_clock_that_stands_still_or_goes_back_gives_no_power() -> None:
    meter = EnergyMeter()
    counter = Counter("package-0", 1_000_000, NARROW_RANGE_UJ, 200.0)
    assert meter.power(counter, 100.0).power_w is None
    assert meter.power(counter, 100.0).power_w is None
    assert meter.power(counter._replace(energy_uj=2_000_000), 90.0).power_w is None
    assert meter.power(counter._replace(energy_uj=12_000_000), 100.0).power_w == pytest.approx(1.0)


def test_a_counter_without_a_known_range_only_counts_up() -> None:
    before = 10_000_000
    assert mean_power_w(before, Counter("z", before + 5_000_000, 0, 200.0), 1.0) == pytest.approx(5.0)
    assert mean_power_w(before, Counter("z", before - 1, 0, 200.0), 1.0) is None


@given(
    before_uj=st.integers(0, NARROW_RANGE_UJ - 1),
    watts=st.floats(0, 250),
    seconds=st.floats(0.5, 160),
)
def test_any_true_power_is_found_wherever_the_counter_stands(before_uj: int, watts: float, seconds: float) -> None:
    now_uj = (before_uj + round(watts * seconds * UW)) % NARROW_RANGE_UJ
    found_w = mean_power_w(before_uj, Counter("z", now_uj, NARROW_RANGE_UJ, 250.0), seconds)
    assert found_w == pytest.approx(watts, abs=1e-5)


@given(
    before_uj=st.integers(-(10**15), 10**15),
    now_uj=st.integers(-(10**15), 10**15),
    range_uj=st.integers(-1, 10**12),
    max_w=st.none() | st.floats(1, 999),
    seconds=st.floats(-1e6, 1e6),
)
def test_no_pair_of_looks_gives_a_power_that_cannot_be_true(
    before_uj: int, now_uj: int, range_uj: int, max_w: float | None, seconds: float
) -> None:
    found_w = mean_power_w(before_uj, Counter("z", now_uj, range_uj, max_w), seconds)
    assert found_w is None or 0 <= found_w <= 1.5 * (max_w or 1000) * (1 + 1e-9)
