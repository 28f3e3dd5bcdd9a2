"""Holding a power cap by frequency through the whole agent: journal, device, drift and readings that lie."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.outcome import CapLimits
from joulie.devices.cpufreq.capper import Cpufreq, find_policies
from joulie.devices.interface import DeviceFaultError, NoDeviceError
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import TICK_S, Held, entries_on_disk, target
from tests.devices.enforcing import Clock
from tests.devices.fake_capper import FakeCapper
from tests.devices.sysfs_trees import build

MAX_W = 400.0
SETTINGS = DvfsSettings()
TICKS_AN_HOUR = int(3600 / TICK_S)


class Plant:
    """A loaded CPU: power falls in proportion to the throttle that is really in force."""

    def __init__(self, seed: int = 1, noise_w: float = 4.0, watts_per_pct: float = 2.5) -> None:
        self.device = FakeCapper("cpu", "throttle_pct", name="dvfs")
        self._random = Random(seed)
        self._noise_w = noise_w
        self._watts_per_pct = watts_per_pct

    @property
    def throttle_pct(self) -> float:
        (throttle_pct,) = set(self.device.values.values())
        return throttle_pct

    @property
    def power_w(self) -> float:
        return MAX_W - self._watts_per_pct * self.throttle_pct

    def reading_w(self) -> float:
        return max(1.0, self.power_w + self._random.gauss(0.0, self._noise_w))


def no_rapl() -> FakeCapper:
    device = FakeCapper("cpu", "watts", name="rapl")
    device.blocked = NoDeviceError("no zone")
    return device


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("watts_per_pct", [1.5, 2.5, 3.3])
def test_under_a_noisy_load_the_cap_is_held_within_its_margins_with_few_actions(
    tmp_path: Path, seed: int, watts_per_pct: float
) -> None:
    plant = Plant(seed, watts_per_pct=watts_per_pct)
    held = Held(tmp_path, [no_rapl(), plant.device], power=plant.reading_w)
    actions = []
    for _ in range(2):
        before = sum(held.control.dvfs.actions.values())
        for _ in range(TICKS_AN_HOUR):
            assert held.enforce(target(cpu_w=260)).cpu.result == "applied"
        actions.append(sum(held.control.dvfs.actions.values()) - before)
    assert 260 - SETTINGS.low_margin_w <= plant.power_w <= 260 + SETTINGS.high_margin_w
    assert actions[0] <= 12
    assert actions[1] <= 2


def test_on_a_machine_with_cpufreq_alone_every_policy_follows_and_ends_as_found(tmp_path: Path) -> None:
    """An AMD server: its energy counters are real, its limits are not."""
    tree = build("amd-epyc-7302p", tmp_path)
    sysfs, clock = SysFs(tree.sys), Clock()
    rapl, cpufreq = Rapl(sysfs, clock, catalogue_max_w=155.0), Cpufreq(sysfs, SETTINGS)
    policies = find_policies(sysfs)

    def highest_khz() -> set[str]:
        return {tree.text(f"{policy}/scaling_max_freq") for policy in policies}

    found = highest_khz()
    held = Held(tmp_path / "state", [rapl, cpufreq], limits=CapLimits(cpu_max_w=155.0), sensor=rapl.power_w)
    enforced = None
    for _ in range(30):
        share = int(min(highest_khz())) / 3_000_000
        tree.spend(60 + 95 * share, TICK_S)
        clock.advance(TICK_S)
        enforced = held.enforce(target(cpu_w=110))
    assert enforced is not None
    assert (enforced.cpu.result, enforced.cpu.backend) == ("applied", "dvfs")
    assert "rapl cannot" in enforced.cpu.message
    [limited] = highest_khz()
    assert 1_500_000 <= int(limited) < 3_000_000
    assert len(entries_on_disk(held.state_dir)) == len(policies)
    assert held.restore().left == ()
    assert highest_khz() == found


def test_a_hot_unplugged_cpu_stays_in_the_journal_and_is_restored_when_it_returns(tmp_path: Path) -> None:
    tree = build("arm-altra-dual", tmp_path)
    sysfs = SysFs(tree.sys)
    held = Held(tmp_path / "state", [Cpufreq(sysfs, SETTINGS)], limits=CapLimits())
    held.enforce(target(cpu_pct=50))
    policy = find_policies(sysfs)[3]
    limited = tree.text(f"{policy}/scaling_max_freq")
    everything = {path.name: path.read_text() for path in tree.file(policy).iterdir() if path.is_file()}
    tree.unplug_cpu(3)
    assert f"{policy} is gone and stays in the journal" in held.enforce(target(cpu_pct=40)).cpu.message
    left = held.restore().left
    assert [policy in line for line in left] == [True]
    for name, content in everything.items():
        tree.put(f"{policy}/{name}", content.strip())
    assert tree.text(f"{policy}/scaling_max_freq") == limited
    assert held.restore().left == ()
    assert tree.text(f"{policy}/scaling_max_freq") == "3000000"


class TestLies:
    """No single reading moves anything; no reading at all is answered by the percent path, not by the floor."""

    @pytest.mark.parametrize("lie", [math.nan, math.inf, -50.0, 0.0, 1e9, 479.0, 1.0, None])
    def test_one_lie_moves_nothing(self, tmp_path: Path, lie: float | None) -> None:
        plant = Plant(noise_w=0.0)
        held = Held(tmp_path, [no_rapl(), plant.device], power=plant.reading_w)
        for _ in range(60):
            held.enforce(target(cpu_w=260))
        settled = plant.throttle_pct
        held.power = iter([lie, *[plant.power_w] * 20]).__next__
        for _ in range(20):
            held.enforce(target(cpu_w=260))
        assert plant.throttle_pct == settled

    @pytest.mark.parametrize("lie", [math.nan, -50.0, 1e9, None])
    def test_a_sensor_that_only_lies_ends_in_the_percent_path(self, tmp_path: Path, lie: float | None) -> None:
        plant = Plant()
        held = Held(tmp_path, [no_rapl(), plant.device], power=lambda: lie)
        for _ in range(100):
            held.enforce(target(cpu_w=300))
        assert plant.throttle_pct == 25
        assert held.control.dvfs.actions == {"open_loop": 1}

    def test_a_sensor_that_fails_is_a_sensor_that_is_silent(self, tmp_path: Path) -> None:
        plant = Plant()

        def broken() -> float:
            raise DeviceFaultError("the counter cannot be read")

        held = Held(tmp_path, [no_rapl(), plant.device], power=broken)
        for _ in range(10):
            assert held.enforce(target(cpu_w=300)).cpu.result == "applied"
        assert plant.throttle_pct == 25

    def test_believable_lies_that_stay_throttle_step_by_step_never_at_once(self, tmp_path: Path) -> None:
        plant = Plant()
        held = Held(tmp_path, [no_rapl(), plant.device], power=lambda: 399.0)
        steps = []
        for _ in range(TICKS_AN_HOUR):
            held.enforce(target(cpu_w=100))
            steps.append(plant.throttle_pct)
        assert max(later - sooner for sooner, later in zip([0.0, *steps], steps, strict=False)) <= SETTINGS.step_pct
        assert steps[-1] == 100


READINGS = st.none() | st.floats(0.1, 600) | st.sampled_from([0.0, -3.0, math.nan, math.inf, -math.inf, 1e12])
CAPS = st.sampled_from([120.0, 200.0, 260.0, 390.0])


@given(
    st.lists(st.tuples(READINGS, CAPS | st.none(), st.floats(1.0, 90.0)), max_size=60),
    st.sampled_from([DvfsSettings(), DvfsSettings(cooldown_s=60.0, trip_count=3), DvfsSettings(trip_count=1)]),
)
def test_whatever_is_read_the_throttle_keeps_its_range_its_cooldown_and_its_count(
    tmp_path_factory: pytest.TempPathFactory,
    ticks: list[tuple[float | None, float | None, float]],
    settings: DvfsSettings,
) -> None:
    plant = Plant()
    readings = iter([reading for reading, _, _ in ticks])
    held = Held(tmp_path_factory.mktemp("dvfs"), [no_rapl(), plant.device], power=lambda: next(readings), dvfs=settings)
    acted_at_s: list[float] = []
    ticks_since = 1000
    for _, cap_w, pause_s in ticks:
        ticks_since += 1
        held.now_s += pause_s - TICK_S
        before, actions = plant.throttle_pct, dict(held.control.dvfs.actions)
        enforced = held.enforce(target(cpu_w=cap_w) if cap_w is not None else target(cpu_pct=70))
        assert enforced.cpu.result == "applied"
        assert 0 <= plant.throttle_pct <= 100
        assert set(plant.device.values.values()) == {plant.throttle_pct}
        closed = sum(n - actions.get(name, 0) for name, n in held.control.dvfs.actions.items() if name != "open_loop")
        if closed:
            assert abs(plant.throttle_pct - before) <= settings.step_pct
            assert not acted_at_s or held.now_s - acted_at_s[-1] >= settings.cooldown_s
            assert ticks_since >= settings.trip_count
        if held.control.dvfs.actions != actions:
            acted_at_s.append(held.now_s)
            ticks_since = 0
    assert held.restore().left == ()
    assert plant.throttle_pct == 0
    assert entries_on_disk(held.state_dir) == {}
