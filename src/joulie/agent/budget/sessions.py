"""Counts the lives of agents with one STATE_DIR, so that readers can tell a late confirmation from a new one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from joulie.agent.restore.durable import read_whole, write_durably

FILE_NAME = "session.json"


class _Contents(Struct):
    session: int


class Sessions:
    """The number of this life. Where the file is lost, what the twins show still keeps numbers growing."""

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self._path = path
        self._writes = writes
        before = 0
        with suppress(OSError, msgspec.MsgspecError, ValueError):
            before = max(0, msgspec.json.decode(read_whole(path), type=_Contents).session)
        self.number = before
        self.at_least(before + 1)

    def at_least(self, number: int) -> None:
        """A life with this number has begun."""
        if number <= self.number:
            return
        self.number = number
        if self._writes:
            with suppress(OSError):
                write_durably(self._path, msgspec.json.encode(_Contents(number)))
