"""The two routes to an AMD socket's power limit: HSMP's hwmon files in microwatts, its mailbox in milliwatts."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from typing import Protocol

from joulie.devices.interface import DeviceError, Knob, NoDeviceError
from joulie.devices.sysfs import SysFs, device_error

HWMON_FOLDER = "class/hwmon"
HWMON_NAME = "amd_hsmp_hwmon"
MAILBOX = "/dev/hsmp"
MAILBOX_ATTRIBUTE = "socket_power_limit_mw"
MAX_SOCKETS = 8
GET_POWER, SET_LIMIT, GET_LIMIT, GET_MAX_LIMIT = 0x04, 0x05, 0x06, 0x07
# struct hsmp_message: id, number of arguments, number of answers, eight words, socket; aligned to four bytes.
_MESSAGE = struct.Struct("<IHH8IHxx")
_IOWR_MESSAGE = (3 << 30) | (_MESSAGE.size << 16) | (0xF8 << 8)

# (socket, message, argument of a setting message) → answer; OSError as the kernel gives it.
MailboxCall = Callable[[int, int, int | None], int]


class Socket(Protocol):
    """One socket, in its interface's own unit."""

    per_w: int
    knob: Knob

    def limit(self) -> int: ...
    def set_limit(self, value: int) -> None: ...
    def maximum(self) -> int: ...
    def power(self) -> int: ...
    def check_writable(self) -> None: ...


class HwmonSocket:
    """A socket's hwmon folder, µW."""

    per_w = 1_000_000

    def __init__(self, sysfs: SysFs, device: str) -> None:
        self._sysfs = sysfs
        self.knob = Knob(device, "power1_cap")

    def limit(self) -> int:
        return self._sysfs.integer("/".join(self.knob))

    def set_limit(self, value: int) -> None:
        self._sysfs.write("/".join(self.knob), value)

    def maximum(self) -> int:
        return self._sysfs.integer(f"{self.knob.device}/power1_cap_max")

    def power(self) -> int:
        return self._sysfs.integer(f"{self.knob.device}/power1_input")

    def check_writable(self) -> None:
        self._sysfs.check_writable("/".join(self.knob))


class MailboxSocket:
    """A socket behind /dev/hsmp, mW."""

    per_w = 1_000

    def __init__(self, call: MailboxCall, index: int) -> None:
        self._call = call
        self._index = index
        self.knob = Knob(f"{MAILBOX}#{index}", MAILBOX_ATTRIBUTE)

    def limit(self) -> int:
        return self._ask(GET_LIMIT)

    def set_limit(self, value: int) -> None:
        self._ask(SET_LIMIT, value)

    def maximum(self) -> int:
        return self._ask(GET_MAX_LIMIT)

    def power(self) -> int:
        return self._ask(GET_POWER)

    def check_writable(self) -> None:
        """Nothing to check: only a write would tell."""

    def _ask(self, message: int, argument: int | None = None) -> int:
        try:
            return self._call(self._index, message, argument)
        except OSError as error:
            raise device_error(error, f"{self.knob.device}, HSMP message {message:#04x}") from error


def hwmon_sockets(sysfs: SysFs) -> list[HwmonSocket]:
    """Sockets by real path: hwmon numbers follow the order in which drivers were loaded."""
    devices = set()
    for name in sysfs.names(HWMON_FOLDER):
        try:
            if sysfs.read(f"{HWMON_FOLDER}/{name}/name") == HWMON_NAME:
                devices.add(sysfs.real(f"{HWMON_FOLDER}/{name}"))
        except DeviceError:
            continue
    return [HwmonSocket(sysfs, device) for device in sorted(filter(None, devices))]


def mailbox_sockets(call: MailboxCall) -> list[MailboxSocket]:
    """Sockets in the kernel's order, until it reports no more. Any other refusal is an error, not a short list."""
    sockets: list[MailboxSocket] = []
    for index in range(MAX_SOCKETS):
        socket = MailboxSocket(call, index)
        try:
            socket.limit()
        except NoDeviceError:
            break
        sockets.append(socket)
    return sockets


def open_mailbox(path: str = MAILBOX) -> MailboxCall | None:
    """Calls through the device file; None where there is none."""
    if not os.path.exists(path):  # noqa: PTH110
        return None

    def call(socket: int, message: int, argument: int | None) -> int:
        asks = argument is None
        content = bytearray(
            _MESSAGE.pack(message, 0 if asks else 1, 1 if asks else 0, argument or 0, 0, 0, 0, 0, 0, 0, 0, socket)
        )
        handle = os.open(path, (os.O_RDONLY if asks else os.O_RDWR) | os.O_CLOEXEC)
        try:
            fcntl.ioctl(handle, _IOWR_MESSAGE, content)
        except OSError as error:
            # ENOTTY: the file is not the driver's.
            raise OSError(errno.ENODEV if error.errno == errno.ENOTTY else error.errno, error.strerror) from error
        finally:
            os.close(handle)
        answer: int = _MESSAGE.unpack(content)[3]
        return answer

    return call
