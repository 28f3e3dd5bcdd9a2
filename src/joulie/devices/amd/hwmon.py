"""AMD boards through the files of the amdgpu driver (hwmon, microwatts). They need no library, only a writable /sys."""

from __future__ import annotations

import errno
import re
from types import MappingProxyType

from joulie.devices.gpu.boards import Board, BoardScan, checked, with_own_limit
from joulie.devices.interface import DeviceError, NoDeviceError, NotSupportedError
from joulie.devices.sysfs import Meanings, SysFs

HWMON = "class/hwmon"
DISPLAY_CLASS = "0x0300"  # PCI; accelerators are 0x0380 or 0x1200
POWER = ("power1_average", "power1_input")  # which of them there is depends on board and kernel
# What is written lies in the board's range, so it is this device that takes no limit.
_REFUSED: Meanings = MappingProxyType(
    {errno.EINVAL: (NotSupportedError, "the driver refuses the limit; of two dies on a board only the first takes one")}
)
_PCI_ADDRESS = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


class AmdgpuHwmon:
    """Boards by PCI address: hwmon numbers change when a driver is reloaded."""

    name = "amd"
    vendor = "amd"
    attribute = "power_cap_uw"
    units_per_w = 1_000_000

    def __init__(self, sysfs: SysFs) -> None:
        self._sysfs = sysfs
        self._folders: dict[str, str] = {}  # of the PCI devices

    def scan(self) -> BoardScan:
        self._find()
        boards = [self._board(device) for device in sorted(self._folders)]
        return with_own_limit([board for board in boards if not self._only_shows_pictures(board)])

    def limit(self, device: str) -> int:
        return self._sysfs.integer(f"{self._hwmon(device)}/power1_cap")

    def set_limit(self, device: str, limit: int) -> None:
        self._sysfs.write(f"{self._hwmon(device)}/power1_cap", limit, _REFUSED)

    def power_w(self, device: str) -> float:
        folder = self._hwmon(device)
        for name in POWER:
            try:
                return self._sysfs.integer(f"{folder}/{name}") / self.units_per_w
            except (NoDeviceError, NotSupportedError):
                continue
        raise NotSupportedError(f"{device}: the driver reports no power")

    def close(self) -> None:
        self._folders.clear()

    def _find(self) -> None:
        self._folders.clear()
        for entry in self._sysfs.names(HWMON):
            try:
                if self._sysfs.read(f"{HWMON}/{entry}/name") != "amdgpu":
                    continue
            except DeviceError:
                continue  # it goes away during the scan
            folder = self._sysfs.real(f"{HWMON}/{entry}/device") or ""
            if _PCI_ADDRESS.match(address := folder.rpartition("/")[2]):
                self._folders[address] = folder

    def _hwmon(self, device: str) -> str:
        """The folder of the board's sensors, searched for again where it has moved."""
        for _ in range(2):
            folder = self._folders.get(device)
            if folder and (numbers := self._sysfs.names(f"{folder}/hwmon")):
                return f"{folder}/hwmon/{numbers[0]}"
            self._find()
        raise NoDeviceError(f"{device}: amdgpu shows no such board (any more)")

    def _board(self, device: str) -> Board:
        try:
            folder = self._hwmon(device)
        except NoDeviceError as error:
            return Board(device, no_control=error, no_telemetry=str(error))
        number = self._sysfs.integer_or_none
        highest = number(f"{folder}/power1_cap_max")
        refusal: DeviceError | None = None
        try:
            if highest:
                self._sysfs.integer(f"{folder}/power1_cap")
                self._sysfs.check_writable(f"{folder}/power1_cap")
        except DeviceError as error:
            refusal = error
        no_telemetry = None
        try:
            self.power_w(device)
        except DeviceError as error:
            no_telemetry = str(error)
        return checked(
            Board(
                device,
                model=self._model(device),
                lowest=number(f"{folder}/power1_cap_min"),
                highest=highest,
                default=number(f"{folder}/power1_cap_default"),
                current=number(f"{folder}/power1_cap"),
                no_control=refusal,
                no_telemetry=no_telemetry,
            ),
            self.units_per_w,
        )

    def _model(self, device: str) -> str | None:
        """The product name, which only server boards have."""
        try:
            return self._sysfs.read(f"{self._folders[device]}/product_name") or None
        except DeviceError:
            return None

    def _only_shows_pictures(self, board: Board) -> bool:
        """The display unit inside a CPU: no limit to set, and nothing that computes."""
        if not isinstance(board.no_control, NotSupportedError):
            return False
        try:
            return self._sysfs.read(f"{self._folders[board.device]}/class").startswith(DISPLAY_CLASS)
        except DeviceError:
            return False
