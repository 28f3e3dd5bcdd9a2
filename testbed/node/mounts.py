"""The node's own view of the file system. Everything here is mounted within its namespace and gone with it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

# What kubelet sets for the whole machine. It gets files that look the same instead, and the kernel never hears of it.
KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)

SYS = Path("/sys")
POWERCAP = ("class/powercap", "devices/virtual/powercap")


def mount(*arguments: str | Path) -> None:
    """The program of that name; its complaint as an error."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"mount {' '.join(map(str, arguments))}: {done.stderr.strip()}")


def make_private_places() -> None:
    """Run-time state, images, containers and logs in memory; nothing of it reaches the machine's disk."""
    mount("--make-rshared", "/")  # volumes that kubelet mounts are to be seen by containers
    for folder in ("/run", "/var/log"):
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    shadow(Path("/var/lib"), hide=("kubelet", "containerd", "cni", "joulie"))
    for setting in KERNEL_SETTINGS:
        real = Path("/proc/sys", setting)
        own = Path("/run/kernel-settings", setting)
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(real.read_text())
        mount("--bind", own, real)


def replace_sys(fake: Path | None) -> None:
    """Show pods the machine's own /sys read-only, with fake power caps in place of real ones.

    `fake` is a tree as a machine with RAPL has it; without it there is no power cap at all.
    """
    groups, real = (Path(tempfile.mkdtemp(dir="/run")) for _ in range(2))
    mount("--rbind", SYS / "fs/cgroup", groups)
    mount("-t", "sysfs", "sysfs", real)  # a new one: it shows the network devices of this namespace
    mount("-o", "remount,bind,ro", real)  # whatever is bound from it is read-only, too: no agent reaches a real device
    shadow(SYS, real=real, hide=("class", "devices"))
    for folder in ("class", "devices"):
        (SYS / folder).mkdir()
    shadow(SYS / "class", real=real / "class", hide=("powercap",))
    shadow(SYS / "devices", real=real / "devices", hide=("virtual",))
    (SYS / "devices/virtual").mkdir()
    shadow(SYS / "devices/virtual", real=real / "devices/virtual", hide=("powercap",))
    mount("--rbind", groups, SYS / "fs/cgroup")
    if fake:
        for folder in POWERCAP:
            (SYS / folder).mkdir()
            mount("--bind", fake / folder, SYS / folder)


def shadow(folder: Path, hide: Collection[str] = (), real: Path | None = None) -> None:
    """Make this folder writable memory that shows what is in `real`, by default itself, except what is to be hidden."""
    aside = Path(tempfile.mkdtemp(dir="/run"))
    mount("--rbind", real or folder, aside)
    mount("--make-rprivate", aside)
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    for child in aside.iterdir():
        place = folder / child.name
        if child.name in hide:
            continue
        if child.is_symlink():
            place.symlink_to(child.readlink())
            continue
        if child.is_dir():
            place.mkdir()
        else:
            place.touch()
        mount("--rbind", child, place)
    subprocess.run(["umount", "--lazy", "--recursive", str(aside)], check=True, capture_output=True)
    aside.rmdir()
