"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from joulie.errors import InputError


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """What was there before stays until all is written. InputError where it cannot be written."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():  # a device or a pipe is written to, never replaced
            with target.open("wb") as file:
                yield file
            return
        with beside.open("wb") as file:
            yield file
        beside.replace(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
