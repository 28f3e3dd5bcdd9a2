"""AMD boards through AMD SMI, with AMD's own Python binding (the extra `joulie[amd]`). Limits are in microwatts.

The second choice: the files of `amdgpu` need no library. The binding has to match the installed ROCm.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from joulie.devices.gpu.boards import Board, BoardScan, checked, with_own_limit
from joulie.devices.gpu.library_session import LibrarySession, Meaning
from joulie.devices.interface import (
    DeviceError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)

# Watts, whichever the board reports. "Not known" is the largest number of 16, 32 or 64 bits, or the text N/A.
POWER = ("socket_power", "current_socket_power", "average_socket_power")
BELIEVABLE_POWER_W = 20_000
SENSOR = 0
_CANNOT: Meaning = (NotSupportedError, "this board or its driver cannot do it")
_GONE: Meaning = (NoDeviceError, "there is no such board (any more)")
_NO_DRIVER: Meaning = (NoDeviceError, "the amdgpu driver is not loaded")
# What is written lies in the board's range, so it is this device that takes no limit.
_REFUSED: Meaning = (NotSupportedError, "the driver refuses the limit; of two dies on a board only the first takes one")


class AmdSmi(LibrarySession):
    """Boards by PCI address, and with the same knobs as `AmdgpuHwmon`: what one wrote the other can put back."""

    name = "amd"
    vendor = "amd"
    attribute = "power_cap_uw"
    units_per_w = 1_000_000

    library = "AMD SMI"
    session_lost = ("NOT_INIT", "INIT_ERROR", "DRIVER_NOT_LOADED", "NO_DRV")
    meanings: ClassVar[Mapping[str, Meaning]] = MappingProxyType(
        {
            "NO_PERM": (NoPermissionError, "AMD SMI needs UID 0 and a writable /sys for it"),
            "NOT_SUPPORTED": _CANNOT,
            "NOT_YET_IMPLEMENTED": _CANNOT,
            "SETTING_UNAVAILABLE": _CANNOT,
            "DRIVER_NOT_LOADED": _NO_DRIVER,
            "NO_DRV": _NO_DRIVER,
            "NOT_FOUND": _GONE,
            "FILE_NOT_FOUND": _GONE,
            "INVAL": _REFUSED,
            "INPUT_OUT_OF_BOUNDS": _REFUSED,
        }
    )

    def scan(self) -> BoardScan:
        return self._ask("AMD SMI", self._boards)

    def limit(self, device: str) -> int:
        return self._ask(device, lambda smi: int(smi.amdsmi_get_power_cap_info(_handle(smi, device))["power_cap"]))

    def set_limit(self, device: str, limit: int) -> None:
        self._ask(
            f"{device} cannot be limited to {limit / self.units_per_w:g} W",
            lambda smi: smi.amdsmi_set_power_cap(_handle(smi, device), SENSOR, limit),
        )

    def power_w(self, device: str) -> float:
        return self._ask(device, lambda smi: _power_w(smi, _handle(smi, device), device))

    def _boards(self, smi: Any) -> BoardScan:
        boards: dict[str, Board] = {}
        warnings = []
        for index, handle in enumerate(smi.amdsmi_get_processor_handles()):
            try:
                board = self._board(smi, handle)
            except smi.AmdSmiException as error:
                if self._is_lost(error):
                    raise
                warnings.append(str(self._named(error, f"GPU {index}")))
            else:
                boards[board.device] = board
        scan = with_own_limit([boards[device] for device in sorted(boards)])
        return BoardScan(scan.boards, (*warnings, *scan.warnings))

    def _board(self, smi: Any, handle: Any) -> Board:
        device = str(smi.amdsmi_get_gpu_device_bdf(handle)).lower()
        caps: dict[str, int] = {}
        no_control: DeviceError | None = None
        try:
            caps = smi.amdsmi_get_power_cap_info(handle)
        except smi.AmdSmiException as error:
            no_control = self._named(error, device)
            if not isinstance(no_control, NotSupportedError | NoPermissionError):
                raise
        no_telemetry = None
        try:
            _power_w(smi, handle, device)
        except (smi.AmdSmiException, DeviceError) as error:
            no_telemetry = str(error if isinstance(error, DeviceError) else self._named(error, device))
        return checked(
            Board(
                device,
                model=_model(smi, handle),
                lowest=caps.get("min_power_cap"),
                highest=caps.get("max_power_cap"),
                default=caps.get("default_power_cap"),
                current=caps.get("power_cap"),
                no_control=no_control,
                no_telemetry=no_telemetry,
            ),
            self.units_per_w,
        )

    def _load(self) -> Any:
        """The binding. Without its library, importing it prints to standard output and raises a KeyError."""
        if importlib.util.find_spec("amdsmi") is None:
            raise NotSupportedError(
                "AMD's Python binding is missing; install joulie[amd] in the version of the ROCm here"
            )
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                return importlib.import_module("amdsmi")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it does, there is no AMD SMI here
            reason = next(iter(printed.getvalue().splitlines()), f"{type(error).__name__}: {error}")
            raise NotSupportedError(
                f"AMD SMI cannot be loaded ({reason}); it comes with ROCm, and the package amdsmi has to match it"
            ) from None

    def _start(self, binding: Any) -> None:
        binding.amdsmi_init()

    def _stop(self, binding: Any) -> None:
        binding.amdsmi_shut_down()

    def _is_one_of(self, names: tuple[str, ...], error: Exception) -> bool:
        status = getattr(error, "err_code", None)
        constants = self._binding.amdsmi_wrapper
        return status is not None and status in [getattr(constants, f"AMDSMI_STATUS_{name}", None) for name in names]


def _handle(smi: Any, device: str) -> Any:
    return smi.amdsmi_get_processor_handle_from_bdf(device)


def _model(smi: Any, handle: Any) -> str | None:
    try:
        name = str(smi.amdsmi_get_gpu_asic_info(handle)["market_name"])
    except Exception:  # noqa: BLE001 - it also parses serial numbers and may fail at them; a name is not worth a board
        return None
    return name if name and name != "N/A" else None


def _power_w(smi: Any, handle: Any, device: str) -> float:
    told = smi.amdsmi_get_power_info(handle)
    for name in POWER:
        drawn = told.get(name)
        if isinstance(drawn, int) and 0 < drawn <= BELIEVABLE_POWER_W:
            return float(drawn)
    raise NotSupportedError(f"{device}: AMD SMI reports no power")
