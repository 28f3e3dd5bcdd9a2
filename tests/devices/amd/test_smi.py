"""The real AMD SMI binding against a stand-in library, and what becomes of a binding that cannot be used."""

import ctypes
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.devices.interface import (
    DeviceError,
    DeviceFaultError,
    Knob,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)
from tests.devices.standin.compile import amdsmi_symbols
from tests.devices.standin.play import PlayedGpus, World

W = 1_000_000
MI210 = {
    "name": "AMD Instinct MI210",
    "min": 100 * W,
    "max": 300 * W,
    "default": 300 * W,
    "limit": 300 * W,
    "current_w": 87,
}
ADDRESSES = ("0000:83:00.0", "0000:c3:00.0")
FIRST, SECOND = (Knob(address, "power_cap_uw") for address in ADDRESSES)

FAILURES = {
    1: NotSupportedError,  # a second die that takes no limit
    2: NotSupportedError,
    7: DeviceFaultError,
    8: DeviceFaultError,
    9: DeviceFaultError,
    10: NoPermissionError,
    30: DeviceFaultError,
    31: NoDeviceError,
    34: NoDeviceError,
    4294967295: DeviceFaultError,
}


@pytest.fixture
def boards(world: World) -> World:
    world.say(boards=2)
    for number, address in enumerate(ADDRESSES):
        world.board(number, bdf=address, **MI210)
    return world


@pytest.fixture
def gpus(boards: World, amdsmi_folder: Path) -> Iterator[PlayedGpus]:
    with PlayedGpus("amdsmi", boards, [amdsmi_folder]) as played:
        yield played


def test_the_stand_in_has_every_symbol_that_the_binding_wants(amdsmi_folder: Path) -> None:
    library = ctypes.CDLL(str(amdsmi_folder / "libamd_smi.so"))
    assert "amdsmi_get_power_cap_info" in amdsmi_symbols()
    assert [name for name in amdsmi_symbols() if not hasattr(library, name)] == []


def test_boards_are_described_in_watts(gpus: PlayedGpus) -> None:
    seen = gpus.discover()
    assert (seen.kind, seen.backend, seen.present, seen.count) == ("gpu", "amd", True, 2)
    assert (seen.raw_model, seen.vendor, seen.quality) == ("AMD Instinct MI210", "amd", "exact")
    assert (seen.min_w, seen.max_w, seen.default_w, seen.current_w) == (100.0, 300.0, 300.0, 300.0)
    assert (seen.no_control, seen.no_telemetry, seen.warnings) == (None, None, ())


def test_a_cap_is_written_in_microwatts_read_back_and_put_back(gpus: PlayedGpus, boards: World) -> None:
    found = gpus.found()
    assert found == {FIRST: 300 * W, SECOND: 300 * W}
    settings = gpus.settings(180.5, found)
    gpus.apply(settings)
    assert boards.told("0.limit") == 180 * W  # whole watts, as the driver keeps them
    for setting in settings:
        seen = gpus.read(setting.knob)
        assert seen is not None
        assert setting.value is not None
        assert abs(seen - setting.value) <= setting.tolerance
    gpus.apply(gpus.restoring(found))
    assert gpus.found() == found
    assert boards.told("sessions") == 1


def test_a_board_found_above_its_default_is_put_back_to_the_default(gpus: PlayedGpus, boards: World) -> None:
    boards.board(0, max=350 * W, limit=350 * W)
    assert {s.knob: s.value for s in gpus.restoring(gpus.found())} == {FIRST: 300 * W, SECOND: 300 * W}


def test_a_limit_lost_with_the_driver_shows_and_can_be_applied_again(gpus: PlayedGpus, boards: World) -> None:
    wanted = gpus.settings(150.0, gpus.found())
    gpus.apply(wanted)
    boards.say(driver__load=1)
    boards.board(0, limit=300 * W)
    assert [gpus.read(FIRST), gpus.read(SECOND)] == [300 * W, 150 * W]
    gpus.apply(wanted)
    assert [gpus.read(FIRST), gpus.read(SECOND)] == [150 * W, 150 * W]
    assert boards.told("sessions") == 2


def test_a_silently_clamped_limit_is_seen_by_reading(gpus: PlayedGpus, boards: World) -> None:
    boards.board(0, clamps_to=200 * W)
    gpus.write(FIRST, 150 * W)
    assert gpus.read(FIRST) == 200 * W


def test_without_permission_it_is_blocked(gpus: PlayedGpus, boards: World) -> None:
    boards.say(fails__set=10)
    with pytest.raises(NoPermissionError, match="UID 0"):
        gpus.write(FIRST, 150 * W)
    assert "UID 0" in (gpus.discover().no_control or "")


def test_a_lost_board_is_reported_and_the_others_go_on(gpus: PlayedGpus, boards: World) -> None:
    assert gpus.discover().count == 2
    boards.board(0, lost=1)
    with pytest.raises(NoDeviceError, match=ADDRESSES[0]):
        gpus.read(FIRST)
    seen = gpus.discover()
    assert seen.count == 1
    assert "there is no such board" in seen.warnings[0]
    assert gpus.knobs() == [SECOND]
    assert boards.told("sessions") == 1


def test_second_dies_and_partitions_are_not_boards(gpus: PlayedGpus, boards: World) -> None:
    boards.say(boards=4)
    boards.board(2, bdf="0000:83:00.1", name="partition", fails__limit=2)
    boards.board(3, bdf="0000:c4:00.0", name="second die", max=0, limit=0)
    seen = gpus.discover()
    assert (seen.count, seen.raw_model) == (2, "AMD Instinct MI210")
    assert [warning.split()[0] for warning in seen.warnings] == ["0000:83:00.1", "0000:c4:00.0"]
    assert gpus.knobs() == [FIRST, SECOND]


def test_where_no_board_can_be_limited_all_are_reported_and_blocked(gpus: PlayedGpus, boards: World) -> None:
    boards.say(fails__limit=2)
    seen = gpus.discover()
    assert (seen.present, seen.count, seen.max_w) == (True, 2, None)
    assert "cannot do it" in (seen.no_control or "")
    with pytest.raises(NotSupportedError):
        gpus.knobs()


@pytest.mark.parametrize(("reading", "power_w"), [("socket_w", 120.0), ("current_w", 120.0), ("average_w", 120.0)])
def test_power_comes_from_whichever_reading_the_board_has(
    gpus: PlayedGpus, boards: World, reading: str, power_w: float
) -> None:
    for board in (0, 1):
        boards.board(board, current_w=0xFFFF)
        boards.board(board, **{reading: 60})
    assert gpus.power_w() == power_w
    boards.board(1, **{reading: 0xFFFFFFFF})
    assert gpus.power_w() is None
    assert "reports no power" in (gpus.discover().no_telemetry or "")


def test_a_name_that_cannot_be_had_costs_only_the_name(gpus: PlayedGpus, boards: World) -> None:
    boards.board(0, serial="not hexadecimal")  # the binding stumbles over it
    seen = gpus.discover()
    assert (seen.count, seen.raw_model, seen.no_control) == (2, "AMD Instinct MI210", None)


def test_every_failure_of_amd_smi_has_a_name(gpus: PlayedGpus, boards: World) -> None:
    for status, kind in FAILURES.items():
        boards.board(0, fails__limit=status)
        with pytest.raises(DeviceError, match=r"0000:83:00\.0: .+ \(AMD SMI says: .+\)") as failed:
            gpus.read(FIRST)
        assert (status, type(failed.value)) == (status, kind)
        assert "\n" not in str(failed.value)


def test_a_driver_that_is_loaded_later_is_found(boards: World, amdsmi_folder: Path) -> None:
    boards.say(driver=0)
    with PlayedGpus("amdsmi", boards, [amdsmi_folder]) as gpus:
        seen = gpus.discover()
        assert not seen.present
        assert "the amdgpu driver is not loaded" in (seen.no_control or "")
        boards.say(driver=1)
        assert gpus.discover().count == 2


def test_a_binding_without_its_library_is_blocked_and_prints_nothing(world: World, tmp_path: Path) -> None:
    with PlayedGpus("amdsmi", world, [tmp_path]) as gpus:
        for _ in range(2):
            seen = gpus.discover()
            assert (seen.present, seen.quality, seen.warnings) == (False, "unavailable", ())
            assert "libamd_smi.so" in (seen.no_control or "")
        with pytest.raises(NotSupportedError, match="AMD SMI cannot be loaded"):
            gpus.knobs()
        assert gpus.end() == 0  # which also looks at what was printed


def test_a_library_that_does_not_match_the_binding_is_blocked(world: World, nvml_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "libamd_smi.so").symlink_to(nvml_folder / "libnvidia-ml.so.1")  # a library, but not with those symbols
    with PlayedGpus("amdsmi", world, [tmp_path]) as gpus:
        assert "undefined symbol" in (gpus.discover().no_control or "")


def test_without_the_binding_it_is_blocked_with_what_to_install(gpus: PlayedGpus) -> None:
    gpus.call("hide", "amdsmi")
    with pytest.raises(NotSupportedError, match=r"install joulie\[amd\]"):
        gpus.knobs()


@pytest.mark.slow
def test_a_hanging_call_is_given_up(boards: World, amdsmi_folder: Path) -> None:
    with PlayedGpus("amdsmi", boards, [amdsmi_folder], limit_s=1.0) as gpus:
        assert gpus.discover().count == 2
        boards.say(hangs__set=1)
        with pytest.raises(DeviceFaultError, match="did not return"):
            gpus.write(FIRST, 150 * W)
        with pytest.raises(DeviceFaultError, match="still hangs"):
            gpus.read(FIRST)
        boards.say(hangs__set=0)
        deadline = time.monotonic() + 30
        while gpus.call("threads") > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert gpus.read(FIRST) == 150 * W  # the write came through late; reading shows it
