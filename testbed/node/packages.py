"""What a node takes from Debian: containerd, runc and the programs that they and kubelet call."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.image.debian import unpacked

PACKAGES = ("containerd", "runc", "containernetworking-plugins", "iptables", "busybox-static", "iproute2", "util-linux")


def packages() -> Path:
    """A root folder with what this machine lacks of it, kept in the user's cache."""
    return unpacked(PACKAGES, complete=False)


def search_paths(root: Path) -> dict[str, str]:
    """The variables by which programs below `root` and those of the machine find each other and their libraries."""
    programs = [f"{root}/{folder}" for folder in ("usr/sbin", "usr/bin", "sbin", "bin")]
    libraries = sorted({str(file.parent) for file in root.rglob("*.so*") if "xtables" not in file.parts})
    extensions = [str(folder) for folder in root.glob("usr/lib/*/xtables")]
    return {
        "PATH": os.pathsep.join([*programs, os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
        **({"LD_LIBRARY_PATH": os.pathsep.join(libraries)} if libraries else {}),
        **({"XTABLES_LIBDIR": extensions[0]} if extensions else {}),
    }
