"""AMD boards through the files of the amdgpu driver."""

import asyncio
import errno
import math
import shutil
from pathlib import Path

import pytest

from joulie.devices.amd.hwmon import AmdgpuHwmon
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    Discovered,
    Knob,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
    Value,
)
from joulie.devices.sysfs import SysFs
from tests.devices.amd.hwmon_tree import DISPLAY, AmdgpuTree, W
from tests.devices.faulty_sysfs import FaultySysFs
from tests.devices.standin.play import PlayedGpus, World

ADDRESSES = ("0000:83:00.0", "0000:c3:00.0")
FIRST, SECOND = (Knob(address, "power_cap_uw") for address in ADDRESSES)
MI210 = {"cap": 300, "cap_min": 100, "cap_max": 300, "cap_default": 300, "average": 42}


@pytest.fixture
def tree(tmp_path: Path) -> AmdgpuTree:
    tree = AmdgpuTree(tmp_path)
    tree.other("k10temp")
    for address in ADDRESSES:
        tree.board(address, **MI210)
    return tree


@pytest.fixture
def gpus(tree: AmdgpuTree) -> GpuCapper:
    return on(SysFs(tree.sys))


def on(sysfs: SysFs) -> GpuCapper:
    return GpuCapper(AmdgpuHwmon(sysfs))


def seen_by(gpus: GpuCapper) -> Discovered:
    return asyncio.run(gpus.discover())


async def found_by(gpus: GpuCapper) -> dict[Knob, Value]:
    return {knob: await gpus.read(knob) for knob in await gpus.knobs()}


def test_boards_are_described_in_watts_and_named_by_pci_address(gpus: GpuCapper) -> None:
    seen = seen_by(gpus)
    assert (seen.kind, seen.backend, seen.present, seen.count) == ("gpu", "amd", True, 2)
    assert (seen.raw_model, seen.vendor, seen.quality) == ("AMD Instinct MI210", "amd", "exact")
    assert (seen.min_w, seen.max_w, seen.default_w, seen.current_w) == (100.0, 300.0, 300.0, 300.0)
    assert (seen.no_control, seen.no_telemetry, seen.warnings) == (None, None, ())
    assert asyncio.run(gpus.knobs()) == [FIRST, SECOND]


def test_a_cap_is_written_in_microwatts_read_back_and_put_back(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    async def cycle() -> None:
        found = await found_by(gpus)
        for setting in gpus.settings(180.0, found):
            await gpus.write(setting.knob, setting.value)
        assert tree.file(ADDRESSES[1], "power1_cap").read_text().strip() == str(180 * W)
        assert await found_by(gpus) == {FIRST: 180 * W, SECOND: 180 * W}
        for setting in gpus.restoring(found):
            await gpus.write(setting.knob, setting.value)
        assert await found_by(gpus) == found

    asyncio.run(cycle())


def test_a_board_found_above_its_default_is_put_back_to_the_default(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    tree.file(ADDRESSES[0], "power1_cap_max").write_text(str(350 * W))
    tree.file(ADDRESSES[0], "power1_cap").write_text(str(340 * W))
    found = asyncio.run(found_by(gpus))
    assert found[FIRST] == 340 * W
    assert {setting.knob: setting.value for setting in gpus.restoring(found)} == {FIRST: 300 * W, SECOND: 300 * W}


def test_an_old_kernel_without_default_and_minimum_is_put_back_as_found(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    for address in ADDRESSES:
        tree.file(address, "power1_cap_default").unlink()
        tree.file(address, "power1_cap_min").write_text("0\n")
    tree.file(ADDRESSES[0], "power1_cap").write_text(str(250 * W))
    seen = seen_by(gpus)
    assert (seen.min_w, seen.default_w, seen.no_control) == (None, None, None)
    found = asyncio.run(found_by(gpus))
    assert [setting.value for setting in gpus.restoring(found)] == [250 * W, 300 * W]
    assert [setting.value for setting in gpus.settings(0.0, found)] == [W, W]  # zero would mean something else


def test_a_board_is_found_again_when_the_driver_gave_it_another_number(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    async def cycle() -> None:
        await gpus.knobs()
        await gpus.write(FIRST, 150 * W)
        tree.renumber(ADDRESSES[0])
        tree.file(ADDRESSES[0], "power1_cap").write_text(str(300 * W))  # the limit is lost with the driver
        assert await gpus.read(FIRST) == 300 * W
        await gpus.write(FIRST, 150 * W)
        assert await gpus.read(FIRST) == 150 * W

    asyncio.run(cycle())


def test_a_board_can_be_put_back_by_a_process_that_never_looked(gpus: GpuCapper) -> None:
    async def restore() -> Value:
        (setting,) = gpus.restoring({FIRST: 200 * W})
        await gpus.write(setting.knob, setting.value)
        return await gpus.read(FIRST)

    assert asyncio.run(restore()) == 200 * W


def test_a_vanished_board_is_no_device(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    assert seen_by(gpus).count == 2
    tree.remove(ADDRESSES[0])
    for call in (gpus.read(FIRST), gpus.write(FIRST, 150 * W)):
        with pytest.raises(NoDeviceError, match="no such board"):
            asyncio.run(call)
    assert seen_by(gpus).count == 1
    assert asyncio.run(gpus.knobs()) == [SECOND]


def test_the_display_unit_of_a_cpu_is_not_a_board(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    tree.board("0000:0c:00.0", DISPLAY, "", input=15)
    seen = seen_by(gpus)
    assert (seen.count, seen.warnings) == (2, ())


def test_a_machine_with_only_a_display_unit_has_no_board(tmp_path: Path) -> None:
    tree = AmdgpuTree(tmp_path)
    tree.board("0000:0c:00.0", DISPLAY, "", input=15)
    seen = seen_by(on(SysFs(tree.sys)))
    assert (seen.present, seen.no_control) == (False, "no amd GPU was found")


def test_the_second_die_of_a_board_is_not_a_board(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    tree.board("0000:84:00.0", cap=0, cap_min=0, cap_max=0, cap_default=0, average=0)
    seen = seen_by(gpus)
    assert seen.count == 2
    assert "0000:84:00.0 has no power limit of its own" in seen.warnings[0]
    assert asyncio.run(gpus.power_w()) == 84.0


def test_an_accelerator_in_a_virtual_machine_is_present_but_blocked(tmp_path: Path) -> None:
    tree = AmdgpuTree(tmp_path)
    tree.board("0000:05:00.0", average=90)
    gpus = on(SysFs(tree.sys))
    seen = seen_by(gpus)
    assert (seen.present, seen.count, seen.max_w, seen.no_telemetry) == (True, 1, None, None)
    assert "no power limit" in (seen.no_control or "")
    with pytest.raises(NotSupportedError):
        asyncio.run(gpus.knobs())


def test_boards_without_a_product_name_have_no_model(tmp_path: Path) -> None:
    tree = AmdgpuTree(tmp_path)
    tree.board(ADDRESSES[0], DISPLAY, "", **MI210)
    seen = seen_by(on(SysFs(tree.sys)))
    assert (seen.present, seen.count, seen.raw_model, seen.no_control) == (True, 1, None, None)


def test_power_is_read_from_whichever_file_there_is(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    tree.file(ADDRESSES[0], "power1_average").unlink()
    tree.file(ADDRESSES[0], "power1_input").write_text(str(58 * W))
    assert asyncio.run(gpus.power_w()) == 100.0
    tree.file(ADDRESSES[0], "power1_input").unlink()
    assert asyncio.run(gpus.power_w()) is None
    assert seen_by(gpus).no_telemetry == f"{ADDRESSES[0]}: the driver reports no power"


def test_a_vm_with_nothing_has_no_board(tmp_path: Path) -> None:
    seen = seen_by(on(SysFs(tmp_path)))
    assert (seen.present, seen.count, seen.max_w, seen.quality) == (False, 0, None, "unavailable")


@pytest.mark.parametrize("text", ["", "N/A", "0", "-5", "nan", str(10**15)])
def test_a_limit_that_cannot_be_true_is_a_bad_reading(gpus: GpuCapper, tree: AmdgpuTree, text: str) -> None:
    tree.file(ADDRESSES[0], "power1_cap").write_text(f"{text}\n")
    with pytest.raises(BadReadingError):
        asyncio.run(gpus.read(FIRST))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, NoPermissionError),
        (errno.EROFS, NoPermissionError),
        (errno.EINVAL, NotSupportedError),
        (errno.EIO, DeviceFaultError),
        (errno.EOPNOTSUPP, NotSupportedError),
        (errno.ENODEV, NoDeviceError),
    ],
)
def test_every_failure_of_a_write_has_a_name(tree: AmdgpuTree, code: int, kind: type[DeviceError]) -> None:
    sysfs = FaultySysFs(tree.sys)
    gpus = on(sysfs)
    sysfs.fail("write", "power1_cap", code)
    with pytest.raises(DeviceError, match="power1_cap cannot be set to") as failed:
        asyncio.run(gpus.write(FIRST, 150 * W))
    assert type(failed.value) is kind
    sysfs.heal()
    asyncio.run(gpus.write(FIRST, 150 * W))
    assert asyncio.run(gpus.read(FIRST)) == 150 * W


def test_a_read_only_mount_is_known_before_the_first_write(tree: AmdgpuTree) -> None:
    sysfs = FaultySysFs(tree.sys)
    sysfs.fail("open_to_write", "power1_cap", errno.EROFS)
    gpus = on(sysfs)
    seen = seen_by(gpus)
    assert (seen.present, seen.count, seen.max_w, seen.current_w) == (True, 2, 300.0, 300.0)
    assert "read-only" in (seen.no_control or "")
    with pytest.raises(NoPermissionError):
        asyncio.run(gpus.knobs())


def test_a_write_that_is_silently_ignored_is_seen_by_reading(tree: AmdgpuTree) -> None:
    sysfs = FaultySysFs(tree.sys)
    sysfs.ignore_writes("power1_cap")
    gpus = on(sysfs)
    asyncio.run(gpus.write(FIRST, 150 * W))
    assert asyncio.run(gpus.read(FIRST)) == 300 * W


def test_nothing_but_a_positive_number_is_ever_written(gpus: GpuCapper, tree: AmdgpuTree) -> None:
    for value in (None, math.nan, math.inf, 0, -1):
        with pytest.raises(DeviceFaultError):
            asyncio.run(gpus.write(FIRST, value))
    assert tree.file(ADDRESSES[0], "power1_cap").read_text().strip() == str(300 * W)


def test_amd_smi_is_asked_only_where_the_files_cannot_be_used(
    tree: AmdgpuTree, world: World, amdsmi_folder: Path
) -> None:
    world.say(boards=1)
    world.board(0, bdf=ADDRESSES[0], name="AMD Instinct MI210", min=90 * W, max=290 * W, limit=290 * W, default=290 * W)
    with PlayedGpus("amd", world, [amdsmi_folder], sysfs=tree.sys) as gpus:
        assert (gpus.discover().count, gpus.discover().max_w) == (2, 300.0)
        assert gpus.call("imported", "amdsmi") is False
        gpus.write(FIRST, 150 * W)
        shutil.rmtree(tree.sys / "class")
        assert (gpus.discover().count, gpus.discover().max_w) == (1, 290.0)
        gpus.write(FIRST, 160 * W)  # the same knob by the other way
        assert gpus.read(FIRST) == 160 * W
        assert world.told("0.limit") == 160 * W
    assert tree.file(ADDRESSES[0], "power1_cap").read_text().strip() == str(150 * W)


def test_a_node_without_amd_boards_says_so_quietly_and_does_not_load_amd_smi(
    tmp_path: Path, world: World, amdsmi_folder: Path
) -> None:
    with PlayedGpus("amd", world, [amdsmi_folder], sysfs=tmp_path) as gpus:
        seen = gpus.discover()
        assert (seen.present, seen.no_control, seen.warnings) == (False, "no amd GPU was found", ())
        assert gpus.call("imported", "amdsmi") is False


def test_files_that_cannot_be_used_stay_the_answer_where_amd_smi_cannot_be_loaded(
    tree: AmdgpuTree, tmp_path: Path, world: World
) -> None:
    for address in ADDRESSES:
        tree.file(address, "power1_cap_max").unlink()
    with PlayedGpus("amd", world, [tmp_path], sysfs=tree.sys) as gpus:
        seen = gpus.discover()
        assert (seen.present, seen.count, seen.no_telemetry) == (True, 2, None)
        assert "no power limit that can be set" in (seen.no_control or "")
        assert gpus.power_w() == 84.0
