"""Where built things are kept between runs, and the lock that lets only one process build them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """The user's own cache: it survives `make clean`, because a build takes minutes and depends on versions alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "joulie" / "control-plane"


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder's lock; calls `waiting` first if another process has it.

    The kernel drops the lock when its holder dies, so a killed build never blocks the next one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A temporary place beside `target` that becomes it, at once and whole, if nothing goes wrong."""
    workplace = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        unfinished = workplace / target.name
        yield unfinished
        unfinished.replace(target)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
