"""AMD boards by whichever route works: the driver's files first, AMD SMI where they cannot be used."""

from __future__ import annotations

from joulie.devices.amd.hwmon import AmdgpuHwmon
from joulie.devices.amd.smi import AmdSmi
from joulie.devices.gpu.boards import BoardScan
from joulie.devices.gpu.capper import BoardLibrary, GpuCapper
from joulie.devices.host import Host
from joulie.devices.interface import DeviceError
from joulie.devices.sysfs import SysFs

DRIVER = "module/amdgpu"


def open_amd(host: Host) -> GpuCapper:
    """This machine's AMD boards; nothing is loaded before they are first asked."""
    return GpuCapper(AmdBoards(host.sysfs))


class AmdBoards:
    """Both routes name boards, limits and units alike, so each scan may choose another."""

    name = "amd"
    vendor = "amd"
    attribute = AmdgpuHwmon.attribute
    units_per_w = AmdgpuHwmon.units_per_w

    def __init__(self, sysfs: SysFs) -> None:
        self._sysfs = sysfs
        self._files = AmdgpuHwmon(sysfs)
        self._smi = AmdSmi()
        self._way: BoardLibrary = self._files

    def scan(self) -> BoardScan:
        """By the first route that can cap a board; else by the files, which need nothing installed."""
        self._way = self._files
        by_files = self._files.scan()
        if _can_cap(by_files) or self._sysfs.real(DRIVER) is None:
            return by_files  # without the driver AMD SMI has nothing to say either, and loading it costs memory
        try:
            by_smi = self._smi.scan()
        except DeviceError:
            if by_files.boards:
                return by_files
            raise
        if by_smi.boards and (_can_cap(by_smi) or not by_files.boards):
            self._way = self._smi
            return by_smi
        return by_files

    def limit(self, device: str) -> int:
        return self._way.limit(device)

    def set_limit(self, device: str, limit: int) -> None:
        self._way.set_limit(device, limit)

    def power_w(self, device: str) -> float:
        return self._way.power_w(device)

    def close(self) -> None:
        self._files.close()
        self._smi.close()


def _can_cap(scan: BoardScan) -> bool:
    return any(board.no_control is None for board in scan.boards)
