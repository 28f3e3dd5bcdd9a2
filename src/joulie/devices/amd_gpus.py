"""AMD boards by whichever way is open: the driver's files first, AMD SMI where they cannot be used."""

from __future__ import annotations

from joulie.devices.amdgpu import AmdgpuHwmon
from joulie.devices.amdsmi_gpu import AmdSmi
from joulie.devices.bounded_calls import CALL_LIMIT_S
from joulie.devices.gpu_boards import Look
from joulie.devices.gpu_capper import BoardLibrary, GpuCapper
from joulie.devices.interface import DeviceError
from joulie.devices.sysfs import SysFs

DRIVER = "module/amdgpu"


def amd_gpus(sysfs: SysFs, call_limit_s: float = CALL_LIMIT_S) -> GpuCapper:
    """The capper of this node's AMD boards; nothing is loaded before it is first asked."""
    return GpuCapper(AmdBoards(sysfs), call_limit_s)


class AmdBoards:
    """Both ways name boards, limits and units alike, so they can be changed at every look."""

    name = "amd"
    vendor = "amd"
    attribute = AmdgpuHwmon.attribute
    units_per_w = AmdgpuHwmon.units_per_w

    def __init__(self, sysfs: SysFs) -> None:
        self._sysfs = sysfs
        self._files = AmdgpuHwmon(sysfs)
        self._smi = AmdSmi()
        self._way: BoardLibrary = self._files

    def look(self) -> Look:
        """Of the first way by which a board can be capped; else what the files say, which need nothing installed."""
        self._way = self._files
        by_files = self._files.look()
        if _can_cap(by_files) or self._sysfs.real(DRIVER) is None:
            return by_files  # without the driver AMD SMI has nothing to say either, and loading it costs memory
        try:
            by_smi = self._smi.look()
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


def _can_cap(look: Look) -> bool:
    return any(board.no_control is None for board in look.boards)
