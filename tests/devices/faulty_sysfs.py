"""A SysFs whose files misbehave as a kernel's do: each of the three calls can fail, and writes can vanish."""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

from joulie.devices.sysfs import SysFs

Call = Literal["open", "open_to_write", "read", "write"]


class Fault(NamedTuple):
    call: Call
    ending: str  # of the path
    code: int


class FaultySysFs(SysFs):
    """Everything works until told otherwise."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self._faults: list[Fault] = []
        self._deaf: list[str] = []
        self.written: list[tuple[str, int]] = []

    def fail(self, call: Call, path_ending: str, code: int) -> None:
        """From now on this call answers with this errno, for all files whose path ends so."""
        self._faults.append(Fault(call, path_ending, code))

    def ignore_writes(self, path_ending: str) -> None:
        """Writes succeed and change nothing."""
        self._deaf.append(path_ending)

    def heal(self) -> None:
        """Everything works again."""
        self._faults.clear()
        self._deaf.clear()

    def _open(self, file: str, flags: int) -> int:
        writing = bool(flags & (os.O_WRONLY | os.O_RDWR))
        self._raise("open", file)
        if writing:
            self._raise("open_to_write", file)
            flags &= ~os.O_TRUNC  # a write that fails leaves the old value, as on a real sysfs
        return super()._open(file, flags)

    def _get(self, handle: int, path: str) -> bytes:
        self._raise("read", path)
        return super()._get(handle, path)

    def _put(self, handle: int, path: str, content: bytes) -> None:
        self._raise("write", path)
        self.written.append((path, int(content)))
        if not path.endswith(tuple(self._deaf)):
            os.ftruncate(handle, 0)
            super()._put(handle, path, content)

    def _raise(self, call: Call, path: str) -> None:
        for fault in self._faults:
            if fault.call == call and path.endswith(fault.ending):
                raise OSError(fault.code, os.strerror(fault.code), path)
