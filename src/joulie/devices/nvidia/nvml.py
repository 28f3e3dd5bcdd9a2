"""NVIDIA boards through NVML, with NVIDIA's own Python binding (the extra `joulie[nvidia]`). Limits are in milliwatts.

The session stays open: without persistence mode the driver forgets every limit when its last client leaves. Limits are
also lost when the driver is reloaded and at reboot; reading shows the default then, and the agent sets them again.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from joulie.devices.gpu.boards import Board, BoardScan, checked
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.gpu.library_session import LibrarySession, Meaning
from joulie.devices.host import Host
from joulie.devices.interface import (
    DeviceError,
    DeviceFaultError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)

Answer = TypeVar("Answer")
LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = (
    f"{LIBRARY} was not found: the node has no NVIDIA driver, or the container does not see it (use the runtime class "
    "nvidia, or mount the driver, which the GPU operator keeps under /run/nvidia/driver, and name the folder of its "
    "libraries in LD_LIBRARY_PATH)"
)
_GONE: Meaning = (NoDeviceError, "there is no such board (any more)")


def open_nvidia(_: Host) -> GpuCapper:
    """This machine's NVIDIA boards; nothing is loaded before they are first asked."""
    return GpuCapper(Nvml())


class Nvml(LibrarySession):
    """Boards by UUID. The limit that is read is the enforced one, whatever enforces it."""

    name = "nvidia"
    vendor = "nvidia"
    attribute = "power_limit_mw"
    units_per_w = 1000

    library = "NVML"
    session_lost = ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH")
    meanings: ClassVar[Mapping[str, Meaning]] = MappingProxyType(
        {
            "NO_PERMISSION": (NoPermissionError, "NVML needs UID 0 and the capability SYS_ADMIN for it"),
            "NOT_SUPPORTED": (NotSupportedError, "this board or its driver cannot do it"),
            "FUNCTION_NOT_FOUND": (NotSupportedError, "the driver is too old for it"),
            "LIBRARY_NOT_FOUND": (NoDeviceError, NO_LIBRARY),
            "DRIVER_NOT_LOADED": (NoDeviceError, "the NVIDIA driver is not loaded"),
            "GPU_IS_LOST": (NoDeviceError, "the board fell off the bus; reset it or restart the node"),
            "RESET_REQUIRED": (NoDeviceError, "the board needs a reset"),
            "NOT_FOUND": _GONE,
            "GPU_NOT_FOUND": _GONE,
            "INVALID_ARGUMENT": (DeviceFaultError, "the driver refuses the value"),
            "INSUFFICIENT_POWER": (DeviceFaultError, "the board's power cables are not properly connected"),
            "LIB_RM_VERSION_MISMATCH": (DeviceFaultError, "the driver was updated; restart the agent or the node"),
        }
    )

    def scan(self) -> BoardScan:
        return self._ask("NVML", self._boards)

    def limit(self, device: str) -> int:
        return self._ask(
            device,
            lambda nvml: int(nvml.nvmlDeviceGetEnforcedPowerLimit(nvml.nvmlDeviceGetHandleByUUID(device))),
        )

    def set_limit(self, device: str, limit: int) -> None:
        self._ask(
            f"{device} cannot be limited to {limit / self.units_per_w:g} W",
            lambda nvml: nvml.nvmlDeviceSetPowerManagementLimit(nvml.nvmlDeviceGetHandleByUUID(device), limit),
        )

    def power_w(self, device: str) -> float:
        return self._ask(
            device,
            lambda nvml: float(nvml.nvmlDeviceGetPowerUsage(nvml.nvmlDeviceGetHandleByUUID(device)) / self.units_per_w),
        )

    def _boards(self, nvml: Any) -> BoardScan:
        boards: dict[str, Board] = {}
        warnings = []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                board = self._board(nvml, _physical(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
            except nvml.NVMLError as error:
                if self._is_lost(error):
                    raise
                warnings.append(str(self._named(error, f"GPU {index}")))
            else:
                boards[board.device] = board
        return BoardScan(tuple(boards[device] for device in sorted(boards)), tuple(warnings))

    def _board(self, nvml: Any, handle: Any) -> Board:
        device = str(nvml.nvmlDeviceGetUUID(handle))

        def told(question: Callable[[Any], Answer]) -> tuple[Answer | None, DeviceError | None]:
            try:
                return question(handle), None
            except nvml.NVMLError as error:
                failure = self._named(error, device)
                if not isinstance(failure, NotSupportedError | NoPermissionError):
                    raise
                return None, failure

        limits, no_limits = told(nvml.nvmlDeviceGetPowerManagementLimitConstraints)
        current, no_current = told(nvml.nvmlDeviceGetEnforcedPowerLimit)
        _, no_power = told(nvml.nvmlDeviceGetPowerUsage)
        return checked(
            Board(
                device,
                model=told(nvml.nvmlDeviceGetName)[0],
                lowest=limits[0] if limits else None,
                highest=limits[1] if limits else None,
                default=told(nvml.nvmlDeviceGetPowerManagementDefaultLimit)[0],
                current=current,
                no_control=no_limits or no_current,
                no_telemetry=str(no_power) if no_power else None,
            ),
            self.units_per_w,
        )

    def _load(self) -> Any:
        """The binding. A node without the driver's library does not even import it, which saves the agent 6 MB."""
        try:
            ctypes.CDLL(LIBRARY)
        except OSError:
            raise NoDeviceError(NO_LIBRARY) from None
        try:
            return importlib.import_module("pynvml")
        except ImportError as error:
            raise NotSupportedError(f"NVIDIA's Python binding is missing; install joulie[nvidia] ({error})") from None

    def _start(self, binding: Any) -> None:
        binding.nvmlInit()

    def _stop(self, binding: Any) -> None:
        binding.nvmlShutdown()

    def _is_one_of(self, names: tuple[str, ...], error: Exception) -> bool:
        status = getattr(error, "value", None)
        return status is not None and status in [getattr(self._binding, f"NVML_ERROR_{name}", None) for name in names]


def _physical(nvml: Any, handle: Any) -> Any:
    """The board itself, should this be a slice of one (MIG)."""
    try:
        is_slice = bool(nvml.nvmlDeviceIsMigDeviceHandle(handle))
    except nvml.NVMLError:
        return handle  # a driver that knows of no slices
    return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if is_slice else handle
