"""The kernel's attribute files below one root. Every failure is one named error that says what a person can do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType

from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)

Meaning = tuple[type[DeviceError], str]
Meanings = Mapping[int, Meaning]
NO_SPECIAL_MEANING: Meanings = MappingProxyType({})
MAX_ATTRIBUTE_BYTES = 65_536  # sysfs gives at most a page; pages are 64 kB on some ARM servers

_GONE = "it does not exist, or no longer does"
_NOT_ALLOWED = "not permitted; run the agent as UID 0"
_READ_ONLY = "it is mounted read-only; mount the host's /sys writable"
_NO_VALUE = "the driver has no value for it"
_MEANINGS: Meanings = MappingProxyType(
    {
        errno.ENOENT: (NoDeviceError, _GONE),
        errno.ENOTDIR: (NoDeviceError, _GONE),
        errno.ELOOP: (NoDeviceError, _GONE),
        errno.ENODEV: (NoDeviceError, _GONE),
        errno.ENXIO: (NoDeviceError, _GONE),
        errno.EACCES: (NoPermissionError, _NOT_ALLOWED),
        errno.EPERM: (NoPermissionError, _NOT_ALLOWED),
        errno.EROFS: (NoPermissionError, _READ_ONLY),
        errno.ENODATA: (NotSupportedError, _NO_VALUE),
        errno.EOPNOTSUPP: (NotSupportedError, "the driver does not support it"),
        errno.ENOMSG: (NotSupportedError, "the firmware does not know this message"),
        errno.EINVAL: (DeviceFaultError, "the driver refuses the value"),
    }
)


def device_error(error: OSError, what: str, special: Meanings = NO_SPECIAL_MEANING) -> DeviceError:
    """The named error for what the kernel answered."""
    code = error.errno or 0
    kind, hint = special.get(code) or _MEANINGS.get(code) or (DeviceFaultError, os.strerror(code))
    return kind(f"{what}: {hint} ({errno.errorcode.get(code, code)})")


def why_not(check: Callable[[], object]) -> str | None:
    """The reason why something cannot be done; None where it can."""
    try:
        check()
    except DeviceError as error:
        return str(error)
    return None


class SysFs:
    """Attribute files below `root`, which is the host's /sys wherever that is mounted.

    Devices are named as on the host, `/sys/…` with all links followed, so a name written down by one process is
    good for another that sees the same files elsewhere. `special` says what an errno means when it comes from the
    driver, after the file could be opened. `read_only` is for a dry run: whether files are writable is not checked,
    because they may well be mounted read-only, and nothing is written.
    """

    def __init__(self, root: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self._root = os.path.realpath(root)
        self._read_only = read_only

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing where there is no such folder."""
        try:
            return sorted(os.listdir(self._file(folder)))  # noqa: PTH208 - strings are all that is needed
        except OSError:
            return []

    def real(self, path: str) -> str | None:
        """The one name of a file or folder that exists below the root."""
        target = os.path.realpath(self._file(path))
        if not target.startswith(self._root + "/") or not os.path.exists(target):  # noqa: PTH110
            return None
        return "/sys" + target[len(self._root) :]

    def read(self, path: str, special: Meanings = NO_SPECIAL_MEANING) -> str:
        """An attribute's text without the newline."""
        what = f"{_shown(path)} cannot be read"
        try:
            handle = self._open(self._file(path), os.O_RDONLY)
        except OSError as error:
            raise device_error(error, what) from error
        try:
            content = self._get(handle, path)
        except OSError as error:
            raise device_error(error, what, special) from error
        finally:
            os.close(handle)
        return content.decode(errors="replace").strip()

    def integer(self, path: str, special: Meanings = NO_SPECIAL_MEANING) -> int:
        """An attribute that is a whole number."""
        text = self.read(path, special)
        try:
            return int(text)
        except ValueError:
            raise BadReadingError(f"{_shown(path)} says {text[:40]!r}, which is not a whole number") from None

    def integer_or_none(self, path: str) -> int | None:
        """The number, or None: for attributes that some kernels lack."""
        try:
            return self.integer(path)
        except DeviceError:
            return None

    def write(self, path: str, value: int, special: Meanings = NO_SPECIAL_MEANING) -> None:
        """Ask for a number. The kernel takes it whole or not at all; the file is never created."""
        what = f"{_shown(path)} cannot be set to {value}"
        if self._read_only:
            raise NoPermissionError(f"{what}: this is a dry run")
        if self.real(path) is None:  # also where a name read from a file would lead out of the root
            raise NoDeviceError(f"{what}: {_GONE}")
        try:
            handle = self._open(self._file(path), os.O_WRONLY | os.O_TRUNC)
        except OSError as error:
            raise device_error(error, what) from error
        try:
            self._put(handle, path, f"{value}\n".encode())
        except OSError as error:
            raise device_error(error, what, special) from error
        finally:
            os.close(handle)

    def check_writable(self, path: str) -> None:
        """A DeviceError where the file could not even be opened for writing; writes nothing."""
        if self._read_only:
            return
        try:
            os.close(self._open(self._file(path), os.O_WRONLY))
        except OSError as error:
            raise device_error(error, f"{_shown(path)} cannot be written") from error

    # The three calls that touch a file are separate, so that tests can make each fail as a kernel does.
    def _open(self, file: str, flags: int) -> int:
        return os.open(file, flags | os.O_CLOEXEC)

    def _get(self, handle: int, path: str) -> bytes:
        return os.read(handle, MAX_ATTRIBUTE_BYTES)

    def _put(self, handle: int, path: str, content: bytes) -> None:
        os.write(handle, content)

    def _file(self, path: str) -> str:
        return f"{self._root}/{path.removeprefix('/sys/')}"


def _shown(path: str) -> str:
    return path if path.startswith("/") else f"/sys/{path}"
