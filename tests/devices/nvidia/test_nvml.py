"""The real NVML binding against a stand-in library: what a board can do and what can happen to it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.devices import interface
from joulie.devices.interface import (
    DeviceError,
    DeviceFaultError,
    Knob,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)
from tests.devices.standin.play import PlayedGpus, World

H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "min": 200_000,
    "max": 700_000,
    "default": 700_000,
    "limit": 700_000,
    "power": 412_345,
}
A40 = {"name": "NVIDIA A40", "min": 100_000, "max": 300_000, "default": 300_000, "limit": 300_000, "power": 60_000}
NO_PERMISSION = 4
FAILURES = {
    2: DeviceFaultError,
    3: NotSupportedError,
    NO_PERMISSION: NoPermissionError,
    6: NoDeviceError,
    8: DeviceFaultError,
    9: NoDeviceError,
    10: DeviceFaultError,
    15: NoDeviceError,
    16: NoDeviceError,
    18: DeviceFaultError,
    999: DeviceFaultError,
    12345: DeviceFaultError,  # from a driver newer than the binding
}


def knob(number: int) -> Knob:
    return Knob(f"GPU-{number}", "power_limit_mw")


@pytest.fixture
def h100s(world: World) -> World:
    world.say(boards=2)
    world.board(0, uuid="GPU-0", **H100)
    world.board(1, uuid="GPU-1", **H100)
    return world


@pytest.fixture
def gpus(h100s: World, nvml_folder: Path) -> Iterator[PlayedGpus]:
    with PlayedGpus("nvidia", h100s, [nvml_folder]) as played:
        yield played


def test_boards_are_described_in_watts(gpus: PlayedGpus) -> None:
    seen = gpus.discover()
    assert (seen.kind, seen.backend, seen.present, seen.count) == ("gpu", "nvidia", True, 2)
    assert (seen.raw_model, seen.vendor, seen.quality) == ("NVIDIA H100 80GB HBM3", "nvidia", "exact")
    assert (seen.min_w, seen.max_w, seen.default_w, seen.current_w) == (200.0, 700.0, 700.0, 700.0)
    assert (seen.no_control, seen.no_telemetry, seen.warnings) == (None, None, ())


def test_a_cap_is_written_in_milliwatts_read_back_and_put_back(gpus: PlayedGpus, h100s: World) -> None:
    found = gpus.found()
    assert found == {knob(0): 700_000, knob(1): 700_000}
    settings = gpus.settings(420.0, found)
    assert [(setting.knob, setting.value) for setting in settings] == [(knob(0), 420_000), (knob(1), 420_000)]
    gpus.apply(settings)
    assert [gpus.read(knob(0)), gpus.read(knob(1)), h100s.told("1.limit")] == [420_000, 420_000, 420_000]
    assert gpus.discover().current_w == 420.0
    gpus.apply(gpus.restoring(found))
    assert gpus.found() == found
    assert h100s.told("sessions") == 1


def test_a_board_found_above_its_default_is_put_back_to_the_default(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(0, default=600_000)
    h100s.board(1, limit=500_000)
    found = gpus.found()
    assert {s.knob: s.value for s in gpus.restoring(found)} == {knob(0): 600_000, knob(1): 500_000}
    assert {s.knob: s.value for s in gpus.settings(650.0, found)} == {knob(0): 600_000, knob(1): 500_000}


def test_no_target_leads_out_of_the_boards_range(gpus: PlayedGpus) -> None:
    found = gpus.found()
    for target, limit in ((0.0, 200_000), (-5.0, 200_000), (1e9, 700_000), (float("nan"), 700_000)):
        assert {setting.value for setting in gpus.settings(target, found)} == {limit}


def test_a_limit_outside_the_range_is_refused_by_the_driver_and_said(gpus: PlayedGpus) -> None:
    with pytest.raises(DeviceFaultError, match="GPU-0 cannot be limited to 50 W: the driver refuses the value"):
        gpus.write(knob(0), 50_000)
    assert gpus.read(knob(0)) == 700_000


def test_without_permission_it_is_blocked_with_what_is_needed(gpus: PlayedGpus, h100s: World) -> None:
    assert gpus.discover().no_control is None
    h100s.say(fails__set=NO_PERMISSION)
    with pytest.raises(NoPermissionError, match="SYS_ADMIN") as refused:
        gpus.write(knob(0), 300_000)
    assert refused.value.result == "blocked"
    seen = gpus.discover()
    assert seen.no_control is not None
    assert "SYS_ADMIN" in seen.no_control
    assert (seen.present, seen.count, seen.max_w, seen.no_telemetry) == (True, 2, 700.0, None)
    h100s.say(fails__set=0)
    gpus.write(knob(0), 300_000)
    assert gpus.discover().no_control is None


def test_a_lost_board_is_reported_and_the_others_go_on(gpus: PlayedGpus, h100s: World) -> None:
    found = gpus.found()
    gpus.write(knob(1), 300_000)
    h100s.board(0, lost=1)
    with pytest.raises(NoDeviceError, match="GPU-0: the board fell off the bus"):
        gpus.read(knob(0))
    with pytest.raises(NoDeviceError):
        gpus.write(knob(0), 300_000)
    assert gpus.power_w() is None
    seen = gpus.discover()
    assert seen.count == 1
    assert "GPU 0: the board fell off the bus" in seen.warnings[0]
    assert gpus.knobs() == [knob(1)]
    assert gpus.read(knob(1)) == 300_000
    # Ending the session would take the limits of the other boards with it where there is no persistence mode.
    assert h100s.told("sessions") == 1
    assert [setting.knob for setting in gpus.restoring(found)] == [knob(0), knob(1)]
    h100s.board(0, lost=0)
    assert gpus.found() == {knob(0): 700_000, knob(1): 300_000}


def test_a_limit_lost_with_the_driver_shows_and_can_be_applied_again(gpus: PlayedGpus, h100s: World) -> None:
    found = gpus.found()
    wanted = gpus.settings(350.0, found)
    gpus.apply(wanted)
    h100s.say(driver__load=1)  # loaded anew: the session is void, the limits are the defaults
    h100s.board(0, limit=700_000)
    h100s.board(1, limit=700_000)
    assert [gpus.read(setting.knob) for setting in wanted] == [700_000, 700_000]
    gpus.apply(wanted)
    assert [gpus.read(setting.knob) for setting in wanted] == [350_000, 350_000]
    assert h100s.told("sessions") == 2


def test_a_driver_that_is_loaded_later_is_found(h100s: World, nvml_folder: Path) -> None:
    h100s.say(driver=0)
    with PlayedGpus("nvidia", h100s, [nvml_folder]) as gpus:
        seen = gpus.discover()
        assert (seen.present, seen.quality) == (False, "unavailable")
        assert seen.no_control is not None
        assert "the NVIDIA driver is not loaded" in seen.no_control
        with pytest.raises(NoDeviceError):
            gpus.knobs()
        h100s.say(driver=1)
        assert gpus.discover().count == 2


def test_boards_seen_before_are_still_known_while_the_driver_is_away(gpus: PlayedGpus, h100s: World) -> None:
    assert gpus.discover().no_control is None
    h100s.say(driver=0, driver__load=1)
    seen = gpus.discover()
    assert (seen.present, seen.count, seen.max_w) == (True, 2, 700.0)
    assert seen.no_control is not None
    assert "not loaded" in seen.no_control
    assert seen.no_telemetry == seen.no_control
    h100s.say(driver=1)
    assert gpus.discover().no_control is None


def test_a_silently_clamped_limit_is_seen_by_reading(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(0, clamps_to=450_000)
    gpus.write(knob(0), 300_000)
    assert gpus.read(knob(0)) == 450_000


def test_what_is_read_is_the_enforced_limit(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(0, others=250_000)
    assert gpus.found() == {knob(0): 250_000, knob(1): 700_000}
    assert [setting.value for setting in gpus.settings(400.0, gpus.found())] == [250_000, 400_000]


def test_slices_of_a_board_are_not_boards(h100s: World, nvml_folder: Path) -> None:
    h100s.say(boards=4)
    h100s.board(2, uuid="MIG-a", slice_of=1)
    h100s.board(3, uuid="MIG-b", slice_of=1)
    with PlayedGpus("nvidia", h100s, [nvml_folder]) as gpus:
        assert gpus.discover().count == 2
        assert gpus.knobs() == [knob(0), knob(1)]


def test_mixed_boards_state_the_range_that_all_allow_and_keep_their_own(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(1, **A40)
    seen = gpus.discover()
    assert (seen.min_w, seen.max_w, seen.default_w, seen.current_w) == (200.0, 300.0, 300.0, 300.0)
    assert seen.quality == "heuristic"
    assert "1 × NVIDIA A40, 1 × NVIDIA H100 80GB HBM3" in seen.warnings[0]
    found = gpus.found()
    assert [setting.value for setting in gpus.settings(150.0, found)] == [200_000, 150_000]
    assert [setting.value for setting in gpus.settings(float("inf"), found)] == [700_000, 300_000]


def test_boards_without_a_common_range_state_none(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(1, **A40)
    h100s.board(0, min=400_000)
    seen = gpus.discover()
    assert (seen.min_w, seen.max_w, seen.no_control) == (None, None, None)
    assert any("no cap that all boards allow" in warning for warning in seen.warnings)
    assert [setting.value for setting in gpus.settings(350.0, gpus.found())] == [400_000, 300_000]


def test_a_board_that_cannot_be_limited_is_blocked(gpus: PlayedGpus, h100s: World) -> None:
    h100s.say(fails__range=3)
    seen = gpus.discover()
    assert seen.present
    assert seen.no_control is not None
    assert "cannot do it" in seen.no_control
    with pytest.raises(NotSupportedError):
        gpus.knobs()


def test_a_range_that_cannot_be_true_is_not_used(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(0, min=800_000)
    assert gpus.knobs() == [knob(1)]
    assert any("from 800000 to 700000" in warning for warning in gpus.discover().warnings)


def test_a_limit_of_nothing_is_a_bad_reading(gpus: PlayedGpus, h100s: World) -> None:
    h100s.board(0, limit=0)
    with pytest.raises(interface.BadReadingError, match="cannot be true"):
        gpus.read(knob(0))


def test_every_failure_of_nvml_has_a_name(gpus: PlayedGpus, h100s: World) -> None:
    for status, kind in FAILURES.items():
        h100s.board(1, fails__limit=status)
        with pytest.raises(DeviceError, match=r"GPU-1: .+ \(NVML says: .+\)") as failed:
            gpus.read(knob(1))
        assert (status, type(failed.value)) == (status, kind)
    h100s.board(1, fails__limit=0)
    assert gpus.read(knob(1)) == 700_000


def test_power_is_the_sum_of_all_boards_or_unknown(gpus: PlayedGpus, h100s: World) -> None:
    assert gpus.power_w() == pytest.approx(824.69)
    h100s.board(1, fails__power=3)
    assert gpus.power_w() is None
    no_telemetry = gpus.discover().no_telemetry
    assert no_telemetry is not None
    assert "GPU-1" in no_telemetry


def test_boards_keep_their_names_when_they_are_found_in_another_order(gpus: PlayedGpus, h100s: World) -> None:
    gpus.write(knob(0), 300_000)
    h100s.board(0, uuid="GPU-1", limit=700_000)
    h100s.board(1, uuid="GPU-0", limit=300_000)
    assert gpus.found() == {knob(0): 300_000, knob(1): 700_000}


def test_without_a_driver_there_is_no_board_and_the_binding_is_not_even_imported(world: World, tmp_path: Path) -> None:
    with PlayedGpus("nvidia", world, [tmp_path]) as gpus:
        seen = gpus.discover()
        assert (seen.present, seen.quality, seen.warnings) == (False, "unavailable", ())
        assert seen.no_control is not None
        assert "/run/nvidia/driver" in seen.no_control
        assert gpus.call("imported", "pynvml") is False
        with pytest.raises(NoDeviceError):
            gpus.read(knob(0))
        assert gpus.power_w() is None


def test_without_the_binding_it_is_blocked_with_what_to_install(gpus: PlayedGpus) -> None:
    gpus.call("hide", "pynvml")
    with pytest.raises(NotSupportedError, match=r"install joulie\[nvidia\]"):
        gpus.knobs()


@pytest.mark.slow
def test_a_hanging_call_ends_neither_the_agent_nor_in_a_heap_of_threads(h100s: World, nvml_folder: Path) -> None:
    limit_s = 1.0
    with PlayedGpus("nvidia", h100s, [nvml_folder], limit_s=limit_s) as gpus:
        assert gpus.discover().no_control is None
        h100s.say(hangs__limit=1)
        with pytest.raises(DeviceFaultError, match="did not return within 1 s"):
            gpus.read(knob(0))
        began = time.monotonic()
        for _ in range(20):
            with pytest.raises(DeviceFaultError, match="still hangs"):
                gpus.read(knob(0))
        assert time.monotonic() - began < 20 * limit_s / 2
        assert gpus.call("threads") == 2  # the main one, and the one that hangs
        seen = gpus.discover()
        assert seen.present
        assert seen.no_control is not None
        assert "hangs" in seen.no_control
        h100s.say(hangs__limit=0)
        deadline = time.monotonic() + 30
        while gpus.call("threads") > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert gpus.read(knob(0)) == 700_000
        h100s.say(hangs__limit=1)
        with pytest.raises(DeviceFaultError):
            gpus.read(knob(0))
        assert gpus.end() == 0  # although a call still hangs


def test_closing_lets_go_of_the_library_and_the_next_call_takes_it_up_again(gpus: PlayedGpus, h100s: World) -> None:
    assert gpus.read(knob(0)) == 700_000
    gpus.call("close")
    assert h100s.told("shutdowns") == 1
    assert gpus.read(knob(0)) == 700_000
    assert h100s.told("sessions") == 2
