"""Control groups, the one thing that does not end with a namespace: made before the node starts, removed after it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuset", "memory", "pids")
GONE_S = 20.0


def hierarchies() -> list[Path]:
    """The roots of all hierarchies: one of version 2, else those of version 1 (and an empty one of version 2)."""
    return [ROOT] if is_v2() else [folder for folder in sorted(ROOT.glob("*")) if (folder / "cgroup.procs").is_file()]


def is_v2() -> bool:
    return (ROOT / "cgroup.controllers").is_file()


def missing_controllers() -> set[str]:
    """What kubelet cannot do without and this machine does not offer to groups below its root."""
    if is_v2():  # to switch one on would change the whole machine
        offered = set((ROOT / "cgroup.subtree_control").read_text().split())
    else:
        offered = {part for folder in hierarchies() for part in folder.name.split(",")}
    return set(NEEDED) - offered


def create(name: str) -> None:
    """An empty group of this name in each hierarchy; kubelet makes those of pods below it."""
    for hierarchy in hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # version 1: empty, and no process can be put into it
            if (hierarchy / setting).is_file() and not is_v2():
                (group / setting).write_text((hierarchy / setting).read_text())


def remove(name: str) -> None:
    """End what is still in them, and take them away."""
    deadline_s = time.monotonic() + GONE_S
    while left := groups(name):
        for group in left:
            for pid in _processes(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):  # a process in it is still ending
                group.rmdir()
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"cannot remove {left[0]}")
        time.sleep(0.02)


def groups(name: str) -> list[Path]:
    """Every group of this name and below it, the innermost first."""
    found: list[Path] = []
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            found.append(Path(folder))
    return found


def _processes(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except OSError:  # gone meanwhile
        return []
