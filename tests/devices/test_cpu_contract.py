"""What holds for every CPU device on every machine: found, capped, read back, put back; never out of range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.interface import Capper, DeviceFaultError, Knob, NoDeviceError, Value
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.devices.enforcing import Clock, find, put, run
from tests.devices.fake_capper import FakeCapper
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import MACHINES, build

CATALOGUE_MAX_W = 270.0  # for the machine that states none
ANY_TARGET = (
    st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, 5e-324]) | st.floats(0, 5e3)
)

CONTROLLED = [
    ("intel-i9-13900hx", "rapl"),
    ("intel-xeon-6148-dual", "rapl"),
    ("intel-xeon-6530-dual", "rapl"),
    ("intel-xeon-8280l-16-sockets", "rapl"),
    ("intel-xeon-9242-dies", "rapl"),
    ("intel-atom-c3758", "rapl"),
    ("intel-xeon-6238-no-cpufreq", "rapl"),
    ("amd-epyc-9654-hsmp", "hsmp"),
    *((machine, "dvfs") for machine in MACHINES if machine not in {"intel-xeon-6238-no-cpufreq", "vm"}),
]


def open_capper(backend: str, sysfs: SysFs) -> Capper:
    if backend == "rapl":
        return Rapl(sysfs, Clock(), CATALOGUE_MAX_W)
    return Hsmp(sysfs) if backend == "hsmp" else Cpufreq(sysfs, DvfsSettings())


def fake(name: str) -> FakeCapper:
    return {
        "watts": FakeCapper("cpu", "watts"),
        "each": FakeCapper("gpu", "watts_each", count=4, min_w=100, max_w=700, found=600),
        "throttle": FakeCapper("cpu", "throttle_pct", count=1),
    }[name]


def contents(tree: Tree) -> dict[str, str]:
    """Every file of a tree."""
    files = (path for path in tree.sys.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(tree.sys)): path.read_text() for path in files}


@pytest.mark.parametrize(("machine", "backend"), CONTROLLED)
def test_a_cap_is_applied_and_taken_back_without_a_trace(machine: str, backend: str, tmp_path: Path) -> None:
    tree = build(machine, tmp_path)
    sysfs = FaultySysFs(tree.sys)
    capper = open_capper(backend, sysfs)
    before = contents(tree)
    found = find(capper)
    discovered = run(capper.discover())
    assert contents(tree) == before, "looking changes nothing"
    target = 40.0 if capper.unit == "throttle_pct" else 0.6 * (discovered.max_w or 0) * discovered.count
    settings = capper.settings(target, found)
    assert {setting.knob for setting in settings} <= set(found)
    put(capper, settings)
    changed = {path for path, content in contents(tree).items() if before[path] != content}
    assert changed
    assert {f"/sys/{path}" for path in changed} <= {"/".join(knob) for knob in found}
    put(capper, capper.restoring(found))
    assert contents(tree) == before
    run(capper.close())
    assert contents(tree) == before


@pytest.mark.parametrize(("machine", "backend"), CONTROLLED)
def test_the_same_target_asks_for_the_same_while_a_cap_is_in_force(machine: str, backend: str, tmp_path: Path) -> None:
    capper = open_capper(backend, SysFs(build(machine, tmp_path).sys))
    found = find(capper)
    first = capper.settings(30, found)
    put(capper, first)
    assert capper.settings(30, found) == first


@pytest.fixture(scope="module")
def cappers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Capper, dict[Knob, Value]]]:
    """One of each kind with what was found; nothing is written, so all examples can share them."""
    folder = tmp_path_factory.mktemp("machines")
    chosen = [pair for pair in CONTROLLED if pair[1] != "dvfs" or pair[0] in {"intel-atom-c3758", "arm-cm4"}]
    real = [open_capper(backend, SysFs(build(machine, folder / backend).sys)) for machine, backend in chosen]
    return [(capper, find(capper)) for capper in (*real, fake("watts"), fake("each"), fake("throttle"))]


@given(target=ANY_TARGET)
def test_whatever_is_asked_no_setting_leaves_its_range_or_rises_above_what_was_found(
    target: float, cappers: list[tuple[Capper, dict[Knob, Value]]]
) -> None:
    for capper, found in cappers:
        for setting in capper.settings(target, found):
            assert_in_range(capper, setting.knob, setting.value, found)


@given(target=st.floats(0, 5e3), share=st.floats(0, 1.5))
def test_limits_that_were_lowered_or_raised_before_are_kept_as_a_ceiling(
    target: float, share: float, cappers: list[tuple[Capper, dict[Knob, Value]]]
) -> None:
    for capper, as_built in cappers:
        found = {
            knob: value if knob.attribute in {"enabled", "throttle_pct"} else int(share * (value or 0))
            for knob, value in as_built.items()
        }
        for setting in capper.settings(target, found):
            assert_in_range(capper, setting.knob, setting.value, found)


def assert_in_range(capper: Capper, knob: Knob, value: Value, found: Mapping[Knob, Value]) -> None:
    was = found[knob]
    assert value is not None
    assert was is not None
    assert math.isfinite(value)
    if knob.attribute == "enabled":
        assert value in {0, 1}
    elif knob.attribute == "throttle_pct":
        assert 0 <= value <= 100
    elif was > 0:
        assert 0 < value <= was or value == was
    elif capper.name in {"rapl", "hsmp"}:  # a limit of 0 was none; the package's maximum is the ceiling then
        assert 0 <= value <= 500e6
    if capper.name == "dvfs":
        assert value >= min(was, DvfsSettings().min_freq_khz)


@given(low=st.floats(0, 5e3), high=st.floats(0, 5e3))
def test_a_higher_target_never_means_a_lower_limit(
    low: float, high: float, cappers: list[tuple[Capper, dict[Knob, Value]]]
) -> None:
    low, high = sorted((low, high))
    for capper, found in cappers:
        if capper.unit == "throttle_pct":
            continue
        lower = {setting.knob: setting.value for setting in capper.settings(low, found)}
        higher = {setting.knob: setting.value for setting in capper.settings(high, found)}
        for knob, value in lower.items():
            other = higher[knob]
            assert value is not None
            assert other is not None
            if knob.attribute != "enabled":
                assert value <= other


class TestFake:
    @pytest.mark.parametrize("name", ["watts", "each", "throttle"])
    def test_it_keeps_the_contract(self, name: str) -> None:
        capper = fake(name)
        found = find(capper)
        put(capper, capper.settings(240, found))
        assert len(capper.writes) == len(found)
        put(capper, capper.restoring(found))
        assert capper.values == found
        run(capper.close())
        assert capper.closed

    def test_watts_of_the_node_are_split_and_clamped(self) -> None:
        capper = fake("watts")
        found = find(capper)
        assert {s.value for s in capper.settings(240, found)} == {120}
        assert {s.value for s in capper.settings(10, found)} == {50}
        assert {s.value for s in capper.settings(9999, found)} == {200}

    def test_faults_happen_on_demand(self) -> None:
        capper = fake("watts")
        found = find(capper)
        first, second = found
        capper.on_write[first] = DeviceFaultError("broken")
        with pytest.raises(DeviceFaultError, match="broken"):
            run(capper.write(first, 100))
        capper.deaf.add(second)
        run(capper.write(second, 100))
        assert run(capper.read(second)) == 200
        assert capper.writes == [(first, 100), (second, 100)]
        capper.gone.add(second)
        assert [s.knob for s in capper.settings(100, found)] == [first]
        with pytest.raises(NoDeviceError):
            run(capper.read(second))
        capper.on_read[first] = DeviceFaultError("blind")
        with pytest.raises(DeviceFaultError, match="blind"):
            run(capper.read(first))
        capper.blocked = DeviceFaultError("no way")
        with pytest.raises(DeviceFaultError, match="no way"):
            run(capper.knobs())
        assert run(capper.discover()).no_control == "no way"
        assert run(capper.power_w()) is None
        capper.power = 321.0
        assert run(capper.power_w()) == 321.0
