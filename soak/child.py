"""Runs `joulie` with a wall clock that can be moved from outside: `python child.py CLOCK_FILE COMMAND…`.

The file holds one double, the seconds to add to `time.time`. The monotonic clock stays as it is, as in a machine whose
clock is set.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

CLOCK = struct.Struct("<d")


def move_wall_clock(file: Path) -> None:
    """From now on the file's seconds are added, whatever they are at that moment."""
    with file.open("r+b") as handle:
        shared = mmap.mmap(handle.fileno(), CLOCK.size)
    true_ns = time.time_ns
    time.time_ns = lambda: true_ns() + int(CLOCK.unpack_from(shared)[0] * 1e9)
    time.time = lambda: time.time_ns() / 1e9


if __name__ == "__main__":
    move_wall_clock(Path(sys.argv.pop(1)))
    sys.argv[0] = "joulie"
    from joulie.cli.main import main  # only now: modules take `time.time` as a default when they are imported

    main()
