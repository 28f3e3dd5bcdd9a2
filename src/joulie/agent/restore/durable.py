"""Small files that a crash cannot harm: a temporary file, fsync, rename, fsync of the folder. All of it synchronous.

The agent is root. So nothing in the folder leads it elsewhere: links are neither written through nor followed, and what
never ends (a pipe, a device) is not read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_BYTES = 16 << 20  # thousands of devices fit


def read_whole(path: Path) -> bytes:
    """The file; OSError where it is missing, a link, larger than any that was written here, or no file at all."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read(MAX_BYTES)


def write_durably(path: Path, data: bytes) -> None:
    """Replaces the whole file; on disk when this returns, and at any moment either the old one or the new."""
    folder = path.parent
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(folder.parent)
    temporary = path.with_name(f"{path.name}.new")
    with _locked(folder) as handle:
        temporary.unlink(missing_ok=True)  # of a crash; a link there would be written through
        with open(temporary, "xb", opener=_for_us_alone) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        os.fsync(handle)


def remove_durably(path: Path) -> None:
    """Gone from the disk when this returns."""
    path.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _for_us_alone(path: str, flags: int) -> int:
    """Endpoints may carry credentials."""
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    if folder.exists():
        with _locked(folder) as handle:
            os.fsync(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The folder, for one writer at a time: `joulie agent restore` may run beside the agent."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some network file systems lock no folders; there nothing else writes either
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
